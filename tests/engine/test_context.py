"""Row A3: the context snapshot is kept once, and comes back."""

from __future__ import annotations

from tests.support import open_memory


def test_the_context_of_a_unit_comes_back_and_is_stored_once() -> None:
    prompt = [{"role": "system", "content": "Plan trips"}, {"role": "user", "content": "Kyoto, please"}]
    with open_memory() as memory:
        scope = memory.scope(user="alice")
        units = [scope.store(f"Conclusion {n}", context=prompt) for n in range(3)]
        bare = scope.store("Said without context")
        assert [scope.context(unit) for unit in (*units, bare)] == [prompt, prompt, prompt, None]
        assert len({unit.lineage.context for unit in units}) == 1
        with memory._core.database.reading() as connection:
            assert connection.execute("SELECT count(*) FROM context").get == 1


def test_what_a_model_saw_beside_its_prompt_is_in_its_edges() -> None:
    with open_memory() as memory:
        model = memory.scope(user="alice").acting_as("agent:planner")
        fact = memory.scope(user="alice").store("Trains leave at nine")
        model.retrieve("when do trains leave?")
        said = model.store("Leave by nine", context="the prompt")
        assert [(edge.parent, edge.role.label) for edge in said.lineage.dependencies] == [(fact.ref, "exposed")]
        assert model.context(said) == "the prompt"

"""In what order a tool or a model is told what its unit rests on: always the same, whichever of it was replaced."""

from __future__ import annotations

from collections.abc import Sequence

from tests.support import contents, open_memory

import memlineage as ml


def test_a_tool_is_told_parents_in_the_order_in_which_their_units_were_first_written() -> None:
    told = []

    def difference(unit: ml.Unit, parents: Sequence[ml.Unit]) -> str:
        told.append(contents(parents))
        return " minus ".join(contents(parents))

    with open_memory() as memory:
        memory.register_tool("difference", refresh=difference)
        trip = memory.scope(user="alice")
        income, spent = (trip.store(text, creator="user:alice") for text in ("900", "612"))
        trip.store("900 minus 612", creator="tool:difference", depends_on=[income, spent])
        trip.update(income, "950", creator="user:alice")
        trip.replay()
        trip.update(spent, "700", creator="user:alice")
        trip.replay()
        trip.update(income, "800", creator="user:alice")
        trip.replay()
    assert told == [["950", "612"], ["950", "700"], ["800", "700"]]

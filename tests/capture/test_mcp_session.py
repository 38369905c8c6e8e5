"""MCP sessions of a client, captured and gated, in a loop of one's own and inside of captured tools."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from mcp import Client, MCPError
from mcp_types import CallToolRequest, CallToolRequestParams, CallToolResult, InputRequiredResult, TextContent
from tests.capture import travel
from tests.capture.mcp_servers import HONEST, POISONED, POLICY, WEB, calls, server_of, text

import memlineage as ml
from memlineage.capture import Recorder
from memlineage.mcp import Call, GuardedSession, Message, Reply, guarded

WAYS = ["legacy", "auto"]


@pytest.fixture
def memory() -> Iterator[ml.Memory]:
    with ml.Memory.open(":memory:", policies=[POLICY]) as opened:
        yield opened


@pytest.fixture
def trip(memory: ml.Memory) -> ml.Scope:
    return memory.scope(user="alice")


# The travel task, in a loop of one's own ----------------------------------------------------------------------------


class Loop:
    """A model by script and the tools of MCP servers: the loop that a program writes for itself."""

    def __init__(self, session: GuardedSession, agent: str) -> None:
        self.session, self.conversation, self.agent = session, session.conversation, agent
        self.messages: list[Message] = []

    def user(self, said: str) -> None:
        self.messages.append(Message(role="user", text=said))
        self.conversation.heard(self.messages)

    def says(self, said: str, *calls: tuple[str, str, dict[str, Any]]) -> None:
        asked = tuple(Call(id=id, name=name, arguments=arguments) for id, name, arguments in calls)
        self.conversation.shown(self.messages, agent=self.agent).said(Reply(text=said, calls=asked))
        self.messages.append(Message(role="assistant", text=said, calls=asked))

    async def calls(self, *calls: tuple[str, str, dict[str, Any]]) -> None:
        async def one(id: str, name: str, arguments: dict[str, Any]) -> Message:
            result = await self.session.call_tool(name, arguments, call_id=id)
            return Message(role="tool", text=text(result), call_id=id, name=name, error=result.is_error)

        self.messages += await asyncio.gather(*(one(*call) for call in calls))

    def answered(self, id: str, name: str, said: str) -> None:
        self.messages.append(Message(role="tool", text=said, call_id=id, name=name))


async def _travel(recorder: Recorder, tools: travel.Trip, mode: str) -> None:
    server = server_of(tools.search_flights, tools.search_hotels, tools.forecast)
    async with Client(server, mode=mode) as client:
        planner = Loop(guarded(client, recorder, server="trip", agent=travel.PLANNER), travel.PLANNER)
        planner.user(travel.ASKED)
        planner.says("", *travel.FIRST_CALLS)
        await planner.calls(*travel.FIRST_CALLS)
        planner.says(travel.AGAIN, *travel.SECOND_CALLS)
        hotels, ask = travel.SECOND_CALLS
        await planner.calls(hotels)
        asking = planner.conversation.called(Call(id=ask[0], name=ask[1], arguments=ask[2]))
        with asking.inside():
            expert = Loop(guarded(client, recorder, server="trip", agent=travel.EXPERT), travel.EXPERT)
            expert.user(travel.QUESTION)
            expert.says("", *travel.EXPERT_CALLS)
            # a program knows that it runs in a tool; its sub-agent's calls are the sub-agent's all the same
            await expert.calls(*travel.EXPERT_CALLS)
            expert.says(travel.UMBRELLA)
        asking.returned(travel.UMBRELLA)
        planner.answered(ask[0], ask[1], travel.UMBRELLA)
        planner.says(travel.ANSWER)


@pytest.mark.parametrize("mode", WAYS)
def test_the_travel_task_has_its_lineage(trip: ml.Scope, mode: str) -> None:
    asyncio.run(_travel(Recorder(trip), travel.Trip(), mode))
    plain = _without_server(travel.shape(trip))
    assert plain == travel.EXPECTED
    assert {k.replace("tool:trip/", "tool:"): v for k, v in travel.call_ids(trip).items()} == travel.CALL_IDS


def _without_server(shape: travel.Shape) -> travel.Shape:
    def named(name: str) -> str:
        return name.replace("tool:trip/", "tool:")

    return {
        named(unit): sorted((role, named(parent), weight) for role, parent, weight in edges)
        for unit, edges in shape.items()
    }


# Calls alone: nobody tells what the model said ----------------------------------------------------------------------


def test_a_poisoned_call_is_refused_and_the_honest_one_goes_through(trip: ml.Scope) -> None:
    desk = travel.Desk()
    servers = {"web": server_of(travel.read_web), "desk": server_of(desk.book_flight)}
    _, poisoned, honest = calls(trip, WEB, POISONED, HONEST, servers=servers, user=travel.WANTED)
    [refusal] = trip.list(filter={"kind": "refusal"})
    [action] = trip.list(filter={"kind": "action"})
    assert (poisoned.is_error, honest.is_error, desk.booked) == (True, False, [("NH203", "ANA")])
    assert text(poisoned).startswith("desk/book_flight was refused and did not run")
    assert "pay_to=EVIL: only tool:web/read_web said so (UNTRUSTED)" in text(poisoned)
    assert (refusal.creator, travel.BOOKED in action.content) == ("tool:desk/book_flight", True)


def test_steps_that_nobody_told_of_go_on_from_what_was_answered(trip: ml.Scope) -> None:
    servers = {"web": server_of(travel.read_web)}
    calls(trip, WEB, WEB, servers=servers, user=travel.WANTED)
    user, first, page, second, _ = trip.list()
    assert [unit.creator for unit in (user, first, page, second)] == [
        "user:alice", "agent:assistant", "tool:web/read_web", "agent:assistant",
    ]  # fmt: skip
    edges = [{edge.role.label: edge.parent for edge in unit.lineage.dependencies} for unit in (first, page, second)]
    assert edges == [
        {"depends": user.ref}, {"argument": first.ref}, {"depends": page.ref, "exposed": first.ref},
    ]  # fmt: skip


def test_what_runs_inside_a_captured_tool_belongs_to_it(trip: ml.Scope) -> None:
    async def inside() -> None:
        conversation = Recorder(trip).conversation(agent="planner")
        conversation.heard([Message(role="user", text=travel.WANTED)])
        asked = Call(id="call_1", name="research")
        conversation.shown([Message(role="user", text=travel.WANTED)]).said(Reply(text="", calls=(asked,)))
        research = conversation.called(asked)
        async with Client(server_of(travel.read_web)) as client:
            with research.inside():
                await guarded(client, trip, server="web").call_tool("read_web", {"url": "x"})
        research.returned("Flights are cheap")

    asyncio.run(inside())
    said = {f"{unit.creator} {unit.kind}": unit for unit in trip.list()}
    assert set(said) == {
        "user:alice message", "agent:planner message", "tool:web/read_web observation", "tool:research observation",
    }  # fmt: skip
    page, step = said["tool:web/read_web observation"], said["agent:planner message"]
    assert page.ref in {edge.parent for edge in said["tool:research observation"].lineage.dependencies}
    assert [edge.parent for edge in page.lineage.dependencies] == [step.ref]


def test_fifty_concurrent_sessions_do_not_mix(memory: ml.Memory) -> None:
    def echo(word: str) -> str:
        """Say it again."""
        return f"echo {word}"

    async def one(number: int) -> None:
        scope = memory.scope(user=f"u{number}")
        async with Client(server_of(echo)) as client:
            session = guarded(client, scope, server="echo")
            await session.call_tool("echo", {"word": f"a{number}"})
            await session.call_tool("echo", {"word": f"b{number}"})

    async def all_at_once() -> None:
        await asyncio.gather(*map(one, range(50)))

    asyncio.run(all_at_once())
    found = {
        number: [unit.content for unit in memory.scope(user=f"u{number}").list() if unit.kind == "observation"]
        for number in range(50)
    }
    assert found == {number: [f"echo a{number}", f"echo b{number}"] for number in range(50)}


def test_parallel_calls_of_one_session_are_all_recorded(trip: ml.Scope) -> None:
    async def slow(word: str) -> str:
        """Say it again, later."""
        await asyncio.sleep(0.01)
        return f"echo {word}"

    async def parallel() -> None:
        async with Client(server_of(slow)) as client:
            session = guarded(client, trip, server="echo")
            await asyncio.gather(*(session.call_tool("slow", {"word": str(number)}) for number in range(50)))

    asyncio.run(parallel())
    answers = [unit for unit in trip.list() if unit.kind == "observation"]
    steps = {unit.ref for unit in trip.list() if unit.kind == "message"}
    assert {unit.content for unit in answers} == {f"echo {number}" for number in range(50)}
    assert {edge.parent for unit in answers for edge in unit.lineage.dependencies} == steps


# How calls end ------------------------------------------------------------------------------------------------------


class Broken:
    """A session that fails in the way it is told to."""

    def __init__(self, error: BaseException) -> None:
        self._error = error

    async def call_tool(self, *_: Any, **__: Any) -> Any:
        raise self._error


@pytest.mark.parametrize("error", [MCPError(-32000, "Connection closed"), TimeoutError("too late"), OSError("gone")])
def test_a_call_that_breaks_is_recorded_and_raises_as_before(trip: ml.Scope, error: Exception) -> None:
    with pytest.raises(type(error)):
        asyncio.run(guarded(Broken(error), trip, server="web").call_tool("read_web", {"url": "x"}))
    [failure] = trip.list(filter={"kind": "error"})
    assert (failure.creator, str(error) in failure.content) == ("tool:web/read_web", True)


def test_an_error_of_a_tool_is_recorded_as_one(trip: ml.Scope) -> None:
    def fails() -> str:
        """Fail."""
        raise ValueError("no")

    [result] = calls(trip, ("web", "fails", {}), servers={"web": server_of(fails)})
    [failure] = trip.list(filter={"kind": "error"})
    assert (result.is_error, failure.creator) == (True, "tool:web/fails")


def test_a_cancelled_call_is_no_answer(trip: ml.Scope) -> None:
    async def cancelled() -> None:
        async def forever() -> str:
            """Never end."""
            await asyncio.sleep(3600)
            return "late"

        async with Client(server_of(forever)) as client:
            task = asyncio.create_task(guarded(client, trip, server="web").call_tool("forever", {}))
            await asyncio.sleep(0.05)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(cancelled())
    assert [unit.kind for unit in trip.list()] == ["message", "error"]


def test_a_gated_call_that_is_cancelled_is_an_action_that_failed(trip: ml.Scope) -> None:
    async def cancelled() -> None:
        async def book_flight(flight: str, pay_to: str) -> str:
            """Never end."""
            await asyncio.sleep(3600)
            return flight + pay_to

        conversation = Recorder(trip).conversation()
        conversation.heard([Message(role="user", text=travel.WANTED)])
        async with Client(server_of(book_flight)) as client:
            session = guarded(client, conversation, server="desk")
            task = asyncio.create_task(session.call_tool("book_flight", HONEST[2]))
            await asyncio.sleep(0.05)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(cancelled())
    [action] = trip.list(filter={"kind": "action"})
    assert action.metadata["outcome"] == "failed"


def test_resources_and_prompts_of_a_server_are_captured(trip: ml.Scope) -> None:
    server = server_of()
    server.resource("note://page", name="page")(lambda: travel.PAGE)
    server.prompt("plan")(lambda: "Plan it")

    async def reads() -> tuple[str, int]:
        async with Client(server) as client:
            session = guarded(client, trip, server="web")
            page = await session.read_resource("note://page")
            return page.contents[0].text, len((await session.get_prompt("plan")).messages)

    assert asyncio.run(reads()) == (travel.PAGE, 1)
    assert [(unit.creator, unit.content) for unit in trip.list() if unit.kind == "observation"] == [
        ("tool:web/resources.read", travel.PAGE), ("tool:web/prompts.get", "user: Plan it"),
    ]  # fmt: skip


def test_what_only_programs_read_of_an_answer_is_recorded_too(trip: ml.Scope) -> None:
    def two_faced() -> CallToolResult:
        """Says one thing and means another."""
        return CallToolResult(content=[TextContent(type="text", text="All well")], structured_content={"pay": "EVIL"})

    calls(trip, ("web", "two_faced", {}), servers={"web": server_of(two_faced)})
    [answer] = trip.list(filter={"kind": "observation"})
    assert answer.content == 'All well\n{"pay":"EVIL"}'


def test_a_session_keeps_all_that_it_could_do(trip: ml.Scope) -> None:
    async def lists() -> tuple[list[str], str]:
        async with Client(server_of(travel.read_web)) as client:
            session = guarded(guarded(client, trip, server="old"), trip, server="web")
            await session.call_tool("read_web", {"url": "x"}, 5.0)
            return [tool.name for tool in (await session.list_tools()).tools], session.server_info.name

    assert asyncio.run(lists()) == (["read_web"], "anything")
    assert [unit.creator for unit in trip.list() if unit.kind == "observation"] == ["tool:web/read_web"]


def test_one_program_serves_many_users_by_a_callable_source(memory: ml.Memory) -> None:
    async def serve(user: str) -> None:
        async with Client(server_of(travel.read_web)) as client:
            session = guarded(client, lambda _: memory.scope(user=user), server="web")
            await session.call_tool("read_web", {"url": user})

    for user in ("alice", "bob"):
        asyncio.run(serve(user))
    assert [len(memory.scope(user=user).list()) for user in ("alice", "bob", "carol")] == [2, 2, 0]


def test_a_conversation_goes_on_in_another_process_by_its_thread(trip: ml.Scope) -> None:
    async def once() -> None:
        async with Client(server_of(travel.read_web)) as client:
            session = guarded(client, Recorder(trip), server="web", thread="t1")
            step = Reply(text="Look", id="m1", calls=(Call(id="c1", name="read_web"),))
            session.conversation.shown([]).said(step)
            await session.call_tool("read_web", {"url": "x"}, call_id="c1")

    asyncio.run(once())
    asyncio.run(once())
    assert [unit.kind for unit in trip.list()] == ["message", "observation"]


class Asking:
    """A session whose server wants something first."""

    def __init__(self) -> None:
        self.results = [
            InputRequiredResult(input_requests={}, request_state="1"),
            CallToolResult(content=[TextContent(type="text", text="done")]),
        ]

    async def call_tool(self, *_: Any, **__: Any) -> Any:
        return self.results.pop(0)


def test_a_server_that_asks_back_has_not_answered_yet(trip: ml.Scope) -> None:
    async def twice() -> None:
        session = guarded(Asking(), trip, server="web")
        await session.call_tool("fill", {}, allow_input_required=True)
        await session.call_tool("fill", {}, request_state="1", allow_input_required=True)

    asyncio.run(twice())
    assert [unit.content for unit in trip.list() if unit.creator == "tool:web/fill"] == ["done"]


def test_a_client_over_a_real_wire_is_captured_alike(trip: ml.Scope, tmp_path: Any) -> None:
    import sys

    from mcp import StdioServerParameters

    program = tmp_path / "server.py"
    program.write_text(
        "from mcp.server.mcpserver import MCPServer\n"
        "server = MCPServer('web', log_level='CRITICAL')\n"
        "server.add_tool(lambda url: 'NH203 flies at noon', name='read_web', description='Read')\n"
        "server.run()\n",
        encoding="utf-8",
    )

    async def reads() -> str:
        async with Client(StdioServerParameters(command=sys.executable, args=[str(program)])) as client:
            return text(await guarded(client, trip, server="web").call_tool("read_web", {"url": "x"}))

    assert asyncio.run(reads()) == "NH203 flies at noon"
    assert [unit.content for unit in trip.list(filter={"kind": "observation"})] == ["NH203 flies at noon"]


def test_there_is_no_way_around_it(trip: ml.Scope) -> None:
    desk = travel.Desk()

    async def tries() -> list[Any]:
        async with Client(server_of(desk.book_flight)) as client:
            session = guarded(client, trip, server="desk")
            beneath = await session.session.call_tool("book_flight", POISONED[2])
            request = CallToolRequest(params=CallToolRequestParams(name="book_flight", arguments=POISONED[2]))
            with pytest.raises(ml.InvalidInputError, match="use that"):
                await session.session.send_request(request, CallToolResult)
            return [beneath.is_error, [tool.name for tool in (await session.session.list_tools()).tools]]

    assert (asyncio.run(tries()), desk.booked) == ([True, ["book_flight"]], [])

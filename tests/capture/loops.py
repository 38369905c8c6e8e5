"""An agent loop as frameworks have it, with a scripted model, driving a recorder as an adapter does."""

from __future__ import annotations

from typing import Any

from tests.capture import travel

import memlineage as ml
from memlineage.capture.conversation import Conversation
from memlineage.capture.messages import Call, Message, Reply
from memlineage.capture.recorder import Recorder


def user(text: str, **named: Any) -> Message:
    return Message(role="user", text=text, **named)


def calls(script: list[tuple[str, str, dict[str, Any]]]) -> tuple[Call, ...]:
    return tuple(Call(id=id, name=name, arguments=arguments) for id, name, arguments in script)


class Agent:
    """An agent loop as frameworks have it, with a scripted model."""

    def __init__(self, conversation: Conversation) -> None:
        self.conversation = conversation
        self.prompt: list[Message] = []

    def hear(self, *messages: Message) -> None:
        self.prompt += messages
        self.conversation.heard(self.prompt)

    def say(self, text: str, *asked: tuple[str, str, dict[str, Any]]) -> ml.Unit:
        turn = self.conversation.shown(self.prompt)
        reply = Reply(text=text, calls=calls(list(asked)))
        self.prompt.append(Message(role="assistant", text=text, calls=reply.calls))
        return turn.said(reply)

    def use(self, asked: tuple[str, str, dict[str, Any]], function: Any) -> str:
        [call] = calls([asked])
        running = self.conversation.called(call)
        told = running.permit()
        if told is None:
            try:
                with running.inside():
                    told = str(function(**call.arguments))
            except TimeoutError as error:
                told = running.failed(error)
            else:
                told = running.returned(told, told) or told
        self.prompt.append(Message(role="tool", text=told, call_id=call.id, name=call.name))
        return told


def plan(scope: ml.Scope, thread: str | None = None, recorder: Recorder | None = None) -> str:
    recorder = recorder or Recorder(scope)
    trip = travel.Trip()

    def ask_weather(question: str) -> str:
        expert = Agent(recorder.conversation(agent=travel.EXPERT))
        expert.hear(user(question))
        expert.say("", *travel.EXPERT_CALLS)
        expert.use(travel.EXPERT_CALLS[0], trip.forecast)
        return expert.say(travel.UMBRELLA).content

    planner = Agent(recorder.conversation(thread, agent=travel.PLANNER))
    planner.hear(user(travel.ASKED))
    planner.say("", *travel.FIRST_CALLS)
    planner.use(travel.FIRST_CALLS[0], trip.search_flights)
    planner.use(travel.FIRST_CALLS[1], trip.search_hotels)
    planner.say(travel.AGAIN, *travel.SECOND_CALLS)
    planner.use(travel.SECOND_CALLS[0], trip.search_hotels)
    planner.use(travel.SECOND_CALLS[1], ask_weather)
    return planner.say(travel.ANSWER).content

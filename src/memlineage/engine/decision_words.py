"""The words in which decisions are explained, one table per language. What documents say stays in their own words."""

from __future__ import annotations

from typing import Final

import msgspec

__all__ = ["WORDS", "DecisionWords"]


class DecisionWords(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that an explanation of a decision says, with named places to fill."""

    effects: dict[str, str]
    head: str
    of: str
    ahead: str
    decided: str
    remembered: str
    in_force: str
    replaced: str
    determining: str
    fired: str
    built_in: str
    written_in: str
    nothing: str
    found: str
    reason: str
    owed: str
    owed_at: str
    score: str
    kept: str
    broken: str
    cost: str
    flags: str
    error: str
    tried: str
    deferred: str
    outcomes: dict[str, str]
    masked: str
    not_kept: str
    differs: str
    same: str
    of_today: str
    unknown: str
    why: str
    colon: str
    comma: str
    aside: str


_ENGLISH: Final = DecisionWords(
    effects={
        "allow": "allowed",
        "flag": "allowed, flagged",
        "ask": "asks for approval",
        "withhold": "withheld",
        "deny": "denied",
    },
    head="{action}{of}: {effect}",
    of=" of {unit}",
    ahead="as things stand at {at}; nothing was done or logged",
    decided="decided at {at}, from the log; decision {id}",
    remembered="decided at {at}, from this process's memory; decision {id}",
    in_force="by policy {revision}, which is in force",
    replaced="by policy {revision}, which another has replaced since",
    determining="decided by {rule}",
    fired="also fired: {rule}",
    built_in="built in",
    written_in="written in {place}",
    nothing="no rule was needed",
    found="flagged since {rule}, in async mode, was judged",
    reason="because {reason}",
    owed="must {kind}, says {rule}",
    owed_at=" (cost {cost})",
    score="score {score}",
    kept="{rule} kept ({weight})",
    broken="{rule} broken ({weight})",
    cost="cost {cost}",
    flags="flags: {flags}",
    error="went wrong: {error}",
    tried="in shadow mode, without influence: {rule} would {action}",
    deferred="put off until after the answer: {rule}",
    outcomes={
        "waiting": "waits to be judged",
        "found": "fired afterwards, at {at}",
        "nothing": "did not fire afterwards",
        "quarantined": "done: it is held back",
        "lifted": "done, and taken back since",
        "refreshed": "done: {by} replaced it",
        "pending": "not done so far",
        "approved": "approved: {by}",
        "acted": "approved, and used by {by}",
        "unapproved": "not approved so far",
    },
    masked="kept back from the log: {names}",
    not_kept="the policy that decided is not kept here, so it cannot be asked again",
    differs="asked again with what is known today, that policy says: {effect}",
    same="asked again, that policy says the same",
    of_today="of today, since things were written meanwhile: {names}",
    unknown="not kept, so not known today: {names}",
    why="Rule by rule:",
    colon=": ",
    comma=", ",
    aside=", ",
)

_CHINESE: Final = DecisionWords(
    effects={"allow": "允许", "flag": "允许，带标记", "ask": "需要批准", "withhold": "不予显示", "deny": "拒绝"},
    head="{action}{of}：{effect}",
    of=" {unit}",
    ahead="按 {at} 的情况；没有执行，也没有记录",
    decided="决定于 {at}，取自决定日志；决定 {id}",
    remembered="决定于 {at}，取自本进程的内存；决定 {id}",
    in_force="依据策略 {revision}，该策略仍然有效",
    replaced="依据策略 {revision}，该策略此后已被取代",
    determining="由 {rule} 决定",
    fired="同时触发：{rule}",
    built_in="内置",
    written_in="写在 {place}",
    nothing="不需要任何规则",
    found="异步规则 {rule} 判断之后一直带标记",
    reason="原因：{reason}",
    owed="{rule} 要求：{kind}",
    owed_at="（费用 {cost}）",
    score="得分 {score}",
    kept="{rule} 满足（{weight}）",
    broken="{rule} 违反（{weight}）",
    cost="费用 {cost}",
    flags="标记：{flags}",
    error="出错：{error}",
    tried="影子模式，没有影响：{rule} 本会 {action}",
    deferred="推迟到答复之后：{rule}",
    outcomes={
        "waiting": "等待判断",
        "found": "事后于 {at} 触发",
        "nothing": "事后没有触发",
        "quarantined": "已执行：已被隔离",
        "lifted": "已执行，此后已被撤回",
        "refreshed": "已执行：由 {by} 取代",
        "pending": "尚未执行",
        "approved": "已批准：{by}",
        "acted": "已批准，并由 {by} 使用",
        "unapproved": "尚未批准",
    },
    masked="未记入日志：{names}",
    not_kept="当时的策略没有保存在这里，因此无法重新判断",
    differs="以今天所知重新判断，该策略的答复是：{effect}",
    same="重新判断，该策略的答复相同",
    of_today="此后有新的写入，以下取自今天：{names}",
    unknown="没有保存，因此今天不得而知：{names}",
    why="逐条规则：",
    colon="：",
    comma="、",
    aside="，",
)

WORDS: Final = {"en": _ENGLISH, "zh": _CHINESE}

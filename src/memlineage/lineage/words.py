"""The words of explanations, one table per language."""

from __future__ import annotations

from typing import Final

import msgspec

from memlineage.model.principal import Integrity
from memlineage.model.state import CauseKind, Status
from memlineage.model.unit import Role

__all__ = ["LANGUAGES", "Words"]


class Words(msgspec.Struct, frozen=True, kw_only=True):
    """Everything an explanation says, with named places to fill."""

    headline: str
    root: str
    verbs: dict[str, str]
    said: str
    edge: str
    told: str
    held: str
    because: str
    blame: str
    hidden: str
    status: dict[Status, str]
    causes: dict[CauseKind, str]
    roles: dict[Role, str]
    integrity: dict[Integrity, str]


_ENGLISH: Final = Words(
    headline="“{content}” is {status}.",
    root="said",
    verbs={
        "user": "said",
        "system": "recorded",
        "tool": "returned",
        "agent": "concluded",
        "reasoning": "concluded",
        "external": "said",
    },
    said="{who} {verb} “{content}” ({when}, {status})",
    edge=" [{role}, weight {weight}]",
    told="(see above)",
    held="{kind} by {by} on {when}",
    because=": {reason}",
    blame="It is held down by “{content}”, which is {status}.",
    hidden="{count} more it rests on stand in walls that you cannot see into.",
    status={
        Status.ACTIVE: "active",
        Status.PENDING: "waiting for verification",
        Status.CONTAMINATED: "contaminated",
        Status.ERASED: "erased",
        Status.INVALID: "invalid",
        Status.QUARANTINED: "quarantined",
        Status.RETRACTED: "retracted",
        Status.EXPIRED: "expired",
        Status.SUPERSEDED: "superseded",
        Status.ARCHIVED: "archived",
    },
    causes={
        CauseKind.ERASED: "erased",
        CauseKind.INVALID: "found wrong",
        CauseKind.QUARANTINED: "quarantined",
        CauseKind.RETRACTED: "retracted",
        CauseKind.EXPIRED: "expired",
        CauseKind.ARCHIVED: "archived",
    },
    roles={
        Role.DEPENDS: "rests on it",
        Role.EXPOSED: "was shown it",
        Role.ARGUMENT: "got it as an argument",
        Role.SUMMARISES: "summarises it",
        Role.SHARED: "copy of it",
        Role.REVISES: "revises it",
    },
    integrity={
        Integrity.TRUSTED: "Nothing untrusted went into it: it may justify any action.",
        Integrity.INTERNAL: "It rests on tools or agents of yours: it may justify what accepts INTERNAL sources.",
        Integrity.UNTRUSTED: "Something untrusted or unknown went into it: it justifies no sensitive action.",
    },
)

_CHINESE: Final = Words(
    headline="“{content}”目前状态：{status}。",
    root="说",
    verbs={
        "user": "说",
        "system": "记录",
        "tool": "返回",
        "agent": "推断",
        "reasoning": "推断",
        "external": "说",
    },
    said="{who} {verb}：“{content}”（{when}，{status}）",
    edge="［{role}，权重 {weight}］",
    told="（见上文）",
    held="{when} 由 {by} {kind}",
    because="：{reason}",
    blame="它受“{content}”牵连，后者{status}。",
    hidden="另有 {count} 条依据位于您无权查看的范围内。",
    status={
        Status.ACTIVE: "有效",
        Status.PENDING: "待核实",
        Status.CONTAMINATED: "受污染",
        Status.ERASED: "已删除",
        Status.INVALID: "已失效",
        Status.QUARANTINED: "已隔离",
        Status.RETRACTED: "已撤回",
        Status.EXPIRED: "已过期",
        Status.SUPERSEDED: "已被取代",
        Status.ARCHIVED: "已归档",
    },
    causes={
        CauseKind.ERASED: "删除",
        CauseKind.INVALID: "判定为错误",
        CauseKind.QUARANTINED: "隔离",
        CauseKind.RETRACTED: "撤回",
        CauseKind.EXPIRED: "过期",
        CauseKind.ARCHIVED: "归档",
    },
    roles={
        Role.DEPENDS: "依据",
        Role.EXPOSED: "曾见到",
        Role.ARGUMENT: "作为参数",
        Role.SUMMARISES: "概括",
        Role.SHARED: "副本",
        Role.REVISES: "修订",
    },
    integrity={
        Integrity.TRUSTED: "其来源均可信：可作为任何操作的依据。",
        Integrity.INTERNAL: "其依据来自自有工具或智能体：可作为接受 INTERNAL 来源的操作的依据。",
        Integrity.UNTRUSTED: "其中含有不可信来源或来源不明：不能作为敏感操作的依据。",
    },
)

LANGUAGES: Final = {"en": _ENGLISH, "zh": _CHINESE}

"""What Chinese sentences state about the speaker and the journey: patterns, and the property that each tells.

As in English: a sentence that asks, supposes, quotes, or tells what others say states nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final

from memlineage.capture.extraction_keys import Found, Said, key_named

__all__ = ["chinese"]

_SENTENCE: Final = re.compile(r"(?<=[。！？!?])|[；;\n]+")
_STATES_NOTHING: Final = re.compile(
    r"[？?]|[吗呢么]\W*$|[“”\"「」《]|如果|要是|假如|假设|假装|假定|也许|可能|说不定|听说|听.{0,6}说|希望|会不会|是不是|能不能|翻译|写一"
    r"|电影|小说|故事|小时候|以前|曾经|去年|系统|用户|人工智能|他们|[他她]说|[他她]告诉|她|或者|之间|忽略|记住|梦"
)
_NUM: Final = r"(?:\d{1,3}|[一二两三四五六七八九十]{1,3})"
_DATE: Final = rf"(?:{_NUM}月{_NUM}[日号]|下?周[一二三四五六日天]|{_NUM}[日号]|明天|后天|下个?月|下周)"
_MONEY: Final = r"(?:[\d,.]+|[一二两三四五六七八九十百千万]+)\s?(?:万|千)?\s?(?:元|块钱|块|美元|欧元|日元|人民币)"
_HOTEL: Final = r"[\u4e00-\u9fffA-Za-z·]{1,14}?(?:酒店|客栈|宾馆|旅馆|民宿|饭店|青旅|度假村)"
_SEAT: Final = r"靠窗|靠过道|靠走道|前排|后排|中间"
_END: Final = r"(?=[，,。！!、；\s]|$)"

_PLACE: Final = re.compile(r"(?![看睡洗吃喝买玩问做找换出开])[\u4e00-\u9fff]{2,6}?")
_NO_PLACE: Final = re.compile(r"[的了吧间班觉课]$|问题|这|那|哪|什么|厕所|医院|学校")
_NO_THING: Final = re.compile(r"[你我他她它这那哪]|什么|怎么|事情|想法|的|了|说|做|被|自己|一点|太")


def _fits(pattern: str | re.Pattern[str], *, unless: re.Pattern[str] | None = None) -> Callable[[str], str | None]:
    compiled = re.compile(pattern) if isinstance(pattern, str) else pattern

    def check(text: str) -> str | None:
        value = re.sub(r"[吧啊呀哦了的]+$", "", text.strip())
        fits = compiled.fullmatch(value) is not None and (unless is None or unless.search(value) is None)
        return value if fits else None

    return check


_CHECKS: Final[dict[str, Callable[[str], str | None]]] = {
    "destination": _fits(_PLACE, unless=_NO_PLACE), "origin": _fits(_PLACE, unless=_NO_PLACE),
    "home": _fits(_PLACE, unless=_NO_PLACE), "departure": _fits(_DATE), "return": _fits(_DATE), "dates": _fits(_DATE),
    "birthday": _fits(_DATE), "budget": _fits(_MONEY), "party size": _fits(rf"{_NUM}(?:个人|人|位|个)"),
    "nights": _fits(rf"{_NUM}(?:个?晚上?|夜|天)"), "hotel": _fits(_HOTEL, unless=_NO_PLACE), "seat": _fits(_SEAT),
    "name": _fits(r"[\u4e00-\u9fff]{2,4}", unless=re.compile(r"^[不了没出]|[的了]")),
    "email": _fits(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+"), "phone": _fits(r"\+?\d[\d -]{5,18}\d"),
    "job": _fits(r"[\u4e00-\u9fff]{2,8}", unless=_NO_THING), "diet": _fits(r"吃素|素食者|纯素|清真|乳糖不耐受"),
    "airline": _fits(r"[\u4e00-\u9fff]{2,8}航空?"), "transport": _fits(r"高铁|火车|飞机|大巴|自驾|轮船"),
    "cabin": _fits(r"(?:超级)?经济舱|商务舱|头等舱"),
}  # fmt: skip
_thing: Final = _fits(r"[\u4e00-\u9fffA-Za-z]{1,8}", unless=_NO_THING)

_RULES: Final[tuple[tuple[str, re.Pattern[str]], ...]] = tuple(
    (key, re.compile(pattern))
    for key, pattern in (
        ("destination", rf"(?:打算|想|要|准备|计划|还是|决定|那就|就)去(?P<v>[\u4e00-\u9fff]{{2,7}}?){_END}"),
        ("destination", rf"目的地(?:是|改成|改为|换成)(?P<v>[\u4e00-\u9fff]{{2,7}}?){_END}"),
        ("origin", r"从(?P<v>[\u4e00-\u9fff]{2,6}?)(?:出发|走|飞|坐)"),
        ("departure", rf"(?P<v>{_DATE})(?:就|再)?(?:出发|动身|走)"),
        ("departure", rf"出发(?:日期|时间)?(?:是|定在|改到|改成|改为)(?P<v>{_DATE})"),
        ("return", rf"(?P<v>{_DATE})(?:回来|返回|返程|回程|回家)"),
        ("budget", rf"预算(?:大概|大约)?(?:是|为|有|不超过|改成|改为|提高到|降到)(?P<v>{_MONEY})"),
        ("party size", rf"(?:一共|总共|我们|共)(?:是|有)?(?P<v>{_NUM}(?:个人|人|位))"),
        ("nights", rf"住(?P<v>{_NUM}(?:晚|夜|天))"),
        ("hotel", rf"(?:住|订|预订|选)(?:在|了)?(?P<v>{_HOTEL}){_END}"),
        ("seat", rf"(?:想要|要|换成|改成|坐|选|喜欢)(?:一个)?(?P<v>{_SEAT})"),
        ("transport", r"(?:想|打算|我们|要|就)坐(?P<v>高铁|火车|飞机|大巴|轮船)"),
        ("cabin", r"(?:想要|要|坐|选|订)(?P<v>(?:超级)?经济舱|商务舱|头等舱)"),
        ("name", rf"(?:我叫|我的名字是|我的名字叫|叫我)(?P<v>[\u4e00-\u9fff]{{2,4}}){_END}"),
        ("home", rf"我(?:现在)?住在?(?P<v>[\u4e00-\u9fff]{{2,6}}?){_END}"),
        ("job", rf"我(?:的职业是|是一[名位个])(?P<v>[\u4e00-\u9fff]{{2,8}}?){_END}"),
        ("birthday", rf"我的生日是(?P<v>{_DATE})"),
        ("email", r"我的(?:电子)?邮箱(?:地址)?是\s*(?P<v>[\w.+-]+@[\w-]+(?:\.[\w-]+)+)"),
        ("phone", r"我的.*?(?:电话|手机号?|号码)(?:号码)?是\s*(?P<v>\+?\d[\d -]{5,18}\d)"),
        ("diet", r"我(?:是|一直|只)?(?P<v>吃素|素食者|纯素|乳糖不耐受)"),
    )
)
_MANY: Final[tuple[tuple[str, re.Pattern[str], str | None], ...]] = (
    (
        "allergy",
        re.compile(r"(?:(?<![\u4e00-\u9fff])我|而且|并且|还)(?:也|还)?对(?P<v>[\u4e00-\u9fff]{1,6}?)(?:严重)?过敏"),
        None,
    ),
    (
        "taste",
        re.compile(
            rf"(?<![\u4e00-\u9fff])我(?:现在|已经|从来|一直|也|都)*(?:不吃|不喝|不爱吃|不爱喝|不喜欢吃|不喜欢喝|不喜欢|讨厌|不能吃)"
            rf"(?P<v>[\u4e00-\u9fffA-Za-z]{{1,9}}?){_END}"
        ),
        "{who}不要{v}",
    ),
    (
        "taste",
        re.compile(
            rf"(?<![\u4e00-\u9fff])我(?:也|很|最|特别|非常|一直|现在)*(?:喜欢|爱)(?:吃|喝|看|听)"
            rf"?(?P<v>[\u4e00-\u9fffA-Za-z]{{1,9}}?){_END}"
        ),
        None,
    ),
    ("taste", re.compile(rf"改(?:吃|喝)(?P<v>[\u4e00-\u9fffA-Za-z]{{1,8}}?){_END}"), None),
)
_NOT: Final = re.compile(r"是(?P<new>[^，,。是]{1,12}?)[，,]?(?:而)?不是(?P<old>[^，,。]{1,12}?)(?=[，,。！]|$)")
_MEANT: Final = re.compile(rf"(?:我说的是|我是说|我指的是|应该是)(?P<v>[^，,。]{{2,14}}?){_END}")
_CHANGE: Final = re.compile(
    rf"(?:把)?(?P<key>[\u4e00-\u9fff]{{2,5}}?)(?:改成|改为|改到|换成|定为|提高到|降到)(?P<v>[^，,。！]{{1,14}}?){_END}"
)
_CANCEL: Final = re.compile(
    r"(?:取消(?:了|掉)?(?P<a>[\u4e00-\u9fff]{2,4}?)(?=[，,。！吧了]|$)|(?P<b>[\u4e00-\u9fff]{2,4}?)(?:不用|不要|别"
    r"|不必|先不)(?:再)?(?:订|定|预订|安排)?了)"
)


def chinese(text: str, said: Said) -> Iterator[Found]:
    """What a text states, in its order."""
    for sentence in _SENTENCE.split(text):
        bare = sentence.strip()
        if bare and _STATES_NOTHING.search(bare) is None:
            for found in _of(bare, said):
                said.add(found)
                yield found


def _of(sentence: str, said: Said) -> Iterator[Found]:
    known = set()
    for match in _CANCEL.finditer(sentence):
        key = key_named(match["a"] or match["b"])
        value = None if key is None else said.value_of(key)
        if key is not None and value is not None:
            known.add(key)
            yield Found(key, value, retracts=True)
    for found in _corrections(sentence, said):
        known.add(found.key)
        yield found
    for key, pattern in _RULES:
        for match in () if key in known else pattern.finditer(sentence):
            value = _CHECKS[key](match["v"])
            if value is not None:
                known.add(key)
                yield Found(key, value)
                break
    for key, pattern, says in _MANY:
        for match in pattern.finditer(sentence):
            value = _thing(match["v"])
            if value is not None:
                yield Found(key, value, says=says)


def _corrections(sentence: str, said: Said) -> Iterator[Found]:
    for match in _NOT.finditer(sentence):
        old = said.with_value(match["old"])
        value = None if old is None or old[0] not in _CHECKS else _CHECKS[old[0]](match["new"])
        if old is not None and value is not None:
            yield Found(old[0], value)
            return
    meant = _MEANT.search(sentence)
    if meant is not None:
        key = said.newest([key for key, check in _CHECKS.items() if check(meant["v"]) is not None])
        if key is not None:
            yield Found(key, _CHECKS[key](meant["v"]) or meant["v"])
            return
    for match in _CHANGE.finditer(sentence):
        key = key_named(match["key"].removeprefix("把"))
        value = None if key is None or key not in _CHECKS else _CHECKS[key](match["v"])
        if key is not None and value is not None:
            yield Found(key, value)

"""Texts to measure with: sentences of common words, as frequent as words are (Zipf), the same ones in every run."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final

__all__ = ["LANGUAGES", "questions", "sentences"]

_ENGLISH: Final = (
    "time people way day work man world life hand part child eye woman place week case point company number group "
    "problem fact money house water room mother area book night story job word business issue side kind head friend "
    "father power hour game line end member law car city name team minute idea body back parent face door health "
    "person art war history party result change morning reason research girl guy moment air teacher force education "
    "flight hotel ticket train price market budget report order email meeting project client doctor music garden "
    "coffee dinner kitchen window airport station bridge river winter summer weather holiday birthday passport "
    "insurance contract invoice payment account password server error update release customer address phone "
    "likes needs wants booked moved sold bought asked found keeps plans starts leaves opens closes changed confirmed "
    "cheap early late red blue large small local annual direct quiet busy fresh broken spare formal weekly"
)
_CHINESE: Final = (
    "时间 工作 世界 生活 孩子 问题 公司 项目 会议 报告 客户 价格 预算 市场 航班 酒店 机票 火车 机场 车站 护照 签证 "
    "保险 合同 发票 付款 账户 密码 服务器 错误 更新 版本 地址 电话 邮件 医生 医院 老师 学校 音乐 花园 咖啡 晚饭 厨房 "
    "窗户 大桥 河流 冬天 夏天 天气 假期 生日 朋友 父亲 母亲 城市 房间 早上 晚上 周末 明天 昨天 预订 取消 确认 搬家 "
    "购买 出售 喜欢 需要 计划 开始 离开 打开 关闭 改变 便宜 最早 最晚 红色 蓝色 本地 每年 直达 安静 繁忙 新鲜 正式 每周"
)
_WORDS: Final = {"en": (_ENGLISH.split(), " "), "zh": (_CHINESE.split(), "")}
LANGUAGES: Final = tuple(_WORDS)
"""`en` and `zh`."""


def sentences(language: str, count: int, *, seed: int = 0) -> list[str]:
    """That many statements of eight to fourteen words."""
    chance = random.Random(f"{language} {seed}")
    return [_text(language, chance, chance.randint(8, 14)) for _ in range(count)]


def questions(language: str, count: int) -> list[str]:
    """Queries of four words each: as common as those of the statements, so that many match."""
    chance = random.Random(f"{language} questions")
    return [_text(language, chance, 4) for _ in range(count)]


def _text(language: str, chance: random.Random, length: int) -> str:
    words, space = _WORDS[language]
    return space.join(chance.choices(words, weights=_weights(words), k=length))


def _weights(words: Sequence[str]) -> list[float]:
    return [1 / (rank + 3) for rank in range(len(words))]

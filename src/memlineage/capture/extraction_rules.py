"""An extractor by rules: it ships, runs offline, takes a fraction of a millisecond, and is silent where it is unsure.

It knows what people say of themselves and of a journey that they plan, in English and Chinese, and how they correct
themselves. For everything else, give `extract` a model of yours, or a function.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from memlineage.capture.extraction_chinese import chinese
from memlineage.capture.extraction_english import english
from memlineage.capture.extraction_keys import Lang, Said, state
from memlineage.capture.statements import Statement

__all__ = ["RuleExtractor"]

_HANZI: Final = re.compile(r"[\u4e00-\u9fff]")
_LONGEST: Final = 20_000
"""Characters of a message that are looked at: what is longer is no turn of a dialogue."""


class RuleExtractor:
    """Statements by the rules that ship. What it finds is in the speaker's own words, so it counts as his."""

    verbatim = True

    def __call__(self, text: str, *, speaker: str, earlier: Sequence[Statement] = ()) -> list[Statement]:
        """The statements of a text; the last of those about the same property."""
        lang: Lang = "zh" if _HANZI.search(text) else "en"
        said = Said(earlier, speaker)
        found = (chinese if lang == "zh" else english)(text[:_LONGEST], said)
        stated = [state(one, speaker, lang) for one in found]
        return list({(one.subject, one.key): one for one in stated}.values())

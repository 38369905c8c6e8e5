"""The Python examples of the documentation run, in the order in which a reader meets them.

Every fenced block that opens with ```python is executed; the blocks of one page share a namespace and an
empty working directory. Sessions with `>>>` are checked by doctest instead, their output included.
"""

import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent
FENCE = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def examples(text: str) -> list[tuple[int, str]]:
    """The blocks of a page, each with the number of its first line."""
    blocks = ((text.count("\n", 0, match.start(1)), match.group(1)) for match in FENCE.finditer(text))
    return [(line, code) for line, code in blocks if ">>>" not in code]


def pages() -> list[Path]:
    found = [*REPOSITORY.glob("*.md"), *REPOSITORY.glob("docs/**/*.md")]
    return sorted(page for page in found if examples(page.read_text(encoding="utf-8")))


def run(text: str, name: str) -> None:
    namespace: dict[str, object] = {"__name__": "example"}
    for line, code in examples(text):
        # Leading blank lines make a traceback point at the line of the page.
        exec(compile("\n" * line + code, name, "exec"), namespace)


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(REPOSITORY).as_posix())
def test_the_examples_of_a_page_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run(page.read_text(encoding="utf-8"), str(page))


def test_a_broken_example_fails_at_its_line() -> None:
    page = "# Page\n\n```python\na = 1\n```\n\ntext\n\n```python\nassert a == 2\n```\n"
    with pytest.raises(AssertionError) as caught:
        run(page, "page.md")
    assert caught.traceback[-1].lineno == 9

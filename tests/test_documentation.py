"""The Python examples of the documentation run, in the order in which a reader meets them.

Every fenced block that opens with ```python is executed; the blocks of one page share a namespace and an
empty working directory. A ```text block right below one is what it prints, line by line, `…` standing for anything.
Sessions with `>>>` are checked by doctest instead, their output included.
"""

import re
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import NamedTuple

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent
FENCE = re.compile(r"^```python\n(.*?)^```$(?:\n\n^```text\n(.*?)^```$)?", re.DOTALL | re.MULTILINE)


class Example(NamedTuple):
    """One block: where its code begins, the code, and what it prints if the page says so."""

    line: int
    code: str
    prints: str | None


def examples(text: str) -> list[Example]:
    """The blocks of a page, each with the number of its first line."""
    found = (Example(text.count("\n", 0, match.start(1)), match[1], match[2]) for match in FENCE.finditer(text))
    return [example for example in found if ">>>" not in example.code]


def pages() -> list[Path]:
    found = [*REPOSITORY.glob("*.md"), *REPOSITORY.glob("docs/**/*.md")]
    return sorted(page for page in found if examples(page.read_text(encoding="utf-8")))


def printed_as_told(printed: str, told: str) -> bool:
    """Whether a text is the one on the page."""
    pattern = "".join(".*" if part == "…" else re.escape(part) for part in re.split("(…)", told.strip()))
    return re.fullmatch(pattern, "\n".join(line.rstrip() for line in printed.strip().splitlines())) is not None


def run(text: str, name: str) -> None:
    namespace: dict[str, object] = {"__name__": "example"}
    for line, code, told in examples(text):
        with redirect_stdout(StringIO()) as output:
            # Leading blank lines make a traceback point at the line of the page.
            exec(compile("\n" * line + code, name, "exec"), namespace)
        printed = output.getvalue()
        if told is not None:
            assert printed_as_told(printed, told), f"{name}:{line}: prints\n{printed}\nthe page says\n{told}"


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(REPOSITORY).as_posix())
def test_the_examples_of_a_page_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run(page.read_text(encoding="utf-8"), str(page))


def test_a_broken_example_fails_at_its_line() -> None:
    page = "# Page\n\n```python\na = 1\n```\n\ntext\n\n```python\nassert a == 2\n```\n"
    with pytest.raises(AssertionError) as caught:
        run(page, "page.md")
    assert caught.traceback[-1].lineno == 9


@pytest.mark.parametrize(
    ("told", "fits"),
    [
        ("1\n22", True),
        ("1\n…2", True),
        ("1\n…", True),
        ("1", False),
        ("…\n…\n…", False),
        ("1\n2", False),
        ("1 22", False),
    ],
)  # fmt: skip
def test_the_output_on_a_page_must_be_what_is_printed(told: str, *, fits: bool) -> None:
    page = f"```python\nprint(1)\nprint(22)\n```\n\n```text\n{told}\n```\n"
    if fits:
        run(page, "page.md")
    else:
        with pytest.raises(AssertionError, match="the page says"):
            run(page, "page.md")

"""What the pages of the documentation claim beside their Python: links, policy documents, commands, files, words.

Each check is a function from a page to its faults, and beside each stands a page that it must find fault with.
"""

import re
import shlex
from collections.abc import Callable, Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
import typer

from memlineage.cli.program import app
from memlineage.errors import PolicyDocumentError
from memlineage.model.principal import Authority, Integrity
from memlineage.model.scope import Visibility
from memlineage.model.state import CauseKind, Standing, Status
from memlineage.model.unit import Role
from memlineage.policy import Effect, Mode, PolicySet, defaults, read

REPOSITORY = Path(__file__).resolve().parent.parent
PACKAGE = REPOSITORY / "src" / "memlineage"
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#{1,6} (.+)$", re.MULTILINE)
FILE = re.compile(r"`((?:[\w.-]+/)+[\w.-]+\.(?:py|sql|yaml|json|md|toml))`")

Check = Callable[[Path, str], Iterator[str]]


def prose(text: str) -> str:
    return FENCE.sub("", text)


def blocks(text: str, *languages: str) -> list[str]:
    return [body for language, body in FENCE.findall(text) if language in languages]


def anchors(text: str) -> set[str]:
    """The fragments that a page offers, as GitHub makes them from its headings."""
    plain = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in HEADING.findall(prose(text)))
    return {heading.strip().replace(" ", "-") for heading in plain}


def broken_links(page: Path, text: str) -> Iterator[str]:
    for link in LINK.findall(prose(text)):
        if link.startswith(("https://", "mailto:")):
            continue
        name, _, fragment = link.partition("#")
        target = page.parent / name if name else page
        if not target.exists():
            yield f"{link}: no such file"
        elif fragment and fragment not in anchors(text if target == page else target.read_text(encoding="utf-8")):
            yield f"{link}: no such heading"


def faulty_documents(page: Path, text: str) -> Iterator[str]:
    """A yaml or json block is a policy document, and fits the default set."""
    for place, block in enumerate(blocks(text, "yaml", "json")):
        try:
            PolicySet.of(defaults(), read(block, f"{page.name} block {place}"))
        except PolicyDocumentError as error:
            yield str(error)


def unknown_commands(_: Path, text: str) -> Iterator[str]:
    for line in "\n".join(blocks(text, "sh")).replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if not words or Path(words[0]).name != "memlineage":
            continue
        command: Any = typer.main.get_command(app)
        words = words[1:]
        while hasattr(command, "commands") and words and words[0] in command.commands:
            command, words = command.commands[words[0]], words[1:]
        if hasattr(command, "commands") and words and not words[0].startswith("-"):
            yield f"{line}: no such command"
            continue
        known = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
        for option in (w.partition("=")[0] for w in takewhile(lambda w: w != "--", words) if w.startswith("-")):
            if option not in {*known, "-", "--help", "--version"}:
                yield f"{line}: no option {option}"


def missing_files(_: Path, text: str) -> Iterator[str]:
    """A path in code letters is one of the package or of the repository."""
    for name in FILE.findall(prose(text)):
        places = (PACKAGE / name, PACKAGE.parent / name, REPOSITORY / name)
        if not any(place.exists() for place in places):
            yield f"{name}: no such file"


CHECKS: list[Check] = [broken_links, faulty_documents, unknown_commands, missing_files]
BROKEN: list[tuple[Check, str]] = [
    (broken_links, "[gone](gone.md)"),
    (broken_links, "# Here\n[there](#there)"),
    (faulty_documents, "```yaml\nrules:\n  - {name: x, action: denny}\n```"),
    (unknown_commands, "```sh\nmemlineage forgett --db x\n```"),
    (unknown_commands, "```sh\nmemlineage store x --colour red\n```"),
    (missing_files, "see `engine/nowhere.py`"),
]


def pages() -> list[Path]:
    return sorted([*REPOSITORY.glob("*.md"), *REPOSITORY.glob("docs/**/*.md")])


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("page", pages(), ids=lambda page: page.relative_to(REPOSITORY).as_posix())
def test_a_page_keeps_what_it_promises(page: Path, check: Check) -> None:
    assert list(check(page, page.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize(("check", "text"), BROKEN)
def test_a_check_finds_the_page_that_breaks_it(check: Check, text: str, tmp_path: Path) -> None:
    assert len(list(check(tmp_path / "page.md", text))) == 1


def test_the_glossary_has_every_word_that_is_shown() -> None:
    glossary = (REPOSITORY / "docs" / "glossary.md").read_text(encoding="utf-8")
    words = {
        *(item.value for kind in (Status, Effect, Mode, Visibility) for item in kind),
        *(item.name for kind in (Integrity, Authority) for item in kind),
        *(item.label for kind in (CauseKind, Role) for item in kind),
        *(item.name.lower() for item in Standing),
    }
    assert sorted(word for word in words if f"`{word}`" not in glossary) == []


def test_every_mark_of_a_feature_in_the_code_is_explained() -> None:
    source = "\n".join(path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py"))
    marks = {
        mark for found in re.findall(r"\brows? ([A-H]\d[A-H\d, ]*)", source) for mark in re.findall(r"[A-H]\d+", found)
    }
    told = re.findall(r"^\| ([A-H]\d[^|]*) \|", (REPOSITORY / "docs" / "features.md").read_text("utf-8"), re.MULTILINE)
    assert marks
    assert marks - {mark for entry in told for mark in entry.split(", ")} == set()


def test_every_section_that_the_code_refers_to_exists() -> None:
    source = "\n".join(path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py"))
    numbers = {n for found in re.findall(r"sections? ([\d, and]+)", source) for n in re.findall(r"\d+", found)}
    page = (REPOSITORY / "docs" / "semantics.md").read_text(encoding="utf-8")
    assert numbers - set(re.findall(r"^## (\d+)\.", page, re.MULTILINE)) == set()


def test_both_readmes_tell_the_same() -> None:
    """The translation has the sections, examples and links of the original, in the same order."""
    english, chinese = ((REPOSITORY / name).read_text(encoding="utf-8") for name in ("README.md", "README.zh.md"))
    assert [len(line.split(" ")[0]) for line in re.findall(r"^#+ .+$", prose(english), re.MULTILINE)] == [
        len(line.split(" ")[0]) for line in re.findall(r"^#+ .+$", prose(chinese), re.MULTILINE)
    ]
    swap = {"README.zh.md": "README.md"}
    assert [swap.get(link, link) for link in LINK.findall(english)] == LINK.findall(chinese)


def test_the_figures_stand_between_their_marks() -> None:
    for name in ("README.md", "README.zh.md"):
        text = (REPOSITORY / name).read_text(encoding="utf-8")
        assert re.search(r"<!-- bench:begin -->.+<!-- bench:end -->", text, re.DOTALL), name

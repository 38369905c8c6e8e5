"""The file that says who may come in over HTTP."""

import json
import stat
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import memlineage as ml
from memlineage.server.tokens import TokenFile


def test_a_token_is_known_by_its_secret_and_only_its_hash_is_kept(entry: TokenFile) -> None:
    token, secret = entry.add(actor="agent:planner", user="alice", note="for the planner")
    kept = entry.path.read_text("utf-8")
    assert (entry.bearer(secret), entry.bearer(secret + "x"), secret in kept) == (token, None, False)
    assert stat.S_IMODE(entry.path.stat().st_mode) == 0o600


def test_a_token_that_was_revoked_or_has_expired_is_none(entry: TokenFile) -> None:
    _, passing = entry.add(actor="agent:a", user="alice", expires=datetime(2100, 1, 1, tzinfo=UTC))
    token, secret = entry.add(actor="agent:b", user="alice")
    before = [entry.bearer(text) is not None for text in (passing, secret)]
    entry.revoke(token.id)
    entry.path.write_text(entry.path.read_text("utf-8").replace("2100-01-01", "2020-01-01"), "utf-8")
    assert (before, [entry.bearer(text) for text in (passing, secret)]) == ([True, True], [None, None])


def test_what_another_process_writes_counts_at_once(entry: TokenFile) -> None:
    entry.add(actor="agent:a", user="alice")
    assert len(entry.tokens()) == 1
    token, secret = TokenFile(entry.path).add(actor="agent:b", user="alice")
    assert entry.bearer(secret) == token


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"actor": "user:alice", "user": "alice"}, ml.InvalidInputError, "stands for an agent"),
        ({"actor": "system", "user": "alice"}, ml.InvalidInputError, "stands for an agent"),
        ({"actor": "tool:x", "user": "alice"}, ml.InvalidInputError, "stands for an agent"),
        ({"actor": "nobody", "user": "alice"}, ml.InvalidInputError, "nobody"),
        ({"actor": "agent:a"}, ml.ScopeRequiredError, "user"),
        ({"actor": "agent:a", "user": ""}, ml.InvalidInputError, "user"),
        ({"actor": "agent:a", "user": "a", "expires": datetime(2020, 1, 1, tzinfo=UTC)}, ml.InvalidInputError, "past"),
        ({"actor": "agent:a", "user": "a", "expires": datetime(2040, 1, 1)}, ml.InvalidInputError, "time zone"),  # noqa: DTZ001
    ],
)  # fmt: skip
def test_a_token_stands_for_an_agent_in_a_scope(
    entry: TokenFile, given: Any, error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        entry.add(**given)
    assert not entry.path.exists()


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data["tokens"][0]["token"].update(actor="user:alice"),
        lambda data: data["tokens"][0]["token"].update(actor="system"),
        lambda data: data["tokens"][0]["token"].update(user=None),
        lambda data: data["tokens"][0].pop("sha256"),
        lambda data: data.update(memlineage_tokens=2),
        lambda data: data["tokens"][0].update(host=True),
    ],
)  # fmt: skip
def test_a_file_that_was_tampered_with_lets_nobody_in(entry: TokenFile, change: Any) -> None:
    _, secret = entry.add(actor="agent:a", user="alice")
    data = json.loads(entry.path.read_text("utf-8"))
    change(data)
    entry.path.write_text(json.dumps(data), "utf-8")
    with pytest.raises(ml.MemLineageError):
        entry.bearer(secret)


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o660])
def test_a_file_that_others_can_read_is_refused_with_the_cure(entry: TokenFile, mode: int) -> None:
    _, secret = entry.add(actor="agent:a", user="alice")
    entry.path.chmod(mode)
    with pytest.raises(ml.StoreError, match="chmod 600"):
        entry.bearer(secret)


def test_a_file_that_is_not_there_lets_nobody_in(tmp_path: Path) -> None:
    with pytest.raises(ml.StoreError, match="cannot be read"):
        TokenFile(tmp_path / "none").bearer("x")


ADDING = """
import sys, time
from pathlib import Path
import memlineage as ml
from memlineage.server.tokens import TokenFile
for number in range(25):
    while True:
        try:
            TokenFile(Path(sys.argv[1])).add(actor=f"agent:{sys.argv[2]}-{number}", user="alice")
            break
        except ml.StoreError:
            time.sleep(0.001)
"""


def test_processes_that_add_at_once_lose_nothing(entry: TokenFile) -> None:
    adding = [
        subprocess.Popen([sys.executable, "-c", ADDING, str(entry.path), name], stderr=subprocess.PIPE, text=True)
        for name in "abcd"
    ]
    failures = [process.communicate(timeout=25)[1] for process in adding]
    assert failures == [""] * 4
    assert len({token.actor for token in entry.tokens()}) == 100


def test_two_that_write_at_once_do_not_lose_each_other(entry: TokenFile) -> None:
    entry.add(actor="agent:a", user="alice")
    beside = entry.path.with_name(entry.path.name + ".new")
    beside.touch()
    with pytest.raises(ml.StoreError, match="another process"):
        entry.add(actor="agent:b", user="alice")
    beside.unlink()
    entry.add(actor="agent:b", user="alice")
    assert [token.actor for token in entry.tokens()] == ["agent:a", "agent:b"]

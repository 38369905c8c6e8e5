"""What `memlineage mcp` and `memlineage token` refuse before anything is served."""

import json
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from memlineage.cli.program import app


def type_(*words: str) -> tuple[int, Any]:
    """Exit code, and the error of the JSON document."""
    result = CliRunner(env={"MEMLINEAGE_DB": None}).invoke(app, [*words, "--json"])
    return result.exit_code, json.loads(result.stdout)


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--http"], 2, "--token-file"),
        (["--http", "--user", "alice", "--token-file", "{tokens}"], 2, "token says"),
        (["--http", "--as-host", "--token-file", "{tokens}"], 2, "token says"),
        (["--http", "--token-file", "{tokens}x"], 1, "cannot be read"),
        (["--http", "--host", "0.0.0.0", "--token-file", "{tokens}"], 2, "--allow-host"),
        (["--http", "--host", "::", "--token-file", "{tokens}"], 2, "--allow-host"),
        (["--http", "--host", "192.0.2.1", "--allow-host", "x", "--token-file", "{tokens}"], 1, "listen"),
        (["--as-host", "--as", "planner", "--user", "alice"], 2, "--as-host"),
        (["--as", "user:alice", "--user", "alice"], 2, "agent"),
    ],
)  # fmt: skip
def test_what_cannot_be_served_is_refused(served: Any, entry: Any, options: list[str], code: int, said: str) -> None:
    entry.add(actor="agent:a", user="alice")
    words = [word.format(tokens=entry.path) for word in options]
    exit_code, answer = type_("mcp", str(served.file), *words)
    assert (exit_code, said in answer["error"]["message"]) == (code, True), answer


def test_a_token_is_made_listed_and_revoked(entry: Any) -> None:
    file = str(entry.path)
    code, made = type_("token", "add", file, "--user", "alice", "--as", "planner", "--note", "n\x1b[31m")
    assert (code, made["actor"], entry.bearer(made["secret"]).id) == (0, "agent:planner", made["id"])
    shown = CliRunner().invoke(app, ["token", "list", file])
    assert (shown.exit_code, made["id"] in shown.output, made["secret"] in shown.output, "\x1b" in shown.output) == (
        0, True, False, False,
    )  # fmt: skip
    assert type_("token", "revoke", file, made["id"])[0] == 0
    assert (entry.bearer(made["secret"]), type_("token", "revoke", file, made["id"])[0]) == (None, 2)


def test_a_token_without_a_scope_is_not_made(tmp_path: Path) -> None:
    code, answer = type_("token", "add", str(tmp_path / "t.json"))
    assert (code, answer["error"]["type"], list(tmp_path.iterdir())) == (2, "ScopeRequiredError", [])


def test_small_answers_are_sent_at_once() -> None:
    from memlineage.server.mcp_http import _listening

    with _listening("127.0.0.1", 0) as listening:
        assert listening.proto == socket.IPPROTO_TCP  # asyncio sets TCP_NODELAY by it; else 40 ms pass for each answer


@pytest.mark.parametrize("missing", ["mcp", "uvicorn"])
def test_without_the_extra_it_says_what_to_install(served: Any, missing: str) -> None:
    program = (
        f"import sys; sys.modules[{missing!r}] = None; from memlineage.cli.program import app; "
        f"app(['mcp', {str(served.file)!r}, '--user', 'alice'])"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (run.returncode, "pip install 'memlineage[mcp]'" in run.stderr) == (1, True), run.stderr

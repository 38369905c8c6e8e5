"""One memory in a file, and the command line on it, in this process."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from memlineage.cli.program import app

# What the surroundings of a test run could change in the output.
BARE = {
    "MEMLINEAGE_DB": None, "NO_COLOR": None, "FORCE_COLOR": None, "COLUMNS": "200", "TTY_COMPATIBLE": None,
    "TTY_INTERACTIVE": None, "GITHUB_ACTIONS": None,
}  # fmt: skip


class Desk:
    """Types commands for Alice on one file."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def type(self, *words: str, input: str | None = None, env: dict[str, str | None] | None = None) -> Result:
        """Run a command line as it is; anything but an exit fails the test."""
        result = CliRunner(env={**BARE, **(env or {})}).invoke(app, list(words), input=input)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    def run(self, *words: str, code: int = 0, user: str = "alice", **given: Any) -> str:
        """Run a command in Alice's scope and return what people see."""
        result = self.type(*words, "--db", str(self.file), "--user", user, **given)
        assert result.exit_code == code, result.output
        return result.output

    def ask(self, *words: str, code: int = 0, user: str = "alice", **given: Any) -> Any:
        """Run a command with `--json` and return the document."""
        result = self.type(*words, "--db", str(self.file), "--user", user, "--json", **given)
        assert (result.exit_code, result.stderr) == (code, ""), result.output
        return json.loads(result.stdout)

    def store(self, content: str, *words: str, **given: Any) -> str:
        """Store something and return its id."""
        unit: str = self.ask("store", content, *words, **given)["id"]
        return unit


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    made = Desk(tmp_path / "trip.db")
    assert made.type("init", str(made.file), "--embedder", "lexical").exit_code == 0
    return made


@pytest.fixture
def trip(desk: Desk) -> dict[str, str]:
    """The worked example of the semantics: city <- flight, hotel <- plan; tips apart."""
    city = desk.store("Destination is Kyoto", "--subject", "trip", "--key", "destination", "--tag", "destination")
    flight = desk.store("NH203 costs 612 USD", "--creator", "tool:flight_api", "-d", city, "--tag", "price")
    hotel = desk.store("Ryokan Aoi, 3 nights", "--creator", "tool:hotel_api", "-d", city)
    plan = desk.store("NH203 + Ryokan Aoi", "--creator", "reasoning", "-d", flight, "-d", hotel)
    tips = desk.store("Kyoto: carry cash", "--creator", "external:web")
    return {"city": city, "flight": flight, "hotel": hotel, "plan": plan, "tips": tips}

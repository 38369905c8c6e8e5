"""What every test shares: a repeatable hypothesis profile and the folder of external data sets."""

import os
from collections.abc import Generator
from pathlib import Path

import pytest
from _pytest.doctest import DoctestModule
from hypothesis import settings

REPOSITORY = Path(__file__).resolve().parent.parent
DATA_VARIABLE = "MEMLINEAGE_DATA"

# The same examples on every machine, and no deadline, which would measure the neighbours' load.
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci")


@pytest.fixture(scope="session")
def external_data() -> Path:
    """The folder of the public data sets; where it is absent, the test that asks for it is skipped."""
    named = os.environ.get(DATA_VARIABLE)
    folder = Path(named) if named else REPOSITORY.parent / "shared" / "data"
    if folder.is_dir():
        return folder
    if named:
        # Somebody asked for these tests: a wrong path must not pass as a skip.
        pytest.fail(f"{DATA_VARIABLE} names {named}, which is not a folder; correct it or unset it")
    pytest.skip(f"no external data at ../shared/data; set {DATA_VARIABLE} to the folder that holds it")


@pytest.hookimpl(wrapper=True)
def pytest_collect_file() -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Look for doctests everywhere but here: whoever does skips a module that cannot be imported, and leaves a half of
    it behind, so that a test module with a broken import would pass as one without tests.
    """
    found = yield
    return [each for each in found if not isinstance(each, DoctestModule)]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what asks for external data, so that `-m 'not external_data'` leaves nothing behind."""
    for item in items:
        if "external_data" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.external_data)

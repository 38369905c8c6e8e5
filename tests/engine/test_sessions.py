"""Sessions of clients: one that is forgotten is not washed clean."""

from memlineage.engine.acting import Exposure
from memlineage.engine.sessions import Sessions
from memlineage.model.ids import Ref

PAGE = Ref("01a00000-0000-7000-8000-000000000001", 1)


def sessions(most: int) -> Sessions[Exposure]:
    return Sessions(lambda exposure: exposure, most=most)


def test_each_session_has_its_own() -> None:
    kept = sessions(8)
    kept.of("token", "a", Exposure).show([PAGE])
    seen = {name: kept.of("token", name, Exposure).seen() for name in ("a", "b")}
    assert seen == {"a": (PAGE,), "b": ()}


def test_what_a_forgotten_session_was_shown_passes_to_the_next_ones_of_its_owner() -> None:
    kept = sessions(1)
    kept.of("token", "a", Exposure).show([PAGE])
    kept.of("other", "x", Exposure)
    seen = {owner: kept.of(owner, "a", Exposure).seen() for owner in ("token", "other")}
    assert seen == {"token": (PAGE,), "other": ()}


def test_those_used_last_are_kept() -> None:
    kept = sessions(2)
    first = kept.of("token", "a", Exposure)
    kept.of("token", "b", Exposure)
    kept.of("token", "a", Exposure)
    kept.of("token", "c", Exposure)
    assert kept.of("token", "a", Exposure) is first

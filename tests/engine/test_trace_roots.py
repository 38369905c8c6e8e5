"""A statement that its speaker corrected is a root like the one it replaces."""

import memlineage as ml


def test_a_corrected_statement_is_a_root_of_what_was_concluded_from_it() -> None:
    trip = ml.Memory.open(embedder="lexical").scope(user="alice")
    city = trip.store("Destination is Kyoto", creator="user:alice")
    corrected = trip.update(city, "Destination is Osaka", creator="user:alice")
    plan = trip.store("Stay in Osaka", creator="reasoning", depends_on=[corrected])
    assert [unit.ref for unit in trip.trace(plan).roots] == [corrected.ref]

"""Values only: ids, units, lineage, scopes, principals, states, time. No I/O, no clock, no randomness."""

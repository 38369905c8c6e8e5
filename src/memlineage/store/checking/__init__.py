"""The tables against the ledger, and what is derived against the tables: streaming, in one snapshot.

Theory. An event holds integers, enums, opaque ids and commitments; the values that the commitments are made over lie
in rows, beside their salts. So each authoritative row has one event that accounts for it (a principal, the last of its
events), each event accounts for rows that can be named from it alone, and three questions cover every table: does the
ledger fit together, does every event find its rows as it left them, and is there a row that no event left.

The first two are one pass over the events in their order. Versions are numbered in the order of writing and edges are
kept by child, so cursors over those tables move along with it; rows of rarer acts are looked up by key. The third
needs no list of what was seen: keys of different events differ, so where all events found their rows, counting the
rows says whether there are more. Only where the count is wrong are they gone through for the odd one.

What is derived is checked by local equations: each stored value against the rule applied to the stored values that
it follows from. Lineage has no cycles, so the equations have one solution, and values that satisfy all of them are it.
"""

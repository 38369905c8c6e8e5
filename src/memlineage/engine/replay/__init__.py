"""Replay: what was built on something wrong is made again, and no more than that (semantics.md, section 8; row C4).

`recipes` says how a unit is made and keeps that with it, `planning` what is to be made again and from what, `running` does
it, `leases` keeps two processes from doing it twice. A plan is a value; only what a step finds when its turn comes counts.
"""

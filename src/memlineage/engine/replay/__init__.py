"""Replay: what was built on something wrong is made again, and no more than that (semantics.md, section 8; row C4).

`recipes` says how a unit is made and keeps that with it, `making` runs it for the first time. `planning` says what is
to be made again and from what, `running` does it, and `leases` keeps two processes from doing it twice. A plan is a
value; what counts is what a step finds when its turn comes.
"""

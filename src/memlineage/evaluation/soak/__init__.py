"""Hours of use in half an hour: several processes on one file, all verbs mixed, one of them killed now and then.

    make soak                                            half an hour, four processes
    python -m memlineage.evaluation.soak --minutes 5 --json soak.json

What must hold at the end: nothing that was acknowledged is missing, `assert_consistent` and `verify` find nothing,
every backup opened and held what it had to, and no process grew: the median of its resident memory over the last
third of the run is at most 1.2 times that over the middle third.
"""

"""For people who write stores: the naive oracle, the laws, worlds to run them in, and random histories.

Only `memlineage.testing.strategies` needs hypothesis.
"""

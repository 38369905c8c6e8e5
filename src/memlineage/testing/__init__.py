"""For people who write stores: the naive oracle, the laws, worlds to run them in, and random histories.

Only `memlineage.testing.strategies` needs hypothesis. `memlineage.testing.langchain` has a chat model that says what it
is told to, for tests and examples of agents (extra `langchain`).
"""

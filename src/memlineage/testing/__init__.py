"""For people who write stores: the conformance suite, the naive oracle, faults and strategies."""

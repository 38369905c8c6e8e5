"""The fast form of a set of policies: decides as `combining.decide` does, on the few rules that can matter."""

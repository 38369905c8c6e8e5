"""Benchmarks and attack workloads, measured against flat memories."""

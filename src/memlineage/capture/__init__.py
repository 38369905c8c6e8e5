"""Recording lineage as agents run: the tracker, and an adapter for each framework."""

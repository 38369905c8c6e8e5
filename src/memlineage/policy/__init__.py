"""The policy language: its documents, its specification, its fast form and the analysis of rule sets."""

"""The command line: every verb of a memory, for people at a terminal and, with `--json`, for programs.

Exit codes: 0 done, 1 refused or found wanting, 2 misuse. Read `command` for how a function becomes a command,
`options` for what all of them take, `answers` for what they give, `rendering` for how that looks.
"""

from memlineage.cli.program import main

__all__ = ["main"]

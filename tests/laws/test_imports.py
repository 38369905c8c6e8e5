from __future__ import annotations

import subprocess
import sys


def test_only_the_strategies_need_hypothesis() -> None:
    code = (
        "import sys, memlineage.testing.laws, memlineage.testing.worlds, memlineage.testing.oracle\n"
        "print('hypothesis' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=20, check=True)
    assert done.stdout.strip() == "False"

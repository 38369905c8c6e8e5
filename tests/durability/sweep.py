"""Tries out faults at points of acts, and prints a line of JSON for each: a script, since it forks.

sweep.py FOLDER SHARE SEED [ACT…]      SHARE of all points by all faults, chosen by SEED; 1 for all of them
"""

import random
import sys
from pathlib import Path

import msgspec

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.durability.acts import cases

from memlineage.testing.fault_table import Trial, rehearse, try_out
from memlineage.testing.faults import Fault


def sweep(folder: Path, count: int, rng: random.Random, names: list[str]) -> None:
    for case in cases(folder):
        if names and case.name not in names:
            continue
        run = rehearse(case, folder / "try")
        trials = [Trial(point, fault, (point + place) % 2 == 0)
                  for point in range(len(run.points)) for place, fault in enumerate(Fault)]  # fmt: skip
        chosen = rng.sample(trials, min(count, len(trials))) if count else trials
        for trial in chosen:
            cell = try_out(case, run, trial, folder / "try")
            line = {
                "act": case.name, "fault": trial.fault.name, "point": run.points[trial.point], "number": trial.point,
                "goes_on": trial.goes_on, "commits": len(run.states) - 1, "state": cell.state, "told": cell.told,
                "wrong": cell.wrong,
            }  # fmt: skip
            print(msgspec.json.encode(line).decode(), flush=True)


if __name__ == "__main__":
    folder, count, seed, *names = sys.argv[1:]
    sweep(Path(folder), int(count), random.Random(int(seed)), names)

"""Static analysis of rules: what can never hold, changes nothing, contradicts, or leaves gaps.

Start at `analyse`. Every finding has a witness, a unit and a request that the interpreter has judged, or rests on a
proof that there is none. Read `search` for how worlds are found, `weighing` for when a rule makes no difference.
"""

from memlineage.policy.analysis.analysing import analyse
from memlineage.policy.analysis.finding import CODES, Analysis, Code, Edit, Finding, Fix, Level, Witness

__all__ = ["CODES", "Analysis", "Code", "Edit", "Finding", "Fix", "Level", "Witness", "analyse"]

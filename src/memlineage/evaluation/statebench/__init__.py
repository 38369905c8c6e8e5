"""StateBench: whether what reaches a model is what holds now, and nothing of what held before.

The data set (Parslee-ai/statebench, MIT) is read from a folder; it is no part of this project. No model is called:
what is scored is the text that would be handed to one.
"""

from memlineage.evaluation.statebench.running import FOLDER, statebench
from memlineage.evaluation.statebench.scoring import StateRow

__all__ = ["FOLDER", "StateRow", "statebench"]

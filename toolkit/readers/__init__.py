"""Files that evaluation tools write, read into one tidy table of answers.

One function per tool; each returns `Answers`: `table` with one row per answer, `reported` with
what the tool itself computed, and `dropped`, which says what was left out and why.
"""

from toolkit.readers.answers import Answers
from toolkit.readers.csv_tables import csv
from toolkit.readers.helm_runs import helm
from toolkit.readers.inspect_logs import inspect
from toolkit.readers.leaderboard_details import open_llm_leaderboard
from toolkit.readers.lighteval_runs import lighteval
from toolkit.readers.lm_eval_runs import lm_eval
from toolkit.readers.olmes_runs import olmes

__all__ = [
    "Answers",
    "csv",
    "helm",
    "inspect",
    "lighteval",
    "lm_eval",
    "olmes",
    "open_llm_leaderboard",
]

"""From loss to benchmarks: scores, pass rates, emergence, and how well they can be foreseen."""

from toolkit.scaling.downstream.capacity import KnowledgeCapacity, knowledge_capacity
from toolkit.scaling.downstream.emergence import (
    choice_metrics,
    emergence_curves,
    exact_match,
    multiple_choice_accuracy,
)
from toolkit.scaling.downstream.resolution import (
    pass_rate_until,
    samples_needed,
    smallest_visible,
)
from toolkit.scaling.downstream.score_backtest import ScoreBacktest, backtest_scores
from toolkit.scaling.downstream.score_fit import fit_score
from toolkit.scaling.downstream.score_laws import SCORE_LAWS, ScoreLaw
from toolkit.scaling.downstream.score_noise import prediction_noise, sampling_error
from toolkit.scaling.downstream.score_result import ScoreFit
from toolkit.scaling.downstream.task_law import TaskLawFit, fit_task_law
from toolkit.scaling.downstream.two_step import TwoStepFit, two_step

__all__ = [
    "SCORE_LAWS",
    "KnowledgeCapacity",
    "ScoreBacktest",
    "ScoreFit",
    "ScoreLaw",
    "TaskLawFit",
    "TwoStepFit",
    "backtest_scores",
    "choice_metrics",
    "emergence_curves",
    "exact_match",
    "fit_score",
    "fit_task_law",
    "knowledge_capacity",
    "multiple_choice_accuracy",
    "pass_rate_until",
    "prediction_noise",
    "samples_needed",
    "sampling_error",
    "smallest_visible",
    "two_step",
]

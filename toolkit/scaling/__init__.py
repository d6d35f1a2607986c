"""Scaling laws: loss as a function of size, data and compute, and how far to trust the fit."""

from toolkit.scaling import downstream, laws
from toolkit.scaling.budgets import flops
from toolkit.scaling.budgets.constrained import least_compute, least_loss
from toolkit.scaling.budgets.envelope import fit_envelope
from toolkit.scaling.budgets.frontier import FrontierFit
from toolkit.scaling.budgets.isoflop import fit_isoflops, isoflop_minima
from toolkit.scaling.fit import fit
from toolkit.scaling.law import Law, Parameter, Preset
from toolkit.scaling.laws.broken import broken
from toolkit.scaling.laws.chinchilla import CHINCHILLA, hoffmann_starts
from toolkit.scaling.laws.extrapolation import extrapolation_law
from toolkit.scaling.laws.finetuning import TRANSFER, finetuning_law
from toolkit.scaling.laws.hyperparameters import best_batch_size, best_learning_rate
from toolkit.scaling.laws.kaplan import (
    critical_batch_size,
    minimum_steps,
    tokens_without_overfitting,
)
from toolkit.scaling.laws.learning_curves import CURVES, learning_curve
from toolkit.scaling.laws.own import own_law
from toolkit.scaling.result import ScalingFit
from toolkit.scaling.selection import Selection, select_model
from toolkit.scaling.stopping import CurveForecast, forecast_curve
from toolkit.scaling.validation.backtests import backtest, hold_out, leave_one_group_out
from toolkit.scaling.validation.comparison import Comparison, compare
from toolkit.scaling.validation.held_out import Validation
from toolkit.scaling.validation.residual_signs import log_bins, sign_correlation
from toolkit.scaling.validation.residual_structure import ResidualStructure, residual_structure

__all__ = [
    "CHINCHILLA",
    "CURVES",
    "TRANSFER",
    "Comparison",
    "CurveForecast",
    "FrontierFit",
    "Law",
    "Parameter",
    "Preset",
    "ResidualStructure",
    "ScalingFit",
    "Selection",
    "Validation",
    "backtest",
    "best_batch_size",
    "best_learning_rate",
    "broken",
    "compare",
    "critical_batch_size",
    "downstream",
    "extrapolation_law",
    "finetuning_law",
    "fit",
    "fit_envelope",
    "fit_isoflops",
    "flops",
    "forecast_curve",
    "hoffmann_starts",
    "hold_out",
    "isoflop_minima",
    "laws",
    "learning_curve",
    "least_compute",
    "least_loss",
    "leave_one_group_out",
    "log_bins",
    "minimum_steps",
    "own_law",
    "residual_structure",
    "select_model",
    "sign_correlation",
    "tokens_without_overfitting",
]

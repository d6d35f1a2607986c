"""The summary of a fit: what a reader needs before using its numbers."""

from typing import TYPE_CHECKING

import pandas as pd

from toolkit.results import Summary, significant
from toolkit.scaling.intervals import default_method

if TYPE_CHECKING:
    from toolkit.scaling.result import ScalingFit

__all__ = ["summarise"]

BOUNDS = {"bca": "BCa", "jackknife": "jackknife, because the units are few"}


def summarise(fit: "ScalingFit") -> Summary:
    """Lay out law, objective, certificate, agreement, conditioning, estimates and doubts."""
    known = fit.identifiability()
    table = pd.DataFrame({"estimate": fit.params.where(known.identified)})
    if fit.bootstrap is not None:
        table = fit.conf_int()
    loss = fit.problem.loss
    if loss == "huber":
        loss += f", delta {fit.problem.delta:g}"
    certified = "certified" if fit.certified else "NOT certified"
    facts = [
        ("law", fit.law.formula),
        ("loss", f"{loss}, on log {fit.problem.target}, summed"),
        ("objective", f"{fit.objective:.10g} ({certified})"),
        ("starts that agree", f"{fit.starts['agrees'].sum()} of {len(fit.starts)}"),
        ("residuals", f"{fit.residuals.abs().median():.2%} of the loss (median)"),
        ("condition number", f"{known.condition:.0f}"),
    ]
    if fit.bootstrap is not None:
        draws = fit.bootstrap
        facts += [
            (
                "bootstrap",
                f"{len(draws)} resamples of {draws.units} units ({draws.unit}), {draws.scheme}, "
                f"{draws.distinct} distinct, {draws.failed} not certified",
            ),
            ("bounds", f"95 %, {BOUNDS[default_method(draws)]}"),
        ]
    notes = [f"{name}: pinned, not fitted" for name in fit.fixed]
    notes += [
        f"{name}: not identified by these data"
        for name in known.identified.index[~known.identified]
    ]
    return Summary(f"{fit.law.title}, {len(fit.runs)} rows", facts, table.map(significant), notes)

"""The summary of a boundary fit: what a reader needs before using its numbers."""

from typing import TYPE_CHECKING

import numpy as np

from toolkit.boundary.curve import QUANTITIES
from toolkit.boundary.prescriptive import KAPPA, RIDGE
from toolkit.results import Summary, significant

if TYPE_CHECKING:
    from toolkit.boundary.result import BoundaryFit

__all__ = ["summarise"]

THIN_TAIL, TRUSTED_TAIL = 10.0, 40.0


def summarise(fit: "BoundaryFit") -> Summary:
    """Lay out data, loss, certificate, agreement, coverage, estimates and doubts."""
    table = fit.to_frame().drop(columns=["unit", "meaning"])
    if len(fit.tau) == 1:
        table = table.droplevel("tau")
    return Summary(
        f"Capability boundary of {fit.models.score!r}, {len(fit.models.scores)} models",
        _facts(fit),
        table.map(significant),
        _notes(fit),
    )


def _facts(fit: "BoundaryFit") -> list[tuple[str, str]]:
    z = fit.models.log_flops
    coverage = fit.coverage()
    facts = [
        ("curve", "score = base + rise / (1 + exp(-steepness (log10 FLOPs - midpoint)))"),
        ("limits", f"base at least {fit.floor:g}, top at most {fit.ceiling:g}"),
        ("compute", f"{10 ** z[0]:.2g} to {10 ** z[-1]:.2g} FLOPs, {len(np.unique(z))} values"),
        ("loss", _loss(fit)),
    ]
    for k, tau in enumerate(fit.tau):
        row = coverage.iloc[k]
        facts.append(
            (
                f"tau {tau:g}",
                f"{fit.tail.iloc[k]:.0f} models beyond the curve; coverage {row['coverage']:.3f} "
                f"({row['lower']:.3f} to {row['upper']:.3f}), skill {row['skill']:.1%}",
            )
        )
    if fit.recipe == "exact":
        agree = ", ".join(str(found.agrees.sum()) for found in fit.searches)
        facts.append(("starts that agree", f"{agree} of {len(fit.searches[0].agrees)}"))
        gap = max(found.gap[found.best] for found in fit.searches)
        certified = "certified" if fit.certified.all() else "NOT certified"
        facts.append(("optimum", f"{certified}, gap {gap:.1e}"))
    if fit.draws is not None:
        facts.append(
            (
                "bootstrap",
                f"{len(fit.draws)} resamples of {fit.units} units ({fit.unit}), {fit.failed} not "
                "certified; bounds 95 %, percentile",
            )
        )
    return facts


def _loss(fit: "BoundaryFit") -> str:
    if fit.recipe == "exact":
        return "exact pinball, summed"
    return (
        f"published recipe: mean pinball smoothed with kappa {KAPPA:g}, plus {RIDGE:g} * "
        "steepness^2"
    )


def _notes(fit: "BoundaryFit") -> list[str]:
    notes = []
    if fit.models.left_out:
        notes.append(f"{fit.models.left_out} rows without score or compute are left out")
    for tau, count in fit.tail.items():
        if count < THIN_TAIL:
            notes.append(
                f"tau {tau:g}: {count:.1f} models beyond the curve, fewer than {THIN_TAIL:g}: no "
                "bounds, they would be far too narrow"
            )
        elif count < TRUSTED_TAIL - 1e-9:
            notes.append(
                f"tau {tau:g}: {count:.0f} models beyond the curve, fewer than "
                f"{TRUSTED_TAIL:g}: bounds are too narrow"
            )
    if fit.unidentified:
        notes.append(fit.unidentified)
    if fit.crosses:
        notes.append("the curves cross; answers are rearranged so that they do not")
    notes += _edge_notes(fit)
    if fit.recipe != "exact":
        notes.append("the smoothing and the ridge lift the curve above the quantile tau")
    return notes


def _edge_notes(fit: "BoundaryFit") -> list[str]:
    """Say where the curve touches its limits, and where scores pile up."""
    notes = []
    y, w, z = fit.models.scores, fit.models.weights, fit.models.log_flops
    names = list(QUANTITIES)
    for tau, values in zip(fit.tau, fit.values, strict=True):
        base, rise, midpoint, _ = values
        if base + rise >= fit.ceiling - 1e-9:
            notes.append(f"tau {tau:g}: top is at the ceiling, not estimated")
        if rise > 0 and base <= fit.floor + 1e-9:
            notes.append(f"tau {tau:g}: base is at the floor, not estimated")
        if rise > 0 and not z[0] <= midpoint <= z[-1]:
            side = "top" if midpoint > z[-1] else "base"
            notes.append(
                f"tau {tau:g}: {names[2]} outside the compute of the models, so that {side} is "
                "an extrapolation"
            )
    for limit, name in ((fit.ceiling, "ceiling"), (0.0, "zero")):
        share = w[y == limit].sum() / w.sum()
        if share > 1e-3:
            notes.append(f"{share:.1%} of the scores are exactly at the {name}: censored?")
    return notes

"""The profile of one parameter: how well the law can fit when it is held at other values.

For each value the objective is minimised over all other parameters. Where the data determine the
parameter the profile is a valley; where they do not it has a side that never rises.

How far may the objective rise? For a likelihood, by half a quantile of chi-squared. A robust loss
is no likelihood: a rise has to be measured against the noise of its own scores. Let u be the unit
vector of the parameter's column of the weighted Jacobian after regression on the other columns:
what only this parameter can do. With score psi of the residuals r, ``2 rise / scale`` is, for many
independent units, chi-squared with one degree of freedom, where ``scale = sum over units of (sum of
u psi(r))**2 / sum of u**2 psi'(r)`` (Kent 1982, Biometrika 69; for robust regression Schrader and
Hettmansperger 1980, Biometrika 67). Errors may so be larger for some runs than for others, and
shared inside a cluster. Student's quantile stands in for the normal one, and rows / (rows - p) for
the errors that the fit followed. It remains an approximation: with few runs compare it with
``conf_int``.
"""

import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import special

from toolkit.errors import ConvergenceWarning, DataError
from toolkit.numerics.compiling import FloatArray
from toolkit.results import Summary, check_level, significant
from toolkit.scaling.identifiability import DIFFERENCE, FACTOR
from toolkit.scaling.law import Parameter

if TYPE_CHECKING:
    from toolkit.scaling.result import ScalingFit

__all__ = ["Profile", "leaves_its_valley", "profile"]

FAR_FACTOR, FAR_DIFFERENCE = 3 * FACTOR, 3 * DIFFERENCE  # how far a profile looks, either way
FIRST_SHARE, STRIDE = 1 / 256, 1.6  # first step outward, as a share of the way; each next one
SIDE_POINTS = 20
EXACT = 1e-9  # residuals below this are rounding, or what it leaves of a minimum
CLEARLY_ABOVE = 2.0  # thresholds at which a default grid ends
NEAREST_SHARE = 0.5  # of the residuals: how steep the score is at zero is judged by these
LOWER = 1e-6  # as a share of the objective: a profile that far below the fit found a better one


@dataclass(frozen=True, slots=True)
class Profile:
    """The profile of one parameter.

    Attributes
    ----------
    parameter : Parameter
        Which one.
    table : DataFrame
        One row per value: the value of each parameter there, the objective, and its rise above
        the lowest in units of the threshold.
    estimate : float
        Value with the lowest objective.
    objective, threshold : float
        Lowest objective; rise that the noise explains at the level.
    level : float
        Nominal coverage of the interval.
    lower, upper : float
        Where the rise passes the threshold, outermost; a bound of the parameter (or 0, or
        infinity) where the profile never does.
    identified : bool
        Whether the profile passes the threshold on both sides, each within a factor of ten
        (exponents: within 0.5) of the estimate.
    """

    parameter: Parameter
    table: pd.DataFrame
    estimate: float
    objective: float
    threshold: float
    level: float
    lower: float
    upper: float
    identified: bool

    def to_frame(self) -> pd.DataFrame:
        """Return the table."""
        return self.table

    def summary(self) -> Summary:
        """Text or HTML for reading."""
        name = self.parameter.name
        bounds = f"{significant(self.lower)} to {significant(self.upper)}"
        facts = [
            ("estimate", significant(self.estimate)),
            (f"{100 * self.level:.4g} % interval", bounds),
            ("verdict", "identified" if self.identified else "not identified"),
            ("threshold", f"{self.threshold / self.objective:.2%} of the objective"),
        ]
        return Summary(f"Profile of {name}", facts, self.table.map(significant))

    def __repr__(self) -> str:
        return self.summary().text()

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()


def profile(fit: "ScalingFit", name: str, grid: npt.ArrayLike | None, level: float) -> Profile:
    """Profile one parameter of a fit; see `ScalingFit.profile`."""
    check_level(level)
    names = fit.law.parameter_names
    if name not in names or name in fit.fixed:
        free = [other for other in names if other not in fit.fixed]
        raise DataError(
            f"profile: choose a fitted parameter out of {', '.join(free)}; got {name!r}."
        )
    search = _Search(fit, name)
    threshold = _threshold(fit, search, level)
    if grid is None:
        ends = [search.far_end(side, threshold) for side in (-1, 1)]
        sides = [np.linspace(search.optimum[search.k], end, SIDE_POINTS + 1) for end in ends]
        points = np.unique(np.concatenate(sides))
    else:
        points = search.coordinates(_check_grid(search.parameter, grid))
    theta, objective = search.walk(points)
    lowest = min(fit.objective, float(objective.min()))
    if lowest < fit.objective * (1 - LOWER):
        warnings.warn(
            f"The profile of {name} finds an objective {1 - lowest / fit.objective:.1e} below the "
            "fit's: fit again with other starts.",
            ConvergenceWarning,
            stacklevel=3,
        )
    best = search.optimum[search.k]
    if lowest < fit.objective:
        best = points[int(np.argmin(objective))]
    rise = (objective - lowest) / threshold
    lower, upper = _crossings(points, rise, best)
    widest = FACTOR if search.parameter.positive else DIFFERENCE
    table = pd.DataFrame(search.problem.values_of(theta), columns=names)
    table = table[[name, *(other for other in names if other != name)]]
    return Profile(
        parameter=search.parameter,
        table=table.assign(objective=objective, rise=rise),
        estimate=search.value(best),
        objective=lowest,
        threshold=threshold,
        level=level,
        lower=search.value(lower),
        upper=search.value(upper),
        identified=bool(max(best - lower, upper - best) < widest),
    )


def leaves_its_valley(fit: "ScalingFit", name: str, level: float = 0.95) -> bool:
    """Whether the objective passes the threshold within a factor of ten, or 0.5, either way.

    The two ends of a profile, for a verdict that costs less.
    """
    search = _Search(fit, name)
    enough = fit.objective + _threshold(fit, search, level)
    reach = FACTOR if search.parameter.positive else DIFFERENCE
    for side, limit in ((-1, search.lowest), (1, search.highest)):
        theta, objective = search.optimum, fit.objective
        for share in np.linspace(0.25, 1.0, 4):
            at = search.optimum[search.k] + side * share * reach
            at = min(at, limit) if side > 0 else max(at, limit)  # the bound itself may be too far
            theta, objective = search.minimum(at, theta)
            if objective > enough:
                break
        if objective <= enough:
            return False
    return True


class _Search:
    """Constrained fits of one problem, with one parameter held."""

    def __init__(self, fit: "ScalingFit", name: str) -> None:
        self.law = fit.law
        self.k = fit.law.parameter_names.index(name)
        self.parameter = fit.law.parameters[self.k]
        self.problem = fit.problem.in_unit_of(name)
        self.optimum = self.law.to_working(fit.values, self.problem.centre)
        self.objective = fit.objective
        far = FAR_FACTOR if self.parameter.positive else FAR_DIFFERENCE
        self.lowest = max(self.optimum[self.k] - far, self.problem.lower[self.k])
        self.highest = min(self.optimum[self.k] + far, self.problem.upper[self.k])

    def coordinates(self, values: FloatArray) -> FloatArray:
        """Turn values of the parameter into its working coordinate."""
        at = np.tile(self.problem.values_of(self.optimum), (values.size, 1))
        at[:, self.k] = values
        return self.law.to_working(at, self.problem.centre)[:, self.k]

    def value(self, coordinate: float) -> float:
        """Turn a working coordinate back; beyond the search it is the end of what is allowed."""
        if np.isneginf(coordinate):
            return 0.0 if self.parameter.positive else self.parameter.lower
        if np.isposinf(coordinate):
            return self.parameter.upper
        theta = self.optimum.copy()
        theta[self.k] = coordinate
        return float(self.problem.values_of(theta)[self.k])

    def minimum(self, coordinate: float, start: FloatArray) -> tuple[FloatArray, float]:
        """Minimise over the other parameters."""
        lower, upper = self.problem.lower.copy(), self.problem.upper.copy()
        lower[self.k] = upper[self.k] = coordinate
        held = replace(self.problem, lower=lower, upper=upper)
        found = held.minimise(held.weights[None, :], start[None, :])
        return found.theta[0], float(found.objective[0])

    def far_end(self, side: int, threshold: float) -> float:
        """Go one way until the objective is clearly above the threshold, or far enough."""
        limit = self.lowest if side < 0 else self.highest
        enough = self.objective + CLEARLY_ABOVE * threshold
        end, theta, step = limit, self.optimum, FIRST_SHARE * abs(limit - self.optimum[self.k])
        at = self.optimum[self.k] + side * step
        while (limit - at) * side > 0:
            theta, objective = self.minimum(at, theta)
            if objective > enough:
                end = at
                break
            step *= STRIDE
            at += side * step
        return float(end)

    def walk(self, points: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Minimise at every point, each from its neighbours on both sides; keep the lower.

        From the optimum outward, and back from both ends to the other side.
        """
        thetas, objectives = (
            np.empty((points.size, self.optimum.size)),
            np.full(points.size, np.inf),
        )
        inner = int(np.searchsorted(points, self.optimum[self.k]))
        outward = [(range(inner, points.size), self.optimum), (range(inner)[::-1], self.optimum)]
        for order, start in outward:
            self._pass(points, order, start, thetas, objectives)
        everything = range(points.size)
        for order in (everything, everything[::-1]):
            self._pass(points, order, thetas[order[0]], thetas, objectives)
        return thetas, objectives

    def _pass(
        self,
        points: FloatArray,
        order: range,
        start: FloatArray,
        thetas: FloatArray,
        objectives: FloatArray,
    ) -> None:
        """Walk along points, each from the one before, and write down what is lower."""
        for i in order:
            theta, objective = self.minimum(points[i], start)
            if objective < objectives[i]:
                thetas[i], objectives[i] = theta, objective
            start = thetas[i]


def _threshold(fit: "ScalingFit", search: _Search, level: float) -> float:
    """Rise of the objective that noise explains; see the module."""
    problem, optimum = search.problem, search.optimum
    residuals, weights = problem.residuals(optimum), problem.weights
    if problem.loss == "absolute":
        score = np.sign(residuals)
    else:
        score = np.clip(residuals, -problem.delta, problem.delta)
    typical = float(np.quantile(np.abs(residuals), NEAREST_SHARE))
    if not typical > EXACT:
        raise DataError("The law goes through the runs: without noise no rise is a small one.")
    band = max(problem.delta, typical)
    own = problem.own_direction(optimum, search.k)
    slope = np.sum(own[np.abs(residuals) <= band] ** 2)
    if np.isfinite(band):
        slope *= (problem.delta or 1.0) / band
    pull: FloatArray = own * np.sqrt(weights) * score
    rows, free = len(residuals), int((~problem.pinned).sum())
    freedom = rows - free
    if fit.cluster is not None:
        unit_of, labels = pd.factorize(fit.runs[fit.cluster])
        pull = np.bincount(unit_of, pull).astype(np.float64)
        freedom = min(freedom, len(labels) - 1)
    spread = np.sum(pull**2) * rows / (rows - free)
    quantile = special.stdtrit(freedom, (1 + level) / 2)
    return float(0.5 * quantile**2 * spread / slope)


def _crossings(points: FloatArray, rise: FloatArray, best: float) -> tuple[float, float]:
    """Outermost places where the rise passes 1; infinite where it never does."""
    height = np.sqrt(np.maximum(rise, 0.0))  # nearly straight on either side of the valley
    inside = np.flatnonzero(rise <= 1.0)
    if not inside.size:  # a coarse grid of the caller's: the valley lies between two points
        inside = np.array([int(np.argmin(rise))])
        height[inside] = 0.0
    crossings = []
    for edge, step, open_end in ((inside[0], -1, -np.inf), (inside[-1], 1, np.inf)):
        beyond = edge + step
        if not 0 <= beyond < points.size:
            crossings.append(open_end)
            continue
        share = (1.0 - height[edge]) / (height[beyond] - height[edge])
        crossings.append(float(points[edge] + share * (points[beyond] - points[edge])))
    return min(crossings[0], best), max(crossings[1], best)


def _check_grid(parameter: Parameter, grid: npt.ArrayLike) -> FloatArray:
    values = np.unique(np.asarray(grid, dtype=np.float64))
    if values.size < 2:
        raise DataError(f"profile: the grid of {parameter.name} needs at least 2 different values.")
    parameter.check(values)
    return values

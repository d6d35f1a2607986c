"""The task law: pass rates far below what a benchmark shows, by their exact likelihood."""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.optimize import brentq
from scipy.stats import chi2

from toolkit import tables
from toolkit.errors import ConvergenceWarning, DataError, IdentifiabilityWarning
from toolkit.numerics.compiling import FloatArray
from toolkit.results import Summary, check_level, significant
from toolkit.scaling.downstream.resolution import smallest_visible

__all__ = ["TaskLawFit", "fit_task_law"]

STEPS, DECREMENT = 1000, 1e-12  # far from the optimum a step changes eta by one only
FURTHEST = 60.0  # natural logarithms from the optimum at which a profile counts as unbounded
OVERDISPERSED = 2.0


@dataclass(frozen=True, slots=True)
class TaskLawFit:
    """A fitted task law ``pass rate = exp(-c params^-alpha)``.

    Attributes
    ----------
    table : DataFrame
        The checked table: params, passes, samples.
    centre : float
        Mean of log params; the fit works on ``log(-log pass rate)`` there.
    theta : array, shape (2,)
        ``log(-log pass rate)`` at the centre, and alpha.
    log_likelihood : float
        At the optimum, without the binomial coefficients.
    """

    table: pd.DataFrame = field(repr=False)
    centre: float = field(repr=False)
    theta: FloatArray = field(repr=False)
    log_likelihood: float

    @property
    def params(self) -> pd.Series:
        """The values of c and alpha."""
        values = [np.exp(self.theta[0] + self.theta[1] * self.centre), self.theta[1]]
        return pd.Series(values, index=["c", "alpha"], name="estimate")

    @property
    def dispersion(self) -> float:
        """Pearson statistic over its degrees of freedom: near 1 where passes are binomial."""
        rows, n = len(self.table), self.table["samples"].to_numpy()
        if rows <= 2:
            return float("nan")
        rate = np.exp(-np.exp(_eta(self.theta, self._x)))
        misfit = (self.table["passes"].to_numpy() - n * rate) ** 2
        return float(np.sum(misfit / np.maximum(n * rate * (1 - rate), 1e-300)) / (rows - 2))

    @property
    def _x(self) -> FloatArray:
        x: FloatArray = np.log(self.table["params"].to_numpy()) - self.centre
        return x

    @property
    def _counts(self) -> FloatArray:
        return _passes_and_failures(self.table)

    def conf_int(self, level: float = 0.95) -> pd.DataFrame:
        """Profile-likelihood intervals of c and alpha.

        Parameters
        ----------
        level : float
            Nominal coverage, in (0, 1).

        Returns
        -------
        DataFrame
            Rows c and alpha; columns estimate, lower, upper. Infinite where the likelihood does
            not fall off.
        """
        log_c = self._profile(-self.centre, level)
        alpha = self._profile_bounds(self.theta[1], self._of_alpha, level)
        rows = [np.exp([self.theta[0] + self.theta[1] * self.centre, *log_c])]
        rows.append(np.array([self.theta[1], *alpha]))
        return pd.DataFrame(rows, index=["c", "alpha"], columns=["estimate", "lower", "upper"])

    def predict(self, params: npt.ArrayLike, *, level: float = 0.95) -> pd.DataFrame:
        """Pass rate at given model sizes, with its profile-likelihood interval.

        Parameters
        ----------
        params : array_like
            Parameters, m of them.
        level : float
            Nominal coverage, in (0, 1).

        Returns
        -------
        DataFrame
            m rows: params, pass_rate, lower, upper.
        """
        points = tables.check({"params": np.atleast_1d(params)}, ["params"])
        shifted = np.log(points["params"].to_numpy()) - self.centre
        points["pass_rate"] = np.exp(-np.exp(_eta(self.theta, shifted)))
        bounds = np.array([self._profile(at, level) for at in shifted])
        # log(-log p) falls as p rises, so that the bounds change sides.
        points["lower"], points["upper"] = np.exp(-np.exp(bounds[:, ::-1])).T
        return points

    def to_frame(self) -> pd.DataFrame:
        """Parameters with 95 % bounds, and what they mean."""
        meaning = ["minus the log pass rate at one parameter", "exponent of size"]
        return self.conf_int().assign(meaning=meaning)

    def summary(self) -> Summary:
        """Everything a reader needs before using the numbers, as text or HTML."""
        rows = self.table
        seen = smallest_visible(rows["samples"].max())
        facts = [
            ("law", "pass rate = exp(-c params^-alpha)"),
            ("likelihood", "binomial, exact; models without a pass count"),
            ("models", f"{len(rows)}, {int((rows['passes'] == 0).sum())} without a pass"),
            ("smallest visible rate", f"{seen:.2g} with the most samples of a model (95 %)"),
            ("dispersion", significant(self.dispersion, 3)),
            ("bounds", "95 %, profile likelihood"),
        ]
        notes = []
        if self.dispersion > OVERDISPERSED:
            notes.append(
                "passes scatter more than binomial: items differ or the law does not hold, and "
                "the intervals are too narrow; fit items one by one"
            )
        return Summary("Task law", facts, self.conf_int().map(significant), notes)

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()

    def _profile(self, at: float, level: float) -> tuple[float, float]:
        """Interval of ``log(-log pass rate)`` at a log size, relative to the centre."""

        def of_eta(value: float) -> float:
            """Best log likelihood with the curve held to a value at this size."""
            return _maximise_slope(self._counts, self._x - at, value, self.theta[1])

        estimate = float(_eta(self.theta, np.array([at]))[0])
        return self._profile_bounds(estimate, of_eta, level)

    def _of_alpha(self, alpha: float) -> float:
        """Best log likelihood with alpha held."""
        return _maximise_level(self._counts, self._x, alpha, self.theta[0])

    def _profile_bounds(
        self, estimate: float, profile: Callable[[float], float], level: float
    ) -> tuple[float, float]:
        check_level(level)
        drop = 0.5 * float(chi2.ppf(level, 1))

        def excess(value: float) -> float:
            return self.log_likelihood - profile(value) - drop

        ends = []
        for sign in (-1.0, 1.0):
            reach = 0.1
            while excess(estimate + sign * reach) < 0 and reach < FURTHEST:
                reach *= 2.0
            far = estimate + sign * reach
            root = sign * np.inf
            if excess(far) >= 0:
                root = float(brentq(excess, min(estimate, far), max(estimate, far), xtol=1e-10))
            ends.append(root)
        return ends[0], ends[1]


def fit_task_law(table: pd.DataFrame | Mapping[str, npt.ArrayLike]) -> TaskLawFit:
    """Fit a task law to passes and samples of models of several sizes, by exact likelihood.

    The law of Hu et al. 2024 says ``pass rate = exp(-c params^-alpha)``, so that ``log(-log pass
    rate)`` is linear in log size. A model without any pass is not log(0) here but evidence that
    its rate is small. The likelihood is the same whether samples are fixed in number or drawn
    until some pass.

    Measured on 1,000 simulated studies of 6 models with 2,000 samples each, pass rates from 1e-4
    to 0.3, the 95 % profile interval of the pass rate of a model 10 times as large covers the
    truth in 96 % of studies.

    Parameters
    ----------
    table : DataFrame or mapping
        One row per model: ``params``, ``passes`` and ``samples`` (counts, ``0 <= passes <=
        samples``). One task; where items differ much, fit them one by one.

    Returns
    -------
    TaskLawFit

    Raises
    ------
    DataError
        If counts are not whole numbers in order, there is one size only, or no sample, or every
        sample, passes.

    Warns
    -----
    IdentifiabilityWarning
        If passes are seen at one size only.

    References
    ----------
    Hu et al. 2024, "Predicting Emergent Abilities with Infinite Resolution Evaluation",
    arXiv:2310.03262, equation 3.

    Examples
    --------
    >>> from toolkit.scaling.downstream import fit_task_law
    >>> table = {"params": [1e8, 1e9, 1e10], "passes": [0, 12, 340], "samples": [1000] * 3}
    >>> fit = fit_task_law(table)
    >>> round(float(fit.predict(1e10)["pass_rate"][0]), 2)
    0.34
    """
    checked = _check_counts(table)
    centre = float(np.log(checked["params"]).mean())
    x = np.log(checked["params"].to_numpy()) - centre
    theta, value = _maximise(_passes_and_failures(checked), x)
    if (checked["passes"] > 0).sum() == 1:
        warnings.warn(
            "Samples pass at one size only: the others bound alpha on one side at best. Draw more "
            "samples of smaller models; with n samples a rate of 3 / n is visible.",
            IdentifiabilityWarning,
            stacklevel=2,
        )
    return TaskLawFit(checked, centre, theta, value)


def _check_counts(table: pd.DataFrame | Mapping[str, npt.ArrayLike]) -> pd.DataFrame:
    checked = tables.check(table, ["params", "passes", "samples"])
    for name in ("passes", "samples"):
        numbers = pd.to_numeric(checked[name], errors="coerce")
        wrong = ~(numbers >= (name == "samples")) | (numbers % 1 != 0)
        if wrong.any():
            raise DataError(
                f"Column {name!r}: {int(wrong.sum())} of {len(wrong)} rows are not whole counts "
                f"(first value {checked[name][wrong].iloc[0]!r}). Give numbers of samples, not "
                "rates."
            )
        checked[name] = numbers.astype(np.float64)
    if (checked["passes"] > checked["samples"]).any():
        raise DataError("Column 'passes': some rows have more passes than samples. Swapped?")
    if checked["params"].nunique() == 1:
        raise DataError("Column 'params' has one value: a law of size needs at least 2 sizes.")
    if checked["passes"].sum() == 0:
        bound = float(smallest_visible(checked["samples"].max()))
        raise DataError(
            f"No sample of any model passes, so that there is no law to fit; the rate of the model "
            f"with most samples lies below {bound:.2g} (95 %). Draw more samples."
        )
    if (checked["passes"] == checked["samples"]).all():
        raise DataError("Every sample of every model passes: there is no law to fit.")
    return checked


def _eta(theta: FloatArray, x: FloatArray) -> FloatArray:
    """Return ``log(-log pass rate)``."""
    eta: FloatArray = theta[0] - theta[1] * x
    return eta


def _passes_and_failures(table: pd.DataFrame) -> FloatArray:
    passes, samples = table[["passes", "samples"]].to_numpy().T
    return np.array([passes, samples - passes])


def _terms(counts: FloatArray, eta: FloatArray) -> tuple[float, FloatArray, FloatArray]:
    """Log likelihood and its first two derivatives by eta, row by row.

    A failure has probability ``1 - exp(-exp(eta))``, written so that it keeps its digits where
    it is tiny; the log likelihood is concave in eta.
    """
    passes, failures = counts
    hazard = np.exp(np.minimum(eta, 700.0))
    failing = -np.expm1(-hazard)
    odds = hazard * np.exp(-hazard) / np.maximum(failing, 1e-300)
    value = float(np.sum(failures * np.log(np.maximum(failing, 1e-300)) - passes * hazard))
    first = failures * odds - passes * hazard
    second = failures * odds * (1 - hazard - odds) - passes * hazard
    return value, first, np.minimum(second, -1e-300)


def _maximise(counts: FloatArray, x: FloatArray) -> tuple[FloatArray, float]:
    """Newton's method with halved steps; concave, so that it finds the only maximum."""
    rate = (counts[0].sum() + 0.5) / (counts.sum() + 1.0)
    theta = np.array([np.log(-np.log(rate)), 0.1])
    design = np.column_stack([np.ones_like(x), -x])
    return _newton(counts, lambda t: design @ t, design, theta)


def _maximise_slope(counts: FloatArray, x: FloatArray, held: float, start: float) -> float:
    """Best log likelihood over alpha, with the curve held at x = 0."""
    design = -x[:, None]
    return _newton(counts, lambda t: held + design @ t, design, np.array([start]))[1]


def _maximise_level(counts: FloatArray, x: FloatArray, alpha: float, start: float) -> float:
    """Best log likelihood over the level, with alpha held."""
    design = np.ones((len(x), 1))
    return _newton(counts, lambda t: t[0] - alpha * x, design, np.array([start]))[1]


def _newton(
    counts: FloatArray,
    eta: Callable[[FloatArray], FloatArray],
    design: FloatArray,
    theta: FloatArray,
) -> tuple[FloatArray, float]:
    value, first, second = _terms(counts, eta(theta))
    for _ in range(STEPS):
        gradient = design.T @ first
        step = np.linalg.lstsq(design.T @ (-second[:, None] * design), gradient, rcond=None)[0]
        if 0.5 * gradient @ step <= DECREMENT * (1.0 + abs(value)):
            return theta, value
        step *= min(1.0, 5.0 / float(np.max(np.abs(design @ step))))
        for _ in range(60):
            trial = _terms(counts, eta(theta + step))
            if trial[0] >= value:
                break
            step *= 0.5
        theta = theta + step
        value, first, second = trial
    warnings.warn(
        "The likelihood of the task law did not settle; samples may separate sizes perfectly.",
        ConvergenceWarning,
        stacklevel=4,
    )
    return theta, value

"""Which parameters the data determine: conditioning, the flattest direction, and its price."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from toolkit.numerics.compiling import FloatArray
from toolkit.results import Summary, significant

__all__ = ["DIFFERENCE", "FACTOR", "Identifiability", "assess"]

NO_EFFECT = 1e-12  # length of a parameter's column of the Jacobian, relative to the longest
COLLINEAR = 300.0  # inflation of a standard error by the other parameters that decides against it
DOUBTFUL = 0.25  # share of the half-widths below from which the curvature is not trusted
FACTOR, DIFFERENCE = np.log(10.0), 0.5  # half-widths of a 95 % interval that decide against it


@dataclass(frozen=True, slots=True)
class Identifiability:
    """How well each parameter is determined by the data.

    Attributes
    ----------
    condition : float
        Condition number of the Jacobian with columns of unit length (Belsley, Kuh and Welsch
        1980): up to 30 harmless, above 1,000 arbitrary.
    parameters : DataFrame
        One row per parameter: its part in the flattest direction; by how much the others inflate
        its standard error (the root of the variance inflation factor); its standard error
        (relative for positive parameters) if residuals are independent; how far it can go for
        1 % more objective when the others follow (a factor for positive parameters, a difference
        for exponents); whether it sits on a bound or is pinned; the verdict. Not identified are
        parameters on a bound, with an inflation above 300, or with a 95 % interval wider than a
        factor of ten either way (exponents: 0.5 either way), and those of confounded columns.
        Where the interval comes within a quarter of that, the law is also fitted with the
        parameter held there (see `toolkit.scaling.profile`).
    widest : array, shape (p,)
        Half-widths that decide against a parameter: log(10) for positive ones, else 0.5.
    confounded : sequence of (column, column)
        Columns of which one is a power of the other in these runs, so that their terms cannot be
        told apart.
    """

    condition: float
    parameters: pd.DataFrame
    widest: FloatArray
    confounded: Sequence[tuple[str, str]] = ()

    @property
    def doubtful(self) -> list[str]:
        """Parameters identified by an interval so wide that curvature may not tell its ends."""
        identified, pinned, error = (
            self.parameters[name].to_numpy() for name in ("identified", "pinned", "standard_error")
        )
        wide = 1.96 * error > DOUBTFUL * self.widest  # never where the error is not a number
        return list(self.parameters.index[identified & wide & ~pinned])

    def without(self, names: Sequence[str]) -> "Identifiability":
        """Return the same report with some parameters not identified."""
        if not names:
            return self
        verdict = self.parameters["identified"] & ~self.parameters.index.isin(names)
        return replace(self, parameters=self.parameters.assign(identified=verdict))

    @property
    def identified(self) -> pd.Series:
        """Verdict per parameter, as truth values."""
        return self.parameters["identified"]

    def summary(self) -> Summary:
        """Text or HTML for reading."""
        table = self.parameters.assign(
            flattest=self.parameters["flattest"].map("{:+.2f}".format),
            inflation=self.parameters["inflation"].map("{:.0f}".format),
            standard_error=self.parameters["standard_error"].map(_short),
            slack=self.parameters["slack"].map(_short),
        )
        return Summary(
            "Identifiability",
            [
                ("condition number", f"{self.condition:.0f} (harmless below 30)"),
                *(("rise together", " and ".join(pair)) for pair in self.confounded),
            ],
            table,
            [
                "flattest: the direction in which the fit changes least",
                "inflation: how many times the other parameters enlarge the standard error",
                "standard_error: relative for positive parameters, if residuals are independent",
                "slack: how far the parameter can go for 1 % more objective, the others following;"
                " a factor for positive parameters, a difference for exponents",
            ],
        )

    def __repr__(self) -> str:
        return self.summary().text()

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()


def _short(value: float) -> str:
    return "-" if np.isnan(value) else significant(value, 3)


def assess(
    names: list[str],
    positive: npt.NDArray[np.bool_],
    jacobian: FloatArray,
    residuals: FloatArray,
    weights: FloatArray,
    hessian: FloatArray,
    objective: float,
    unit_change: FloatArray,
    on_bound: npt.NDArray[np.bool_],
    pinned: npt.NDArray[np.bool_],
    confounded: npt.NDArray[np.bool_],
    confounded_columns: Sequence[tuple[str, str]],
) -> Identifiability:
    """Judge the parameters at an optimum.

    Parameters
    ----------
    names : list of str
        Parameter names, p of them.
    positive : array of bool, shape (p,)
        Which are fitted on the log scale.
    jacobian : array, shape (n, p)
        Of the log loss in working coordinates.
    residuals : array, shape (n,)
        Of the log loss.
    weights : array, shape (n,)
        Row weights.
    hessian : array, shape (p, p)
        Of the objective in working coordinates.
    objective : float
        At the optimum.
    unit_change : array, shape (p, p)
        From working coordinates to the parameters themselves (their logarithms where positive).
    on_bound : array of bool, shape (p,)
        Which sit on a bound; they are left out of the conditioning.
    pinned : array of bool, shape (p,)
        Which are known; they are left out too.
    confounded : array of bool, shape (p,)
        Which belong to terms that cannot be told apart.
    confounded_columns : sequence of (column, column)
        The columns of those terms.
    """
    weighted = jacobian * np.sqrt(weights / weights.mean())[:, None]
    length = np.linalg.norm(weighted, axis=0)
    free = ~(on_bound | pinned)
    # one that no run feels says nothing of the others, but would make them all look confounded
    free &= length > NO_EFFECT * length[free].max(initial=0.0)
    flattest, inflation = np.zeros(len(names)), np.full(len(names), np.nan)
    error, condition = np.full(len(names), np.nan), np.nan
    if free.any():
        length = length[free]
        singular, direction = np.linalg.svd(weighted[:, free] / length, full_matrices=False)[1:]
        singular = np.maximum(singular, singular[0] * 1e-15)  # a rank that is lost is very flat
        flattest[free] = direction[-1] * np.sign(direction[-1][np.argmax(np.abs(direction[-1]))])
        inflation[free] = np.sqrt(np.sum((direction / singular[:, None]) ** 2, axis=0))
        spread = 1.4826 * np.median(np.abs(residuals)) * np.sqrt(np.pi / 2)
        reach = direction.T / singular / length[:, None]
        error = spread * _lengths(unit_change[:, free] @ reach, free)
        condition = float(singular[0] / singular[-1])
    widest = np.where(positive, FACTOR, DIFFERENCE)
    identified = free & ~confounded & (inflation < COLLINEAR) & (1.96 * error < widest)
    slack = _slack(hessian[np.ix_(free, free)], objective, unit_change[:, free], free)
    slack = np.where(positive, np.exp(np.minimum(slack, 700.0)), slack)
    table = pd.DataFrame(
        {
            "flattest": flattest,
            "inflation": inflation,
            "standard_error": error,
            "slack": slack,
            "on_bound": on_bound,
            "pinned": pinned,
            "identified": identified | pinned,
        },
        index=pd.Index(names, name="parameter"),
    )
    return Identifiability(condition, table, widest, confounded_columns)


def _lengths(rows: FloatArray, free: npt.NDArray[np.bool_]) -> FloatArray:
    return np.where(free, np.linalg.norm(rows, axis=1), np.nan)


def _slack(
    hessian: FloatArray, objective: float, change: FloatArray, free: npt.NDArray[np.bool_]
) -> FloatArray:
    """Half-width of each parameter's profile where the objective has risen by 1 %."""
    covariance = change @ np.linalg.pinv(hessian, hermitian=True) @ change.T
    half_width = np.sqrt(np.maximum(2 * 0.01 * objective * np.diag(covariance), 0.0))
    return np.where(free, half_width, np.nan)

"""Which parameters the data determine: conditioning, the flattest direction, and its price."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from toolkit.numerics.compiling import FloatArray
from toolkit.results import Summary, significant

__all__ = ["Identifiability", "assess"]

COLLINEAR = 1e3  # condition number of the scaled Jacobian above which answers are arbitrary
LOADING = 0.1  # share of the flat direction that makes a parameter part of it


@dataclass(frozen=True, slots=True)
class Identifiability:
    """How well each parameter is determined by the data.

    Attributes
    ----------
    condition : float
        Condition number of the Jacobian with columns of unit length (Belsley, Kuh and Welsch
        1980): up to 30 harmless, above 1,000 arbitrary.
    parameters : DataFrame
        One row per parameter: its part in the flattest direction, how far it can move along the
        best compensation by the others for 1 % more objective (a factor for positive
        parameters, a difference for exponents), whether it sits on a bound, and the verdict.
    """

    condition: float
    parameters: pd.DataFrame

    @property
    def identified(self) -> pd.Series:
        """Verdict per parameter, as truth values."""
        return self.parameters["identified"]

    def summary(self) -> Summary:
        """Text or HTML for reading."""
        table = self.parameters.assign(
            flattest=self.parameters["flattest"].map("{:+.2f}".format),
            slack=self.parameters["slack"].map(significant),
        )
        return Summary(
            "Identifiability",
            [("condition number", f"{self.condition:.0f} (harmless below 30)")],
            table,
            [
                "flattest: the direction in which the fit changes least",
                "slack: how far the parameter can go for 1 % more objective, the others following;"
                " a factor for positive parameters, a difference for exponents",
            ],
        )

    def __repr__(self) -> str:
        return self.summary().text()

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()


def assess(
    names: list[str],
    positive: npt.NDArray[np.bool_],
    jacobian: FloatArray,
    weights: FloatArray,
    hessian: FloatArray,
    objective: float,
    on_bound: npt.NDArray[np.bool_],
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
    weights : array, shape (n,)
        Row weights.
    hessian : array, shape (p, p)
        Of the objective in working coordinates.
    objective : float
        At the optimum.
    on_bound : array of bool, shape (p,)
        Which sit on a bound; they are left out of the conditioning.
    """
    free = ~on_bound
    weighted = jacobian[:, free] * np.sqrt(weights)[:, None]
    length = np.linalg.norm(weighted, axis=0)
    scaled = weighted / np.where(length > 0, length, 1.0)
    singular, direction = np.linalg.svd(scaled, full_matrices=False)[1:]
    rank_lost = singular[-1] <= singular[0] * 1e-14 or len(weighted) < free.sum()
    condition = np.inf if rank_lost else float(singular[0] / singular[-1])
    flattest = np.zeros(len(names))
    flattest[free] = direction[-1] * np.sign(direction[-1][np.argmax(np.abs(direction[-1]))])
    part = np.abs(flattest) > LOADING
    identified = free & ~(part & (condition > COLLINEAR))
    slack = _slack(hessian, objective, free)
    slack = np.where(positive, np.exp(np.minimum(slack, 700.0)), slack)
    table = pd.DataFrame(
        {
            "flattest": flattest,
            "slack": np.where(free, slack, np.nan),
            "on_bound": ~free,
            "identified": identified,
        },
        index=pd.Index(names, name="parameter"),
    )
    return Identifiability(condition, table)


def _slack(hessian: FloatArray, objective: float, free: npt.NDArray[np.bool_]) -> FloatArray:
    """Half-width of each parameter's profile where the objective has risen by 1 %."""
    slack = np.full(len(free), np.nan)
    inside = np.ix_(free, free)
    covariance = np.linalg.pinv(hessian[inside], hermitian=True)
    slack[free] = np.sqrt(np.maximum(2 * 0.01 * objective * np.diag(covariance), 0.0))
    return slack

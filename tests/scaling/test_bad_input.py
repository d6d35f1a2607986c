"""Tables and options that cannot be fitted: one clear error each, never a silent number."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from toolkit import datasets, tables
from toolkit.errors import DataError
from toolkit.scaling import fit

# The same examples in every run: a suite that fails by chance is not looked at.
REPEATABLE = {
    "deadline": None,
    "derandomize": True,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
}


def spoil(runs, column, value, row=3):
    """Put a value into one row, whatever the type."""
    changed = runs.copy()
    changed[column] = changed[column].astype(object)
    changed.loc[row, column] = value
    return changed


@pytest.mark.parametrize("column", ["params", "tokens", "loss"])
@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (np.nan, "are NaN"),
        (None, "are NaN"),
        (np.inf, "are infinite"),
        (-np.inf, "are infinite"),
        (0.0, "(are zero|are not positive)"),
        (-2.5, "(are negative|are not positive)"),
        ("7B", "are not a number"),
        (True, "are not a number"),
        (1e40, "are outside"),
        (1e-9, "are outside"),
    ],
)
def test_a_bad_cell_is_named_with_its_column_and_row(runs, column, value, problem):
    with pytest.raises(DataError, match=rf"Column '{column}': 1 of 60 rows \(3\) {problem}") as e:
        fit("chinchilla", spoil(runs, column, value))
    assert "Mend: " in str(e.value)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda r: r.drop(columns="tokens"), "Missing 'tokens'"),
        (lambda r: r.rename(columns={"params": "N", "tokens": "D"}), "params='N', tokens='D'"),
        (lambda r: r.iloc[:0], "no rows"),
        (lambda r: r.iloc[:1], "same value|different points"),
        (lambda r: r.iloc[::12], "5 parameters to fit; 5 different points"),
        (lambda r: pd.concat([r.iloc[:3]] * 20), "different points"),
        (lambda r: r.assign(tokens=2e10), "Column 'tokens' has the same value"),
        (lambda r: r.assign(params=1e9), "Column 'params' has the same value"),
        (lambda r: r.assign(params=r["params"] / 1e6), "absolute"),
        (lambda r: r.assign(tokens=r["tokens"] / 1e9), "to_counts"),
        (lambda r: r.assign(params=r["params"] / 1e9), "to_counts"),
        (lambda r: r.assign(loss=np.exp(5 + r["loss"])), "not perplexity"),
        (lambda r: pd.concat([r, r.iloc[:2]]), "repeat an earlier row"),
        (lambda r: r.to_numpy(), "not ndarray"),
        (lambda r: "runs.csv", "not str"),
        (lambda r: None, "not NoneType"),
        (lambda r: {"params": [1e9, 2e9], "tokens": [1e10], "loss": [2.0, 3.0]}, "lengths"),
        (lambda r: pd.concat([r, r[["loss"]]], axis=1), "twice"),
    ],
)
def test_a_bad_table_is_refused_with_its_reason(runs, make, message):
    with pytest.raises(DataError, match=message):
        fit("chinchilla", make(runs))


def test_counts_in_int64_are_fitted_and_an_overflow_is_recognised(runs):
    whole = runs.assign(
        params=runs["params"].round().astype(np.int64), tokens=runs["tokens"].astype(np.int64)
    )
    np.testing.assert_allclose(
        fit("chinchilla", whole).values, fit("chinchilla", runs).values, 1e-3
    )
    product = np.int64(6) * whole["params"].to_numpy() * whole["tokens"].to_numpy()
    assert (product < 0).any()
    with pytest.raises(DataError, match=r"Column 'flops'.*(negative|outside).*"):
        tables.check(whole.assign(flops=product), ["flops"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": "l2"}, "'huber', 'squared' or 'absolute'; got 'l2'"),
        ({"loss": None}, "got None"),
        ({"delta": 0}, "delta must be a positive"),
        ({"delta": -1e-3}, "delta must be a positive"),
        ({"delta": np.nan}, "delta must be a positive"),
        ({"delta": np.inf}, "delta must be a positive"),
        ({"delta": "small"}, "delta must be a positive"),
        ({"delta": None}, "delta must be a positive"),
        ({"starts": []}, "starts must be finite values of A, B, E, alpha, beta"),
        ({"starts": [1.0, 2.0, 3.0]}, "starts must be finite"),
        ({"starts": [[1.0] * 6]}, "starts must be finite"),
        ({"starts": [[-1.0, 1.0, 1.0, 0.3, 0.3]]}, "starts must be finite"),
        ({"starts": [[1.0, 1.0, 1.0, 0.3, np.nan]]}, "starts must be finite"),
        ({"starts": "hoffmann2022"}, "starts must be finite"),
        ({"starts": np.ones((2, 2, 5))}, "starts must be finite"),
        ({"bootstrap": -5}, "at least 2 resamples; got -5"),
        ({"bootstrap": 1}, "at least 2 resamples; got 1"),
        ({"bootstrap": True}, "number of resamples or integer positions"),
        ({"bootstrap": 2.5}, "number of resamples or integer positions"),
        ({"bootstrap": "100"}, "number of resamples or integer positions"),
        ({"bootstrap": None}, "number of resamples or integer positions"),
        ({"bootstrap": np.zeros((3, 60))}, "number of resamples or integer positions"),
        ({"bootstrap": np.zeros((3, 2), int)}, "2 resamples of 60 units"),
        ({"bootstrap": np.zeros((0, 60), int)}, "2 resamples of 60 units"),
        ({"bootstrap": np.full((3, 60), 60)}, "from 0 to 59"),
        ({"bootstrap": np.full((3, 60), -1)}, "from 0 to 59"),
        ({"weights": "w"}, "Missing 'w'"),
        ({"cluster": "model"}, "Missing 'model'"),
        ({"law": "kaplan-2"}, "No law 'kaplan-2'"),
    ],
)
def test_a_bad_option_is_refused_with_what_is_allowed(runs, options, message):
    law = options.pop("law", "chinchilla")
    with pytest.raises(DataError, match=message):
        fit(law, runs, **options)


@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf, "two"])
def test_weights_must_be_positive_numbers(runs, value):
    with pytest.raises(DataError, match=r"Column 'w': 1 of 60 rows \(3\)"):
        fit("chinchilla", spoil(runs.assign(w=1.0), "w", value), weights="w")


def test_a_run_without_name_is_refused(runs):
    with pytest.raises(DataError, match=r"Column 'run': 1 of 60 rows \(3\) are empty"):
        fit("chinchilla", spoil(runs, "run", None), cluster="run")


ODD = st.sampled_from([np.nan, np.inf, 0.0, -1.0, 1e300, 1e-300])


@st.composite
def small_tables(draw):
    """5 to 12 runs of any magnitude, some repeated, some cells spoiled."""
    n = draw(st.integers(5, 12))
    columns = {
        "params": st.floats(1e5, 1e13),
        "tokens": st.floats(1e6, 1e15),
        "loss": st.floats(0.05, 20.0),
    }
    table = pd.DataFrame({k: draw(st.lists(v, min_size=n, max_size=n)) for k, v in columns.items()})
    if draw(st.booleans()):
        table = pd.concat([table, table.iloc[: draw(st.integers(1, 3))]], ignore_index=True)
    if draw(st.integers(0, 3)) == 0:
        where = (draw(st.integers(0, n - 1)), draw(st.integers(0, 2)))
        table.iloc[where] = draw(ODD)
    table["run"] = np.arange(len(table)) % draw(st.integers(2, len(table)))
    return table


@settings(max_examples=120, **REPEATABLE)
@given(
    small_tables(),
    st.sampled_from(["huber", "squared", "absolute"]),
    st.sampled_from([None, "run"]),
    st.sampled_from([0, 8]),
)
def test_random_tables_give_an_error_or_finite_numbers_or_a_flagged_gap(
    table, loss, cluster, bootstrap
):
    """Never numpy's own warnings or errors, and no NaN without an IdentifiabilityWarning."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = fit("chinchilla", table, loss=loss, cluster=cluster, bootstrap=bootstrap, rng=0)
            frames = [found.params, found.optimal_allocation(1e20), found.influence()]
            frames.append(found.predict(1e9, 1e10))
            if bootstrap:
                frames.append(found.conf_int())
            found.summary().text()
        except DataError:
            return
    kinds = {w.category.__name__ for w in caught}
    assert kinds <= {
        *("ConvergenceWarning", "IdentifiabilityWarning"),
        *("SmallSampleWarning", "ExtrapolationWarning"),
    }, [str(w.message) for w in caught]
    assert np.isfinite(found.objective)
    assert np.isfinite(frames[0].to_numpy()).all()
    assert np.isfinite(frames[3].to_numpy()).all()
    if "IdentifiabilityWarning" not in kinds:
        assert all(np.isfinite(frame.to_numpy(float)).all() for frame in frames)
    if "ConvergenceWarning" not in kinds:
        assert found.certified


@settings(max_examples=15, **REPEATABLE)
@given(st.permutations(range(60)), st.floats(-3, 3), st.floats(-3, 3))
def test_order_names_and_units_change_nothing(study, order, params_power, tokens_power):
    """Coefficients follow the unit by its exponent; everything else stays."""
    runs = study(seed=8)
    expected = fit("chinchilla", runs)
    unit = {"params": 10.0**params_power, "tokens": 10.0**tokens_power}
    other = runs.iloc[order].assign(**{name: runs[name] * unit[name] for name in unit})
    theirs = other.rename(columns={"params": "N", "tokens": "D", "loss": "L"})
    found = fit("chinchilla", tables.rename(theirs, params="N", tokens="D", loss="L"))
    assert found.objective == pytest.approx(expected.objective, rel=1e-10)
    values = expected.params.copy()
    values["A"] *= unit["params"] ** values["alpha"]
    values["B"] *= unit["tokens"] ** values["beta"]
    np.testing.assert_allclose(found.params, values, rtol=1e-5)


@pytest.mark.parametrize("threads", [0, -1, 2.5, True, "2"])
def test_threads_are_a_whole_number_from_one(threads):
    with pytest.raises(DataError, match="threads must be a whole number, 1 or more"):
        fit("chinchilla", datasets.load("simulated_runs"), threads=threads)


@pytest.mark.parametrize("level", [0.0, 1.0, 95, "0.95", None])
def test_a_level_is_a_share(level):
    found = fit("chinchilla", datasets.load("simulated_runs"), bootstrap=20, rng=0)
    for ask in (found.conf_int, found.params_exponent):
        with pytest.raises(DataError, match="level must lie between 0 and 1"):
            ask(level=level)
    with pytest.raises(DataError, match="level must lie between 0 and 1"):
        found.predict(1e9, 1e10, level=level)

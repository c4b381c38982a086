"""Several columns fitted together: against other solvers, limits, and simulated measurements."""

import numpy as np
import pytest
from scipy.optimize import least_squares

from nummodel.fits import fit
from nummodel.formula import formula
from nummodel.models.queueing import mm1_response, mm1_waiting
from nummodel.models.scaling import LAWS

LAMDA = np.array([1.0, 3, 5, 7, 9])
R, W = mm1_response(LAMDA, 0.1), mm1_waiting(LAMDA, 0.1)
QUEUE = {"R": mm1_response, "W": mm1_waiting}


@formula("C")
def half_amdahl(N, X1, sigma):
    return X1 * N / (1 + sigma * (N - 1)) / 2


BOTH = {"X": LAWS["usl"], "C": half_amdahl}


def noisy(values, error, seed):
    return values * np.exp(error * np.random.default_rng(seed).standard_normal(len(values)))


def test_one_column_is_the_fit_of_its_law():
    N = np.array([1.0, 2, 4, 8, 16, 32, 64])
    data = {"N": N, "X": noisy(LAWS["usl"](N, 100.0, 0.05, 1e-3), 0.05, 1)}
    alone, together = fit(LAWS["usl"], data, "log"), fit({"X": LAWS["usl"]}, data)
    for name, value in alone.estimate.items():
        assert together.estimate[name] == pytest.approx(value, rel=1e-8)
        assert together.interval(name) == pytest.approx(alone.interval(name), rel=1e-6)


def test_estimates_are_the_least_squares_of_all_columns():
    """By SciPy, with the errors of the columns as the fit found them; its Jacobian is numerical.
    Two quantities are shared, one belongs to one column.
    """
    N = np.array([1.0, 2, 4, 8, 16])
    one = noisy(LAWS["usl"](N, 100.0, 0.05, 0.02), 0.05, 2)
    two = noisy(half_amdahl(N, 100.0, 0.05), 0.1, 3)
    result = fit(BOTH, {"N": N, "X": one, "C": two})

    def errors(p):
        X1, sigma, kappa = np.exp(p)
        off = [one / LAWS["usl"](N, X1, sigma, kappa), two / half_amdahl(N, X1, sigma)]
        return np.sqrt(result.all_w) * np.log(np.concatenate(off))

    start = np.log([80.0, 0.1, 0.01])
    theirs = least_squares(errors, start, x_scale="jac", xtol=1e-15, ftol=1e-15, gtol=1e-15)
    assert list(result.estimate.values()) == pytest.approx(list(np.exp(theirs.x)), rel=1e-6)
    assert result.rss == pytest.approx(2 * theirs.cost)
    assert result.dof == 7


@pytest.mark.slow
def test_intervals_cover_what_they_say():
    """400 simulations: 95 % within what chance allows (4.4 standard errors, 1 in 100,000)."""
    random = np.random.default_rng(6)
    hit = 0
    for _ in range(400):
        one, two = (
            v * np.exp(error * random.standard_normal(5)) for v, error in ((R, 0.03), (W, 0.12))
        )
        low, high = fit(QUEUE, {"lamda": LAMDA, "R": one, "W": two}).interval("S")
        hit += low <= 0.1 <= high
    assert hit / 400 == pytest.approx(0.95, abs=4.4 * np.sqrt(0.05 * 0.95 / 400))


def test_what_one_law_alone_has_is_its_own_column():
    """A column of one law is not asked of the other."""
    N = np.array([1.0, 2, 4, 8])
    data = {"N": N, "X": LAWS["usl"](N, 10.0, 0.1, 0.01), "C": half_amdahl(N, 10.0, 0.1)}
    result = fit(BOTH, data | {"kappa": np.full(4, 0.01)})
    assert result.estimate == pytest.approx({"X1": 10.0, "sigma": 0.1})
    assert result.at(N, "C") == pytest.approx(data["C"])


def test_two_columns_at_two_loads_are_four_figures():
    """Three unknowns at two loads; exact data give them back."""
    N = np.array([2.0, 8.0])
    data = {"N": N, "X": LAWS["usl"](N, 10.0, 0.1, 0.01), "C": half_amdahl(N, 10.0, 0.1)}
    found = fit(BOTH, data).estimate
    assert found == pytest.approx({"X1": 10.0, "sigma": 0.1, "kappa": 0.01})


DATA = {"lamda": LAMDA, "R": R, "W": W}


@pytest.mark.parametrize(
    "call, told",
    [
        (lambda: fit({}, DATA), "no column of lamda, R, W is one of"),
        (lambda: fit(QUEUE, {"lamda": LAMDA}), "no column of lamda is one of R, W"),
        (lambda: fit(QUEUE, {"R": R, "W": W}), "no column lamda among"),
        (lambda: fit(QUEUE, DATA | {"R": R[:3]}), "3 R and 5 lamda, expected as many"),
        (lambda: fit(QUEUE, DATA | {"lamda": 1.0}), "lamda is a number, expected a column"),
        (lambda: fit(QUEUE, DATA, start={"D": 1.0}), "start has D, expected S"),
        (lambda: fit(QUEUE, DATA, start={"S": -1.0}), "S is -1.0, expected"),
        (lambda: fit(QUEUE, DATA, start={"S": "a"}), "S is 'a', expected"),
        (lambda: fit(QUEUE, DATA, Z=1.0), "no law has 'Z' as a number"),
        (lambda: fit(QUEUE, DATA).peak(), "has no N"),
        (lambda: fit(QUEUE, DATA).at([1, 2], "Q"), "no column Q was fitted, expected one of: R, W"),
    ],
)
def test_what_does_not_fit_together_is_told(call, told):
    with pytest.raises(ValueError, match=told):
        call()

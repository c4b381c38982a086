"""Several columns fitted together: against other solvers, limits, and simulated measurements."""

import numpy as np
import pytest
from scipy.optimize import least_squares

from nummodel.fits import fit, joint
from nummodel.fits.joint import Part
from nummodel.formula import formula
from nummodel.models.queueing import mm1_response, mm1_waiting
from nummodel.models.scaling import LAWS

LAMDA = np.array([1.0, 3, 5, 7, 9])


@formula("X")
def half_amdahl(N, X1, sigma):
    return X1 * N / (1 + sigma * (N - 1)) / 2


def noisy(values, error, seed):
    return values * np.exp(error * np.random.default_rng(seed).standard_normal(len(values)))


def test_one_part_is_the_fit_of_its_law():
    N = np.array([1.0, 2, 4, 8, 16, 32, 64])
    data = {"N": N, "X": noisy(LAWS["usl"](N, 100.0, 0.05, 1e-3), 0.05, 1)}
    start = {"X1": 50.0, "sigma": 0.2, "kappa": 0.01}
    alone, together = fit(LAWS["usl"], data, "log"), joint.fit([Part(LAWS["usl"], data)], start)
    for name, value in alone.estimate.items():
        assert together.estimate[name] == pytest.approx(value, rel=1e-8)
        assert together.interval(name) == pytest.approx(alone.interval(name), rel=1e-6)


def test_estimates_are_the_least_squares_of_all_parts():
    """By SciPy, whose Jacobian is numerical; one quantity is shared, one belongs to one part."""
    N, M = np.array([1.0, 2, 4, 8, 16]), np.array([3.0, 6, 12])
    one = noisy(LAWS["usl"](N, 100.0, 0.05, 0.02), 0.05, 2)
    two = noisy(half_amdahl(M, 100.0, 0.05), 0.1, 3)

    def errors(p):
        X1, sigma, kappa = np.exp(p)
        return np.concatenate(
            [
                np.log(one / LAWS["usl"](N, X1, sigma, kappa)),
                np.log(two / half_amdahl(M, X1, sigma)) / 2,
            ]
        )

    start = {"X1": 80.0, "sigma": 0.1, "kappa": 0.01}
    parts = [Part(LAWS["usl"], {"N": N, "X": one}), Part(half_amdahl, {"N": M, "X": two}, 2.0)]
    result = joint.fit(parts, start)
    theirs = least_squares(
        errors, np.log(list(start.values())), x_scale="jac", xtol=1e-15, ftol=1e-15, gtol=1e-15
    )
    assert list(result.estimate.values()) == pytest.approx(list(np.exp(theirs.x)), rel=1e-6)
    assert result.rss == pytest.approx(2 * theirs.cost)
    assert result.dof == 5


def test_only_the_ratio_of_errors_matters():
    R, W = noisy(mm1_response(LAMDA, 0.1), 0.05, 4), noisy(mm1_waiting(LAMDA, 0.1), 0.2, 5)

    def result(one, two):
        parts = [
            Part(mm1_response, {"lamda": LAMDA, "R": R}, one),
            Part(mm1_waiting, {"lamda": LAMDA, "W": W}, two),
        ]
        return joint.fit(parts, {"S": 0.05})

    first, second = result(1.0, 4.0), result(0.05, 0.2)
    assert first.interval("S") == pytest.approx(second.interval("S"), rel=1e-6)
    assert second.variance == pytest.approx(400 * first.variance)
    assert result(1.0, 1.0).estimate["S"] != pytest.approx(first.estimate["S"], rel=1e-4)


def test_intervals_cover_what_they_say():
    """400 simulations: 95 % within what chance allows (4.4 standard errors, 1 in 100,000)."""
    random = np.random.default_rng(6)
    R, W = mm1_response(LAMDA, 0.1), mm1_waiting(LAMDA, 0.1)
    hit = 0
    for _ in range(400):
        one, two = (
            R * np.exp(0.03 * random.standard_normal(5)),
            W * np.exp(0.12 * random.standard_normal(5)),
        )
        parts = [
            Part(mm1_response, {"lamda": LAMDA, "R": one}),
            Part(mm1_waiting, {"lamda": LAMDA, "W": two}, 4.0),
        ]
        low, high = joint.fit(parts, {"S": 0.09}).interval("S")
        hit += low <= 0.1 <= high
    assert hit / 400 == pytest.approx(0.95, abs=4.4 * np.sqrt(0.05 * 0.95 / 400))


def test_what_one_law_alone_has_is_its_own_column():
    """A column of one part is not asked of the other."""
    N = np.array([1.0, 2, 4, 8])
    X = LAWS["amdahl"](N, 10.0, 0.1)
    usl = Part(LAWS["usl"], {"N": N, "X": LAWS["usl"](N, 10.0, 0.1, 0.01), "kappa": 0.01 * N / N})
    result = joint.fit([Part(LAWS["amdahl"], {"N": N, "X": X}), usl], {"X1": 5.0, "sigma": 0.5})
    assert result.estimate == pytest.approx({"X1": 10.0, "sigma": 0.1})


def test_wrong_parts_are_told():
    R = {"lamda": LAMDA, "R": mm1_response(LAMDA, 0.1)}
    with pytest.raises(ValueError, match="loads are lamda, N, expected one for all"):
        joint.fit([Part(mm1_response, R), Part(LAWS["usl"], {"N": [1], "X": [1]})], {})
    with pytest.raises(ValueError, match="error is 0, expected a positive number"):
        joint.fit([Part(mm1_response, R, 0)], {"S": 1.0})
    with pytest.raises(ValueError, match="start has D, expected S"):
        joint.fit([Part(mm1_response, R)], {"D": 1.0})
    with pytest.raises(ValueError, match="joint fit: no column W among lamda, R"):
        joint.fit([Part(mm1_waiting, R)], {"S": 1.0})


R4 = {"lamda": LAMDA[:4], "R": mm1_response(LAMDA[:4], 0.1)}
W4 = {"lamda": LAMDA[:4], "W": mm1_waiting(LAMDA[:4], 0.1)}


@pytest.mark.parametrize(
    "call, told",
    [
        (lambda: joint.fit([], {"S": 1.0}), "loads are none, expected one for all"),
        (
            lambda: joint.fit(
                [Part(mm1_response, R4 | {"R": [1, 2, 3]}), Part(mm1_waiting, W4 | {"W": [1] * 5})],
                {"S": 0.01},
            ),
            "3 R and 4 lamda, expected as many",
        ),
        (lambda: joint.fit([Part(mm1_response, R4, [1, 2])], {"S": 1.0}), "error is"),
        (lambda: joint.fit([Part(mm1_response, R4 | {"lamda": 1.0})], {"S": 1.0}), "lamda"),
        (
            lambda: joint.fit([Part(mm1_response, R4)], {"S": 0.1}, part=1),
            "part is a column and known",
        ),
        (lambda: joint.fit([Part(mm1_response, R4)], {"S": -1.0}), "S is -1.0, expected"),
        (lambda: joint.fit([Part(mm1_response, R4)], {"S": "a"}), "S is 'a', expected"),
        (lambda: joint.fit([Part(mm1_response, R4)], {"S": 0.1}).peak(), "joint has no N"),
        (lambda: joint.fit([Part(mm1_response, R4)], {"S": 0.1}).at([1, 2]), "4 part and 2 loads"),
    ],
)
def test_what_does_not_fit_together_is_told(call, told):
    with pytest.raises(ValueError, match=told):
        call()


def test_two_columns_at_two_loads_are_four_figures():
    """Three unknowns at two loads; exact data give them back."""
    N = np.array([2.0, 8.0])
    one = Part(LAWS["usl"], {"N": N, "X": LAWS["usl"](N, 10.0, 0.1, 0.01)})
    two = Part(half_amdahl, {"N": N, "X": half_amdahl(N, 10.0, 0.1)})
    start = {"X1": 5.0, "sigma": 0.3, "kappa": 0.1}
    found = joint.fit([one, two], start).estimate
    assert found == pytest.approx({"X1": 10.0, "sigma": 0.1, "kappa": 0.01})

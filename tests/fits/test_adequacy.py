"""Tests of whether a law is right and of what makes intervals wrong, against published values,
scipy, and numbers that follow by integration.
"""

import numpy as np
import pytest
from scipy import integrate, stats

from nummodel.answers.remarks import of_fit
from nummodel.fits import choose, closed, fit, lack_of_fit, laws
from nummodel.formula import formula
from nummodel.models import networks
from nummodel.models.scaling import LAWS

N7 = np.array([1.0, 2, 4, 8, 16, 32, 64])
N16 = np.array([1.0, 2, 3, 4, 6, 8, 10, 12, 16, 20, 24, 28, 32, 40, 48, 64])
#: Twenty loads, each measured twice.
TWICE = np.tile(np.arange(1.0, 21), 2)


def line(N, b0, b1):
    return b0 + b1 * N


def parabola(N, b0, b1, b2):
    return b0 + b1 * N + b2 * N**2


@pytest.mark.parametrize("law, degree", [(line, 1), (parabola, 2)])
def test_lack_of_fit_is_the_textbooks_f_test(law, degree):
    """Of polynomials, by NumPy's least squares and the means of each load."""
    X = 5 + 2 * TWICE - 0.01 * TWICE**2 + 0.3 * np.random.default_rng(1).standard_normal(40)
    pairs = X.reshape(2, 20)
    around = np.sum((pairs - pairs.mean(axis=0)) ** 2)
    rest = np.sum((X - np.polyval(np.polyfit(TWICE, X, degree), TWICE)) ** 2)
    spare = 20 - degree - 1
    F = (rest - around) / spare / (around / 20)
    result = lack_of_fit(fit(law, {"N": TWICE, "X": X}))
    assert result.how == "against the scatter of repeated loads"
    assert result.p == pytest.approx(stats.f.sf(F, spare, 20), rel=1e-6)


def at_most(form, ratio):
    """P(z'Fz <= ratio z'z) for normal z, by Imhof's integral (1961, Biometrika 48:419)."""
    size = np.linalg.eigvalsh(form)[:, None] - ratio

    def integrand(u):
        angle = np.sum(np.arctan(size * u)) / 2
        return np.sin(angle) / (u * np.prod((1 + (size * u) ** 2) ** 0.25))

    return 0.5 - integrate.quad(integrand, 0, np.inf, limit=500)[0] / np.pi


def left(slopes):
    """An orthonormal basis of what slopes leave of errors."""
    return np.linalg.svd(slopes)[0][:, slopes.shape[1] :]


@pytest.mark.parametrize("seed", range(4))
def test_p_values_by_simulation_are_those_by_integration(seed):
    """Of residuals that bend and of errors that grow, for a straight line."""
    random = np.random.default_rng(seed)
    N = np.arange(1.0, 13)
    X = 5 + 3 * N + random.standard_normal(12) * N**0.5 + 0.1 * (N - 6) ** 2
    result = fit(line, {"N": N, "X": X})
    slopes = np.column_stack([np.ones(12), N])
    e, basis = result.residuals, left(slopes)
    steps = np.diff(np.eye(12), axis=0)
    bends = at_most(basis.T @ steps.T @ steps @ basis, np.sum(np.diff(e) ** 2) / (e @ e))
    curve = slopes @ np.linalg.lstsq(slopes, X, rcond=None)[0]
    other = left(slopes / curve[:, None])
    seen = (e / curve) @ other
    scaled = (other.T / curve) @ basis
    grows = at_most(scaled.T @ scaled, seen @ seen / (e @ e))
    found = laws._by_chance(result, laws._faults(result, np.zeros(12))["weights"])
    for p, exact in ((laws._bends(result), bends), (found, grows)):
        spread = np.sqrt(exact * (1 - exact) / laws.DRAWS)
        assert p == pytest.approx(exact, abs=4 * spread + 2 / laws.DRAWS)


def covariances(curve, run, weights, factor):
    """For each fault, the covariances of errors that it may have, which are equally likely."""
    n = len(curve)
    of_run = factor * (run[:, None] == np.unique(run))
    return {
        "outlier": [np.eye(n) + 64 * np.outer(row, row) for row in np.eye(n)],
        "weights": [np.diag(curve**-2 if weights == "log" else curve**2)],
        "runs": [np.eye(n) + of_run @ of_run.T * n / np.sum(of_run**2)],
    }


def log_ratio(V, basis, e):
    """How likely errors are whose size is not known, by integrals over this size in closed form."""
    A, seen = basis.T @ V @ basis, basis.T @ e
    squares = np.sum(seen * np.linalg.solve(A, seen), axis=0) / np.sum(seen**2, axis=0)
    return -np.linalg.slogdet(A)[1] / 2 - basis.shape[1] / 2 * np.log(squares)


@pytest.mark.parametrize("weights", ["log", "absolute"])
@pytest.mark.parametrize("fault", ["none", "outlier", "weights", "runs"])
def test_faults_of_errors_are_told_by_their_likelihoods(weights, fault):
    """By matrices as the textbook has them, and other errors by chance."""
    random = np.random.default_rng(3)
    N, run = np.tile(N7, 3), np.repeat([0, 1, 2], 7)
    noise, curve = 0.03 * random.standard_normal(21), 10.0 * N
    by_percent = (weights == "log") != (fault == "weights")
    X = curve * np.exp(noise) if by_percent else curve + 200 * noise
    X[9] += 2 * max(X[9], 60) * (fault == "outlier")
    X *= 1 + 0.2 * (run - 1) * (fault == "runs")
    result = fit(LAWS["linear"], {"N": N, "X": X}, weights)
    curve = result.at(N)
    factor = (np.ones(21) if weights == "log" else curve)[:, None]
    basis = left(
        factor
    )  # this law is a factor, so its slope is in proportion to the errors of runs
    e = (np.log(X / curve) if weights == "log" else X - curve)[:, None]

    def likelihoods(e):
        return {
            name: np.logaddexp.reduce([log_ratio(V, basis, e) for V in some]) - np.log(len(some))
            for name, some in covariances(curve, run, weights, factor).items()
        }

    own, others = likelihoods(e), likelihoods(basis @ random.standard_normal((20, 4000)))
    for name, likely in laws._faults(result, run).items():
        assert likely(e / np.linalg.norm(e)) == pytest.approx(own[name], rel=1e-6, abs=1e-6)
    total, by_chance = (np.logaddexp.reduce(list(one.values())) for one in (own, others))
    p, name = laws.errors(result)
    assert p == pytest.approx(np.mean(by_chance >= total), abs=0.03)
    assert (p > 0.1 and not of_fit(result)) if fault == "none" else (p < 0.01 and name == fault)


def test_runs_are_told_apart_as_by_analysis_of_variance():
    """Of a law that is a factor, in logarithms: with one mean and one way to differ."""
    random = np.random.default_rng(4)
    own = np.repeat(0.03 * random.standard_normal(4), 7)
    N, run = np.tile(N7, 4), np.repeat(list("abcd"), 7)
    X = 10 * N * np.exp(own + 0.05 * random.standard_normal(28))
    order = random.permutation(28)
    result = fit(LAWS["linear"], {"N": N[order], "X": X[order]}, "log")
    p = stats.f_oneway(*np.log(X / N).reshape(4, 7)).pvalue
    assert 0.01 < p < 0.5
    found = laws._by_chance(result, laws._faults(result, run[order])["runs"])
    assert found == pytest.approx(p, abs=4 * np.sqrt(p / laws.DRAWS))


@pytest.mark.parametrize("named", [True, False])
def test_runs_that_share_an_error_are_told(named):
    random = np.random.default_rng(4)
    run = np.repeat(list("abcd"), 7)
    X = 10 * np.tile(N7, 4) * np.exp(np.repeat([-0.2, -0.1, 0.1, 0.2], 7))
    X *= np.exp(0.05 * random.standard_normal(28))
    order = random.permutation(28) if named else np.arange(28)
    result = fit(LAWS["linear"], {"N": np.tile(N7, 4)[order], "X": X[order]}, "log")
    assert any("same run" in told for told in of_fit(result, run[order] if named else None))


def test_an_outlier_is_named_by_its_load():
    X = 100 * N16 * np.exp(0.03 * np.random.default_rng(3).standard_normal(16))
    X[9] *= 1.2
    (told,) = of_fit(fit(LAWS["linear"], {"N": N16, "X": X}, "log"))
    assert "the point at N = 20 is farther" in told


@pytest.mark.parametrize(
    "N, runs",
    [
        (np.tile(N7, 3), 3),
        (np.tile(N7[::-1], 2), 2),
        (np.repeat(N7, 3), 1),
        (N7, 1),
        (np.append(N7, 64), 1),
        (np.full(5, 2.0), 5),
    ],
)
def test_runs_are_recognised_by_loads_in_the_same_order(N, runs):
    assert len(np.unique(laws._blocks(N))) == runs


def test_one_run_is_none_that_differs_from_others():
    """Not even where a known scale is 3 % off, so that all points are."""
    X = 10 * N16 * np.exp(0.03 + 0.01 * np.random.default_rng(10).standard_normal(16))
    result = fit(LAWS["amdahl"], {"N": N16, "X": X}, "log", X1=10.0)
    assert result.at_bound == {"sigma": 0.0}
    assert not any("run" in told for told in of_fit(result))


def test_columns_of_a_fit_bend_each_by_itself_and_are_no_runs():
    """Two columns at the same loads, which bend in opposite directions."""
    bend = 0.05 * np.cos(np.linspace(0, 2 * np.pi, 16))
    columns = {n: 10 * N16 * np.exp(sign * bend) for n, sign in (("X", 1), ("C", -1))}
    both = {"X": LAWS["linear"], "C": formula("C")(lambda N, X1: X1 * N)}
    (told,) = of_fit(fit(both, {"N": N16, **columns}))
    assert "the law misses the points" in told and "bend" in told


@pytest.mark.slow
def test_where_all_is_right_few_cautions_are_given():
    """Of a law with an estimate on its bound half of the time; see also benchmarks/ADEQUACY.md."""
    random, sets = np.random.default_rng(5), 300
    exact = LAWS["usl"](N=N7, X1=100.0, sigma=0.02, kappa=0.0)
    fits = [
        fit(LAWS["usl"], {"N": N7, "X": exact * np.exp(0.05 * random.standard_normal(7))}, "log")
        for _ in range(sets)
    ]
    assert 100 < sum("kappa" in f.at_bound for f in fits) < 200
    alarms = sum(lack_of_fit(f).p < 0.05 for f in fits)
    assert stats.binom.cdf(alarms, sets, 0.05) > 1e-4 < stats.binom.sf(alarms - 1, sets, 0.05)
    assert sum(bool(of_fit(f)) for f in fits) < 0.15 * sets


@pytest.mark.slow
@pytest.mark.parametrize("runs", [1, 3])
def test_no_scaling_law_is_right_of_users_who_think(runs):
    """Four processors of 30 ms, a lock of 5 ms, one second of thinking, 1 % noise."""
    stations = [networks.queue(0.03, 4), networks.queue(0.005)]
    N = np.array([10, 20, 40, 60, 80, 120, 160, 200, 300])
    X = np.tile(networks.solve(stations, N, 1.0).X, runs)
    X = X * np.exp(0.01 * np.random.default_rng(6).standard_normal(len(X)))
    fits, _ = closed.fit_all(np.tile(N, runs), X, "log")
    assert closed.choose(fits)[0] == "closed" and fits["closed"].peak() is None
    forecast = fits.pop("closed").curve([600, 1200])
    assert (forecast.low < 4 / 0.03).all() and (forecast.high > 4 / 0.03).all()
    assert (forecast.high < 1.1 * forecast.low).all()
    chosen, why = choose(fits)
    assert chosen is None and "usl is rejected: it misses the points" in why
    assert choose({"usl": fits["usl"]}) == (None, why[why.index("usl is rejected") :])
    assert "the law misses the points" in of_fit(fits["usl"])[0]


def test_points_that_a_law_meets_exactly_give_no_caution():
    for law, quantities in (("linear", {}), ("amdahl", {"sigma": 0.1})):
        X = LAWS[law](N=N7, X1=10.0, **quantities)
        for weights in ("absolute", "relative", "log", "auto"):
            assert of_fit(fit(LAWS[law], {"N": N7, "X": X}, weights)) == []


@pytest.mark.parametrize("noise", ["percentage", "absolute"])
def test_weights_found_are_those_of_the_errors(noise):
    random = np.random.default_rng(7)
    exact = LAWS["amdahl"](N=np.tile(N7, 3), X1=100.0, sigma=0.05)
    for _ in range(10):
        error = 0.03 * random.standard_normal(21)
        X = exact * np.exp(error) if noise == "percentage" else exact + exact.mean() * error
        right, wrong = ("log", "absolute") if noise == "percentage" else ("absolute", "log")
        data = {"N": np.tile(N7, 3), "X": X}
        found = fit(LAWS["amdahl"], data, "auto")
        assert found.weights == right and found.lead > 2
        assert found.estimate == fit(LAWS["amdahl"], data, right).estimate
        assert any(
            f"--weights {right}" in told for told in of_fit(fit(LAWS["amdahl"], data, wrong))
        )
        everywhere, _ = closed.fit_all(data["N"], X, "auto")
        everywhere.pop("closed", None)  # which has weights of its own
        assert {f.weights for f in everywhere.values()} == {right}
        assert all(f.lead == everywhere["usl"].lead for f in everywhere.values())


def restricted(X, N, variance):
    """The restricted likelihood of a line through zero, whose errors have this relative variance,
    integrated over its slope and its size of errors (Harville 1974, Biometrika 61:383).
    """
    information = np.sum(N**2 / variance)
    squares = np.sum((X - N * np.sum(N * X / variance) / information) ** 2 / variance)
    return (
        -np.log(variance).sum() / 2 - np.log(information) / 2 - (len(X) - 1) / 2 * np.log(squares)
    )


@pytest.mark.parametrize("scale", [1.0, 1e6])
def test_the_lead_is_that_of_restricted_likelihoods(scale):
    """With errors so small that a logarithm is as good as a ratio; whatever the unit."""
    X = scale * N7 * (1 + 1e-6 * np.random.default_rng(8).standard_normal(7))
    result = fit(LAWS["linear"], {"N": N7, "X": X}, "auto")
    expected = restricted(X, N7, (scale * N7) ** 2) - restricted(X, N7, np.ones(7))
    assert result.lead == pytest.approx(abs(expected), abs=1e-4)
    assert result.weights == ("log" if expected > 0 else "absolute")


def test_points_that_hardly_tell_their_weights_say_so():
    X = LAWS["amdahl"](N=N7[:5], X1=10.0, sigma=0.1) * [1.02, 0.99, 0.98, 1.03, 0.99]
    found = fit(LAWS["usl"], {"N": N7[:5], "X": X}, "auto")
    assert found.lead < 2
    assert any("these points hardly tell how errors grow with X" in s for s in of_fit(found))


def test_without_points_to_spare_or_with_negative_results_errors_are_absolute():
    assert fit(LAWS["amdahl"], {"N": [1, 2], "X": [10, 19]}, "auto").weights == "absolute"
    assert fit(line, {"N": [1, 2, 3, 4], "X": [-3, -1, 1.1, 3]}, "auto").weights == "absolute"

"""Least squares and its errors, against R, lmfit, published fits, and what must always hold."""

import lmfit
import mpmath
import numpy as np
import pytest
import sympy as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from quick import slow
from reference import CASES, points
from scipy.optimize import least_squares

from nummodel.answers.remarks import answer, remarks
from nummodel.errors import InputError
from nummodel.fits import _squares, fit, laws
from nummodel.formula import formula
from nummodel.models.operational import utilisation
from nummodel.models.scaling import LAWS
from nummodel.nomenclature import quantity

MODELS = {"USL 3": "usl", "Amdahl": "amdahl", "linear": "linear"}
REGRESSIONS = {
    name: (LAWS[law], case)
    for name, case in CASES.items()
    for start, law in MODELS.items()
    if case["model"].startswith(start)
}
NAMES = {"gamma": "X1", "alpha": "sigma", "beta": "kappa"}
N7 = np.array([1.0, 2, 4, 8, 16, 32, 64])


def fitted(law, case, **options):
    x, y = points(case)
    return fit(law, {"N": x, "X": y}, **options)


@pytest.mark.parametrize("name", REGRESSIONS)
def test_estimates_of_other_tools(name):
    """To 2e-6, or to where R stops: nls.control has 1e-5 of the residual's length, in units in
    which a standard error is s. The next test shows who is nearer to the least squares.
    """
    law, case = REGRESSIONS[name]
    result, outputs = fitted(law, case), case["outputs"]
    stop = 1e-5 * np.sqrt(result.dof) * result.table()["stderr"].fillna(0)
    for theirs, ours in NAMES.items():
        if theirs in outputs:
            printed = outputs[theirs]
            tolerance = max(2e-6 * abs(printed), stop[ours])
            assert result.estimate[ours] == pytest.approx(printed, abs=tolerance)
    if outputs.get("beta") == 0:
        assert result.at_bound == {"kappa": 0.0}
    elif "se" in outputs:
        assert result.table()["stderr"].tolist() == pytest.approx(outputs["se"], rel=2e-5)
    if "RSS" in outputs:
        assert result.rss == pytest.approx(outputs["RSS"], rel=1e-8)
    if "logLik" in outputs:
        assert laws.log_likelihood(result) == pytest.approx(outputs["logLik"], rel=1e-9)
    if outputs.get("peak_N"):
        peak = outputs["peak_N"], outputs["peak_X"]
        assert result.peak() == pytest.approx(peak, rel=1e-5)


@pytest.mark.parametrize("sigma", [0.0, 0.05, 1.0])
@pytest.mark.parametrize("kappa", [0.0, 1e-15, 1e-12, 1e-6, 0.003, 2.0])
def test_the_peak_is_where_algebra_has_it(sigma, kappa):
    measured = {"N": N7, "X": LAWS["usl"](N=N7, X1=10.0, sigma=sigma, kappa=kappa)}
    result = fit(LAWS["usl"], measured, sigma=sigma, kappa=kappa)
    if kappa == 0:
        assert result.peak() is None
    else:
        N = max(1.0, ((1 - sigma) / kappa) ** 0.5)
        assert result.peak() == pytest.approx((N, result.at(N)), rel=1e-7)


@pytest.mark.parametrize("name", REGRESSIONS)
def test_estimates_solve_the_normal_equations_in_40_digits(name):
    law, case = REGRESSIONS[name]
    result = fitted(law, case)
    inner = [n for n in result.free if n not in result.at_bound]
    symbols = [law.symbols[n] for n in inner]
    model = law.expr.subs({law.symbols[n]: b for n, b in result.at_bound.items()})
    load = law.symbols["N"]
    terms = [sp.lambdify([load, *symbols], e, "mpmath") for e in [model, *map(model.diff, symbols)]]

    def equations(*p):
        rows = [[term(mpmath.mpf(n), *p) for term in terms] for n in points(case)[0]]
        errors = [row[0] - x for row, x in zip(rows, points(case)[1], strict=True)]
        return [
            mpmath.fsum(e * row[k] for e, row in zip(errors, rows, strict=True))
            for k in range(1, len(terms))
        ]

    with mpmath.workdps(40):
        start = [result.estimate[n] for n in inner]
        exact = [float(value) for value in mpmath.findroot(equations, start, solver="mdnewton")]
    assert start == pytest.approx(exact, rel=1e-8)


def test_enough_reference_cases():
    assert len(REGRESSIONS) == 16


def test_published_coefficients_of_sdm91():
    """Gunther (2007): alpha 0.02773 (0.009122), beta 1.044e-4 (1.988e-5), gamma 90.0 (14.21),
    residual standard error 82.85 on 4 degrees of freedom.
    """
    result = fitted(LAWS["usl"], CASES["nls_usl_unbounded_specsdm91"])
    table = result.table()
    assert round(result.estimate["X1"], 1) == 90.0
    assert round(result.estimate["sigma"], 5) == 0.02773
    assert round(result.estimate["kappa"], 7) == 1.044e-4
    assert table.loc["sigma", "stderr"] == pytest.approx(0.009122, abs=5e-7)
    assert table.loc["X1", "stderr"] == pytest.approx(14.21, abs=0.005)
    assert result.dof == 4
    assert np.sqrt(result.rss / result.dof) == pytest.approx(82.85, abs=0.005)


@pytest.mark.parametrize("weights", ["absolute", "relative"])
def test_lmfit_live_on_the_same_data(weights):
    x, y = map(np.asarray, points(CASES["nls_usl_unbounded_specsdm91"]))

    def usl(N, X1, sigma, kappa):  # lmfit searches outside the ranges, too
        return LAWS["usl"].unchecked(N=N, X1=X1, sigma=sigma, kappa=kappa)

    model = lmfit.Model(usl)
    theirs = model.fit(y, N=x, X1=60, sigma=0.05, kappa=1e-4)
    for _ in range(20 if weights == "relative" else 0):  # until the weights are those of the curve
        theirs = model.fit(y, theirs.params, N=x, weights=1 / theirs.best_fit)
    result = fit(LAWS["usl"], {"N": x, "X": y}, weights)
    # lmfit's variance is that of the last weighted squares, ours that of the gamma deviance.
    scale = np.sqrt(theirs.redchi / result.variance)
    assert scale == pytest.approx(1, abs=1e-9 if weights == "absolute" else 0.01)
    for name, parameter in theirs.params.items():
        assert result.estimate[name] == pytest.approx(parameter.value, rel=1e-5)
        ours = scale * result.table().loc[name, "stderr"]
        assert ours == pytest.approx(parameter.stderr, rel=1e-3)


def test_prediction_interval_is_the_textbook_one():
    """A line through the origin: s sqrt(1 + x^2/sum(x^2)), with t from a table."""
    N, X = np.arange(1.0, 7), np.array([11.0, 19, 32, 39, 52, 59])
    result = fit(LAWS["linear"], {"N": N, "X": X})
    slope = (N @ X) / (N @ N)
    s = np.sqrt(np.sum((X - slope * N) ** 2) / 5)
    reach = 2.570582 * s * np.sqrt(1 + 100 / (N @ N))  # t(0.975, 5)
    row = result.predict(10).iloc[0]
    assert (row["low"], row["high"]) == pytest.approx((10 * slope - reach, 10 * slope + reach))


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
@pytest.mark.parametrize("noise", [1e-9, 1e-3, 0.1, 0.5])
def test_relative_weights_are_those_of_the_curve_itself(law, noise):
    """Weights of 1/curve^2, kept while the squares are made least, lead back to the curve."""
    true = {"X1": 10.0, "sigma": 0.05, "kappa": 1e-3}
    true = {n: true[n] for n in law.quantities[1:]}
    X = law(N=N7, **true) * np.exp(noise * np.random.default_rng(5).standard_normal(N7.size))
    relative = fit(law, {"N": N7, "X": X}, "relative")
    given_ = fit(law, {"N": N7, "X": X}, relative.at(N7) ** -2.0)
    assert given_.estimate == pytest.approx(relative.estimate, rel=1e-7, abs=1e-12)


def test_relative_weights_of_small_errors_are_those_of_one_over_the_square():
    """Then the errors are the same by the curve, by X, and of logarithms."""
    true = {"X1": 10.0, "sigma": 0.05, "kappa": 1e-3}
    errors = 1e-6 * np.random.default_rng(6).standard_normal(N7.size)
    data = {"N": N7, "X": LAWS["usl"](N=N7, **true) * (1 + errors)}
    by_square = fit(LAWS["usl"], data, data["X"] ** -2.0)
    new = np.array([100.0, 300.0])
    for weights in ("relative", "log"):
        other = fit(LAWS["usl"], data, weights)
        assert other.rss == pytest.approx(by_square.rss, rel=1e-4)
        assert laws.aicc(other) == pytest.approx(laws.aicc(by_square))
        theirs = by_square.predict(new, weight=by_square.at(new) ** -2.0)
        assert other.predict(new).to_numpy() == pytest.approx(theirs.to_numpy(), rel=1e-10)
        for name, estimate in by_square.estimates().items():
            assert other.estimates()[name] == pytest.approx(tuple(estimate), rel=1e-4)


def test_gamma_deviance_of_one_station_is_that_of_mpmath():
    """2 (u - 1 - ln u), also where u - 1 is so small that floats lose it."""
    for u in (1 + 1e-14, 1 - 1e-9, 1.0001, 1.0999, 0.9001, 1.1001, 0.8999, 4.0, 1e-3, 1e-20):
        with mpmath.workdps(60):
            expected = float(2 * (mpmath.mpf(u) - 1 - mpmath.log(u)))
        (error,) = _squares.errors("relative", np.array([u]), np.ones(1))
        assert error**2 == pytest.approx(expected, rel=1e-13) and error * (u - 1) > 0


@pytest.mark.parametrize("weights", ["absolute", "given"])
def test_a_law_may_be_zero_at_a_measured_load(weights):
    """A line through (1, 0), by the textbook's formula."""

    @formula("X")
    def beyond_the_first(N, X1):
        return X1 * (N - 1)

    X = np.array([0.5, 9, 31, 70, 152])
    w = np.array([1.0, 2, 1, 3, 1]) if weights == "given" else np.ones(5)
    result = fit(beyond_the_first, {"N": N7[:5], "X": X}, w if weights == "given" else weights)
    slope = w @ ((N7[:5] - 1) * X) / (w @ (N7[:5] - 1) ** 2)
    assert result.estimate["X1"] == pytest.approx(slope, rel=1e-12)


def test_zvm_estimates_of_the_design():
    """MODELS.md, section 1: 0.0257 from 6 to 24-way, 0.0219 from all, both with weights of 1/X^2,
    and 0.0197 with absolute weights. By lmfit, with weights of the curve: 0.0257 and 0.02195.
    """
    from nummodel.records import data

    runs = data.load("zvm-scaling").assign(X=lambda f: f["itr"])
    by_square = np.square(runs["X"].to_numpy()) ** -1.0
    for rows, weights, sigma in (
        (4, by_square[:4], 0.0257),
        (6, by_square, 0.0219),
        (6, "absolute", 0.0197),
    ):
        result = fit(LAWS["amdahl"], runs[:rows], weights)
        assert round(result.estimate["sigma"], 4) == sigma

    def amdahl(N, X1, sigma):
        return X1 * N / (1 + sigma * (N - 1))

    for rows in (4, 6):
        N, X = runs["N"].to_numpy()[:rows], runs["X"].to_numpy()[:rows]
        theirs = lmfit.Model(amdahl).fit(X, N=N, X1=500, sigma=0.02)
        for _ in range(20):
            weights = 1 / theirs.best_fit
            theirs = lmfit.Model(amdahl).fit(X, theirs.params, N=N, weights=weights)
        result = fit(LAWS["amdahl"], runs[:rows], "relative")
        assert result.estimate["sigma"] == pytest.approx(theirs.params["sigma"].value, rel=1e-5)
    usl = fit(LAWS["usl"], runs, "relative")
    assert usl.at_bound == {"kappa": 0.0} and not usl.table().loc["kappa", "identified"]
    assert np.isnan(usl.table().loc["kappa", "stderr"])


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_exact_points_give_the_parameters_back(law):
    true = {"X1": 123.0, "sigma": 0.04, "kappa": 0.0007}
    true = {n: true[n] for n in law.quantities[1:]}
    result = fit(law, {"N": N7, "X": law(N=N7, **true)})
    assert result.estimate == pytest.approx(true, rel=1e-9)
    assert not any("bound" in remark for remark in remarks(result))


def test_points_that_every_law_meets_exactly_choose_the_simplest():
    fits = {name: fit(law, {"N": N7, "X": 3.7 * N7}) for name, law in LAWS.items()}
    assert laws.choose(fits)[0] == "linear"
    assert fits["usl"].at_bound == {"sigma": 0.0, "kappa": 0.0}


def test_comparison_picks_the_law_that_made_the_points():
    noise = 1 + 0.01 * np.random.default_rng(1).standard_normal(N7.size)
    for name, true in (("amdahl", {"sigma": 0.2}), ("usl", {"sigma": 0.05, "kappa": 0.001})):
        X = noise * LAWS[name](N=N7, X1=10.0, **true)
        fits = {n: fit(law, {"N": N7, "X": X}, "relative") for n, law in LAWS.items()}
        assert laws.choose(fits)[0] == name


def test_contract_on_the_number_of_points():
    """An estimate needs n >= p, an interval n > p, a comparison n > p + 2."""
    X = LAWS["usl"](N=N7, X1=10.0, sigma=0.05, kappa=0.001) * (1 + 0.01 * np.cos(9 * N7))
    results = {n: fit(LAWS["usl"], {"N": N7[:n], "X": X[:n]}) for n in (3, 4, 5, 6)}
    with pytest.raises(InputError, match="2 different N, expected at least 3"):
        fit(LAWS["usl"], {"N": N7[:2], "X": X[:2]})
    for n, result in results.items():
        has = ~np.isnan(result.table()[["stderr", "low", "high"]].drop(result.at_bound))
        assert has.all(axis=None) == (n > 3)
        assert np.isfinite(laws.aicc(result)) == np.isfinite(result.loo_rmse) == (n > 5)
        assert np.isfinite(result.predict(99)["low"]).all() == (n > 3)
    assert laws.choose({"usl": results[5], "other": results[4]})[0] is None


def test_repeated_loads_do_not_count_twice_towards_what_can_be_estimated():
    with pytest.raises(InputError, match="1 different N"):
        fit(LAWS["amdahl"], {"N": [4, 4, 4], "X": [10, 11, 12]})
    result = fit(LAWS["amdahl"], {"N": [1, 1, 8, 8], "X": [10, 11, 50, 52]})
    assert result.dof == 2 and np.isnan(result.loo_rmse)


def test_superlinear_points_are_said_to_be():
    result = fit(LAWS["usl"], {"N": N7, "X": N7**1.1})
    assert result.estimate["sigma"] == 0 and "sigma" in result.at_bound
    assert any("superlinear: sigma would be negative" in remark for remark in remarks(result))


def test_a_known_quantity_is_not_estimated():
    x, y = points(CASES["nls_amdahl_specsdm91"])
    result = fit(LAWS["usl"], {"N": x, "X": y}, kappa=0.0)
    assert set(result.estimate) == {"X1", "sigma"}
    assert result.estimate == pytest.approx(fit(LAWS["amdahl"], {"N": x, "X": y}).estimate)
    assert fit(LAWS["amdahl"], {"N": x, "X": y}, X1=90.0).at(1) == pytest.approx(90)


@pytest.mark.parametrize(
    "N, X, options, message",
    [
        ([1, 2, np.nan], [1, 2, 3], {}, "N must be positive"),
        ([1, 2, np.inf], [1, 2, 3], {}, "finite"),
        ([0, 1, 2], [1, 2, 3], {}, "N must be positive"),
        ([1, 2, 3], [1, 2], {}, "2 X and 3 N, expected as many"),
        ([1, 2, 3], [0, -1, 0], {}, "no X is positive"),
        ([1, 2, 3], [1, 2, 0], {"weights": "relative"}, "positive X"),
        ([1, 2, 3], [1, -2, 3], {"weights": "log"}, "positive X"),
        ([1, 2, 3], [1, 2, 3], {"weights": [1, 1, -1]}, "positive"),
        ([1, 2, 3], [1, 2, 3], {"weights": "robust"}, "absolute, relative, log"),
        ([1, 2, 3], [1, 2, 3], {"resolution": -0.5}, "resolution"),
        (
            [1, 2, 3],
            [1, 2, 3],
            {"sigma": 2.0},
            "sigma is 2.0, expected a number of at least 0 and at most 1",
        ),
        ([1, 2, 3], [1, 2, 3], {"X1": np.nan}, "X1 is nan"),
        ([1, 2, 3], [1, 2, 3], {"simga": 0.1}, "no 'simga', expected one of: X1, sigma"),
    ],
)
def test_what_cannot_be_fitted_is_refused(N, X, options, message):
    with pytest.raises(ValueError, match=message):
        fit(LAWS["amdahl"], {"N": N, "X": X}, **options)


@pytest.mark.parametrize("far", [1e-160, 1e160])
@pytest.mark.parametrize("column", ["N", "X"])
def test_measurements_too_far_from_one_are_refused(column, far):
    points = {"N": [1.0, 2, 3, 4, 5], "X": [1.0, 2, 3, 4, 5]}
    points[column][2] = far
    with pytest.raises(ValueError, match="N and X are too far from 1"):
        fit(LAWS["usl"], points)


def test_a_curve_that_would_be_negative_at_a_measured_load_is_refused():
    """Below N = 1 the USL with a large kappa is negative; above, X1/(kappa (N - 1)) is met."""
    N = np.array([2.0, 3, 4, 5, 6, 8, 0.1])
    X = np.append(1e6 / (N[:-1] - 1), 1.0)
    with pytest.raises(InputError, match=r"usl_throughput comes out as -[0-9.]+"):
        fit(LAWS["usl"], {"N": N, "X": X}, [1.0, 1, 1, 1, 1, 1, 1e-9])
    beyond = fit(LAWS["usl"], {"N": N[:-1], "X": X[:-1]})
    assert beyond.at(0.1) < 0 and np.isfinite(beyond.loo_rmse)


@pytest.mark.slow
def test_a_fit_with_all_estimates_on_bounds_is_shown():
    N = np.array([1.0, 2, 4, 8])
    result = fit(LAWS["amdahl"], {"N": N, "X": 10 * N}, X1=10.0)
    assert result.at_bound == {"sigma": 0.0} and result.covariance.shape == (0, 0)
    assert np.isnan(result.table()["stderr"]["sigma"])
    assert any("sigma is on its bound" in remark for remark in remarks(result))
    assert "sigma" in result._repr_html_()


def test_a_level_is_a_share():
    result = fit(LAWS["amdahl"], {"N": [1, 2, 4], "X": [1, 1.9, 3.5]})
    for asked in (
        result.table,
        lambda level: result.predict(8, level),
        lambda level: answer(result, level=level),
    ):
        with pytest.raises(ValueError, match="level is 95, expected a number between 0 and 1"):
            asked(95)


@pytest.mark.parametrize("level", [0.5, 0.95, 1 - 2.0**-30, 1 - 2.0**-53])
def test_levels_near_one_have_the_quantile_of_the_textbook(level):
    """With one degree of freedom it is a cotangent."""
    N, X = np.array([3.0, 4.0]), np.array([30.0, 40.000001])
    result = fit(LAWS["linear"], {"N": N, "X": X})
    X1 = N @ X / (N @ N)
    error = np.sqrt(((X - X1 * N) ** 2).sum() / (N @ N))
    t = float(mpmath.cot(mpmath.pi * mpmath.mpf(1 - level) / 2))
    assert result.interval("X1", level)[1] == pytest.approx(X1 + t * error, rel=1e-6)


def test_points_by_the_ten_thousand():
    """Nothing here may take memory by the square of the points."""
    N = np.tile(np.arange(1.0, 41), 1000)
    X = LAWS["usl"](N, 100.0, 0.05, 0.001) * (1 + 0.01 * np.cos(np.arange(len(N))))
    result = fit(LAWS["usl"], {"N": N, "X": X})
    assert result.loo_rmse == pytest.approx(np.sqrt(result.rss / len(N)), rel=1e-3)
    low, high = result.interval("sigma")
    assert low < 0.05 < high < 0.051


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("size", [slow(1e30), slow(1e60)])
def test_loads_of_any_size_have_remarks(size):
    N = np.array([1, 2, 4, 8, 16, 32.0]) * size
    found = remarks(fit(LAWS["usl"], {"N": N, "X": np.array([10, 19, 33, 52, 60, 58]) * size}))
    assert not any("inf" in remark or "nan" in remark or "open" in remark for remark in found)


positive = st.floats(1e-6, 1e9)
tables = st.lists(st.tuples(st.integers(1, 10_000), positive), min_size=3, max_size=9)


@pytest.mark.slow
@settings(max_examples=settings().max_examples * 60 // 100)
@given(tables, st.sampled_from(list(LAWS)), st.sampled_from(["absolute", "relative"]))
def test_estimates_respect_their_bounds_for_any_positive_data(rows, name, weights):
    N, X = np.array(rows, dtype=float).T
    assume(len(np.unique(N)) >= 3)
    result = fit(LAWS[name], {"N": N, "X": X}, weights)
    for quantity_, value in result.estimate.items():
        assert quantity(quantity_).low <= value <= quantity(quantity_).high
    table = result.table()
    if result.dof > 0:
        assert ((table["low"] <= table["value"]) & (table["value"] <= table["high"])).all()


@settings(max_examples=settings().max_examples * 40 // 100)
@given(st.integers(0, 10**6), st.floats(1e-9, 1e9), st.randoms(use_true_random=False))
def test_the_unit_of_X_and_the_order_of_rows_do_not_matter(seed, unit, shuffle):
    noise = 1 + 0.05 * np.random.default_rng(seed).standard_normal(N7.size)
    X = LAWS["usl"](N=N7, X1=10.0, sigma=0.05, kappa=0.001) * noise
    order = list(range(len(N7)))
    shuffle.shuffle(order)
    one = fit(LAWS["usl"], {"N": N7, "X": X})
    other = fit(LAWS["usl"], {"N": N7[order], "X": unit * X[order]})
    assert other.estimate["X1"] == pytest.approx(unit * one.estimate["X1"], rel=1e-7)
    assert other.estimate["sigma"] == pytest.approx(one.estimate["sigma"], rel=1e-6, abs=1e-9)
    assert other.estimate["kappa"] == pytest.approx(one.estimate["kappa"], rel=1e-6, abs=1e-12)


@pytest.mark.slow
@settings(max_examples=settings().max_examples * 25 // 100)
@given(st.integers(0, 10**6), st.floats(0.5, 0.9), st.floats(0.901, 0.999))
def test_intervals_are_nested(seed, low_level, high_level):
    noise = 1 + 0.05 * np.random.default_rng(seed).standard_normal(N7.size)
    result = fit(LAWS["amdahl"], {"N": N7, "X": N7 / (1 + 0.1 * (N7 - 1)) * noise})
    wide, narrow = result.table(high_level), result.table(low_level)
    assert (wide["low"] <= narrow["low"]).all() and (narrow["high"] <= wide["high"]).all()
    curve, new = result.curve([1, 30, 500], high_level), result.predict([1, 30, 500], high_level)
    assert (new["low"] <= curve["low"]).all() and (curve["high"] <= new["high"]).all()


@formula("R")
def delayed(lamda, D0, S, D):
    """No factor can take the unit of R."""
    return D0 + S * lamda * D / (1 - lamda * D)


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e6])
@pytest.mark.parametrize("weights", ["absolute", "relative", "log"])
def test_a_law_without_a_factor_is_fitted_in_any_unit(weights, unit):
    lamda = np.array([1.0, 2, 4, 6, 8, 9])
    R = delayed(lamda, 0.8, 0.2, 0.1) * (1 + 0.01 * np.array([1, -1, 1, -1, 1, -1]))
    result = fit(delayed, {"lamda": lamda / unit, "R": R * unit}, weights)

    def errors(p):
        model = delayed(lamda, *p)
        u = R / model
        deviance = np.sign(u - 1) * np.sqrt(2 * (u - 1 - np.log(u)))
        return {"absolute": R - model, "relative": deviance, "log": np.log(u)}[weights]

    theirs = least_squares(errors, [0.8, 0.2, 0.1], x_scale="jac", xtol=1e-15, ftol=1e-15).x
    assert np.array(list(result.estimate.values())) / unit == pytest.approx(theirs, rel=1e-6)


@formula("X")
def two_factors(N, X1, S, sigma):
    return X1 * S * N / (1 + sigma * (N - 1))


@formula("X")
def of_the_load(N, R, Z):
    """A multiple of its load, and of no other quantity."""
    return N / (R + Z)


@formula("X")
def roof(N, X1, X_max):
    return sp.Min(X1 * N, X_max)


def test_a_law_may_have_a_corner():
    """Left of it a line through the origin, right of it a mean: textbook formulas."""
    N = np.array([1.0, 2, 4, 8, 16, 32])
    X = np.minimum(10 * N, 100) * (1 + 0.01 * np.array([1, -1, 1, -1, 1, -1]))
    result = fit(roof, {"N": N, "X": X})
    slope = (N[:4] @ X[:4]) / (N[:4] @ N[:4])
    assert result.estimate == pytest.approx({"X1": slope, "X_max": X[4:].mean()})
    assert result.peak() is None and result.X_max == pytest.approx(100)


def test_a_law_may_be_a_multiple_of_several_quantities():
    """Exact points give the estimates back; of two free factors only the product is determined."""
    X = two_factors(N=N7, X1=100.0, S=0.5, sigma=0.1)
    for known in ({"S": 0.5}, {}):
        result = fit(two_factors, {"N": N7, "X": X}, **known)
        assert result.values["X1"] * result.values["S"] == pytest.approx(50)
        assert result.estimate["sigma"] == pytest.approx(0.1)
    assert fit(of_the_load, {"N": N7, "X": N7 / 5}, Z=3.0).estimate["R"] == pytest.approx(2)


def test_what_was_measured_besides_is_taken_from_its_column():
    """Demands differ from run to run, and are known; exact answers, by least squares of a line."""
    N, D = np.array([1.0, 2, 4, 8]), np.array([0.1, 0.2, 0.1, 0.3])
    rho = N * D / 4
    result = fit(utilisation, {"X": N, "rho": rho, "D": D})
    assert result.estimate == pytest.approx({"c": 4.0})
    assert result.at(N) == pytest.approx(rho)
    assert result.at([3.0], D=[0.2]) == pytest.approx(0.15)
    assert result.predict([3.0], D=[0.2])["value"].to_numpy() == pytest.approx(0.15)
    with pytest.raises(ValueError, match="D is a column, expected its values there"):
        result.predict([3.0])
    with pytest.raises(ValueError, match="3 D and 4 X, expected as many"):
        fit(utilisation, {"X": N, "rho": rho, "D": D[:3]})
    with pytest.raises(ValueError, match=r"D is -0\.1, expected a number of at least 0"):
        fit(utilisation, {"X": N, "rho": rho, "D": -D})


@pytest.mark.parametrize("weights", ["absolute", "relative", "log"])
def test_a_measurement_that_counts_twice_is_there_twice(weights):
    data = {"N": np.array([1.0, 2, 4, 8, 16]), "X": np.array([10.0, 18, 33, 50, 60])}
    twice = {name: np.append(column, column[2]) for name, column in data.items()}
    once = fit(LAWS["amdahl"], data, weights, times=[1, 1, 2, 1, 1])
    assert once.estimate == pytest.approx(fit(LAWS["amdahl"], twice, weights).estimate)
    with pytest.raises(ValueError, match="weights and times must be finite and positive"):
        fit(LAWS["amdahl"], data, weights, times=0)


def test_a_search_begins_where_it_is_told():
    data = {"N": np.array([1.0, 2, 4, 8, 16]), "X": np.array([10.0, 18, 33, 50, 60])}
    told = fit(LAWS["amdahl"], data, start={"X1": 1.0, "sigma": 0.5})
    assert told.estimate == pytest.approx(fit(LAWS["amdahl"], data).estimate)
    with pytest.raises(ValueError, match="start has sigma, expected X1, sigma"):
        fit(LAWS["amdahl"], data, start={"sigma": 0.5})


def test_a_fit_shows_its_estimates_and_its_curve():
    data = {"N": np.array([1.0, 2, 4, 8, 16]), "X": np.array([10.0, 18, 33, 50, 60])}
    html = fit(LAWS["amdahl"], data)._repr_html_()
    assert all(word in html for word in ("sigma", "stderr", '<img src="data:image/svg', "alt="))
    assert (
        "<img"
        not in fit(utilisation, {"X": [1.0, 2], "rho": [0.1, 0.2], "D": [1, 1]})._repr_html_()
    )


def test_columns_of_other_names_are_to_be_renamed():
    with pytest.raises(ValueError, match="no column N among threads, tps, expected N and X: ren"):
        fit(LAWS["linear"], {"threads": [1, 2], "tps": [3, 6]})


@pytest.mark.slow
def test_thousands_of_predictions_take_little_memory():
    """At loads that all differ, from few points and from many."""
    import tracemalloc

    random = np.random.default_rng(1)
    for N in (N7, np.arange(1.0, 3001)):
        X = LAWS["usl"](N, 10.0, 0.05, 0.001) * np.exp(0.02 * random.standard_normal(len(N)))
        result = fit(LAWS["usl"], {"N": N, "X": X}, "log")
        result.predict(99)  # what is imported
        tracemalloc.start()
        try:
            rows = result.predict(np.arange(101.0, 5101))
            assert tracemalloc.get_traced_memory()[1] < 200e6
        finally:
            tracemalloc.stop()
        assert (rows["low"] < rows["value"]).all() and (rows["value"] < rows["high"]).all()

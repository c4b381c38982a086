"""Any Python function as a law: against SciPy's curve_fit, algebra, and what must be refused."""

import math
from functools import partial

import numpy as np
import pytest
from quick import one_in
from scipy.optimize import curve_fit
from scipy.special import stdtrit

from nummodel import _differences
from nummodel.answers.remarks import answer, remarks
from nummodel.fits import bootstrap, choose, fit, laws
from nummodel.models import scaling
from nummodel.nomenclature import show

N = np.array([1.0, 2, 3, 4, 8, 16, 32, 48, 64])
NOISE = 1 + 0.02 * np.random.default_rng(7).standard_normal(len(N))
ANY = (0.0, np.inf)


def hill(dose, top, half, h):
    return top * dose**h / (half**h + dose**h)


def michaelis_menten(s, top, half):
    return top * s / (half + s)


def ricker(stock, a, b):
    return a * stock * np.exp(-b * stock)


def mva(users, cpu, disk, Z=1.0):
    """Two queues, by Reiser and Lavenberg's recursion over whole numbers of users."""
    at_cpu = at_disk = X = 0.0
    for n in range(1, round(users) + 1):
        R_cpu, R_disk = cpu * (1 + at_cpu), disk * (1 + at_disk)
        X = n / (Z + R_cpu + R_disk)
        at_cpu, at_disk = X * R_cpu, X * R_disk
    return X


CASES = {
    "hill": (hill, {"top": 100.0, "half": 10.0, "h": 1.5}),
    "michaelis_menten": (michaelis_menten, {"top": 100.0, "half": 10.0}),
    "ricker": (ricker, {"a": 5.0, "b": 0.05}),
    "mva": (np.vectorize(mva, excluded=["Z"]), {"cpu": 0.05, "disk": 0.02}),
}
MODELS = {"hill": hill, "michaelis_menten": michaelis_menten, "ricker": ricker, "mva": mva}


def measured(name):
    """The columns, and a sequence of all values that are not the load."""
    vector, truth = CASES[name]
    return np.array(vector(N, *truth.values())) * NOISE


def fitted(name, **options):
    model = MODELS[name]
    load = model.__code__.co_varnames[0]
    bounds = dict.fromkeys(CASES[name][1], ANY)
    return fit(model, {load: N, "rate": measured(name)}, **{"bounds": bounds} | options)


def by_scipy(name, X, start, fixed=()):
    """Estimates and residual sum of squares, with the first ones `fixed`."""

    def free(n, *rest):
        return CASES[name][0](n, *fixed, *rest)

    tight = {"ftol": 1e-15, "xtol": 1e-15, "gtol": 1e-15, "epsfcn": 1e-14}
    found = curve_fit(free, N, X, p0=start, method="lm", **tight)[0] if len(start) else start
    return found, float(np.sum((free(N, *found) - X) ** 2))


@pytest.mark.parametrize("name", CASES)
def test_estimates_are_those_of_scipy(name):
    found = fitted(name)
    theirs, rss = by_scipy(name, measured(name), list(CASES[name][1].values()))
    ours, theirs = list(found.estimate.values()), theirs.tolist()
    if name == "mva":  # either of two queues may be the slower one
        ours, theirs = sorted(ours), sorted(theirs)
    assert ours == pytest.approx(theirs, rel=1e-6)
    assert found.rss == pytest.approx(rss, rel=1e-9)


@pytest.mark.parametrize("name", CASES)
def test_the_ends_of_an_interval_cost_what_the_f_threshold_allows(name):
    """At both ends, SciPy fits the other quantities."""
    found, t = fitted(name), stdtrit(len(N) - len(CASES[name][1]), 0.975)
    quantity, *others = found.estimate
    for end in found.interval(quantity):
        start = [found.estimate[n] for n in others]
        _, rss = by_scipy(name, measured(name), start, fixed=[end])
        assert (rss - found.rss) / found.variance == pytest.approx(t**2, rel=1e-5)


@pytest.mark.parametrize("name", one_in(2, ["ricker", "hill", "michaelis_menten", "mva"]))
def test_bands_and_bootstrap_work_as_for_a_formula(name):
    found = fitted(name)
    curve, new = found.curve([5.0, 20.0]), found.predict([5.0, 20.0])
    assert (new["low"] < curve["low"]).all() and (curve["high"] < new["high"]).all()
    X = found.at(N) * NOISE[::-1]
    theirs = by_scipy(name, X, list(found.estimate.values()))[0]
    load = found.law.quantities[0]
    again = fit(found.law, {load: N, "rate": X})
    curve = found.law(**{load: N}, **dict(zip(found.estimate, theirs.tolist(), strict=True)))
    assert again.at(N) == pytest.approx(curve, rel=1e-6)  # equal demands may exchange their names
    spread = bootstrap(found, count=200, seed=3).std()
    assert (abs(spread / found.table()["stderr"] - 1) < 0.25).all()


def test_a_function_is_what_the_formula_is():
    """The USL once more, as plain arithmetic, and as a function that takes numbers only."""

    def usl(N, X1, sigma, kappa):
        return X1 * N / (1 + sigma * (N - 1) + kappa * N * (N - 1))

    def usl_by_math(N, X1, sigma, kappa):
        return math.exp(math.log(X1 * N)) / (1 + sigma * (N - 1) + kappa * N * (N - 1))

    X = scaling.usl_throughput(N=N, X1=10.0, sigma=0.03, kappa=1e-3) * NOISE
    law = scaling.usl_throughput
    bounds = {n: law.range_of(n) for n in law.quantities[1:]}
    formula = fit(law, {"N": N, "X": X})
    for model in (usl, usl_by_math):
        function = fit(model, {"N": N, "X": X}, bounds=bounds)
        assert function.estimate == pytest.approx(formula.estimate, rel=1e-7)
        assert function.interval("sigma") == pytest.approx(formula.interval("sigma"), rel=1e-6)
        assert function.peak() == pytest.approx(formula.peak(), rel=1e-6)
        assert laws.aicc(function) == pytest.approx(laws.aicc(formula), rel=1e-9)
        assert choose({"a line": fit(scaling.LAWS["linear"], {"N": N, "X": X}), "usl": function})[0]
        with pytest.raises(ValueError, match="no formula of it is known"):
            function.interval("N_opt")


@pytest.mark.slow
def test_peak_and_ceiling_are_true_or_refused():
    """The limits of Hill and Michaelis-Menten; Ricker's peak at 1/b; a full station."""
    for name in ("hill", "michaelis_menten"):
        found = fitted(name)
        assert found.peak() is None
        assert found.X_max == pytest.approx(found.estimate["top"], rel=1e-9)
        assert f"levels off at {show(found.X_max)}" in answer(found)
    found = fitted("ricker")
    a, b = found.estimate.values()
    assert found.peak() == pytest.approx((1 / b, a / b / math.e), rel=1e-7)
    found = fitted("mva")
    assert found.peak() is None
    assert found.X_max == pytest.approx(1 / max(found.estimate.values()), rel=1e-9)
    for X in (0.5 * found.X.max(), 0.9 * found.X.max()):
        load = found.load_for(X)[0]
        assert found.at(load * (1 + 1e-9)) >= X > found.at(load - 1)
    found = fit(lambda s, top: top * np.log1p(s), {"s": N, "X": N})
    assert found.peak() is None and found.X_max == math.inf  # as of any logarithm
    found = fit(lambda s, top: top * math.log1p(s), {"s": N, "X": N})  # which takes numbers only
    assert found.peak() is None and math.isnan(found.X_max)
    assert answer(found).endswith("whether the fitted law has a ceiling is not known.")


def test_a_load_below_one_may_be_the_peak():
    found = fit(ricker, {"stock": N / 100, "X": ricker(N / 100, 5.0, 5.0)}, bounds={"b": ANY})
    assert found.peak() == pytest.approx((0.2, 1 / math.e), rel=1e-7)


def test_bounds_are_those_of_the_call():
    X = hill(N, 100.0, 10.0, 1.5)
    found = fit(hill, {"dose": N, "X": X}, bounds={"h": (0, 1.2)})
    assert found.at_bound == {"h": 1.2} and remarks(found)[0] == "h is on its upper bound 1.2"
    assert found._repr_html_().count("<img") == 1
    assert fit(hill, {"dose": N, "X": X}, bounds={"h": (0, 1.2)}).law is found.law
    superlinear = 10 * N / (1 - 0.005 * (N - 1))
    data, law = {"N": N, "X": superlinear}, scaling.amdahl_throughput
    assert fit(law, data).at_bound == {"sigma": 0.0}
    wider = fit(law, data, bounds={"sigma": (-0.01, 1)})
    assert wider.estimate["sigma"] == pytest.approx(-0.005, rel=1e-9)


class Saturating:
    """A model with a state, an object that can be called."""

    def __init__(self, power):
        self.power = power

    def __eq__(self, other):
        return False  # so that it has no hash

    def __call__(self, s, top, half):
        return top * s**self.power / (half**self.power + s**self.power)


def keyword(s, *, top, half, h=1.0):
    return hill(s, top, half, h)


def careful(s, top, half):
    if not (np.all(half > 0) and np.all(top > 0)):
        raise ValueError("what makes no sense")
    return top * s / (half + s)


def one_number(s, top, half):
    return float(top) * math.fsum([s]) / (half + s)


@pytest.mark.parametrize(
    "model",
    [
        Saturating(1.0),
        keyword,
        partial(hill, h=1.0),
        partial(keyword, h=1.0),
        careful,
        one_number,
        lambda s, top, half: np.vectorize(michaelis_menten)(s, top, half),
        lambda s, top, half, log=False: michaelis_menten(s, top, half),
    ],
)
@pytest.mark.parametrize("bounds", [{}, {"top": ANY, "half": ANY}])
def test_all_kinds_of_functions(model, bounds):
    load = "dose" if getattr(model, "func", None) is hill else "s"
    X = measured("michaelis_menten")
    found = fit(model, {load: N, "X": X}, bounds=bounds)
    theirs, _ = by_scipy("michaelis_menten", X, [100.0, 10.0])
    assert found.estimate == pytest.approx(dict(zip(("top", "half"), theirs, strict=True)), 1e-6)


def test_a_default_is_kept_unless_told_otherwise():
    X = hill(N, 100.0, 10.0, 1.5)
    data = {"s": N, "X": X}
    assert set(fit(keyword, data).estimate) == {"top", "half"}
    assert fit(keyword, data, h=1.5).estimate == pytest.approx({"top": 100.0, "half": 10.0})
    assert fit(keyword, data, bounds={"h": (0, 9)}).estimate["h"] == pytest.approx(1.5)
    assert fit(keyword, data | {"h": np.full(len(N), 1.5)}).rss == pytest.approx(0, abs=1e-12)


def all_arguments(*args):
    return 1.0


def three(s, top):
    return np.ones(3)


def none(s, top):
    return None


def never(s, top):
    raise ValueError("never")


def mistaken(s, top):
    return top * undefined  # noqa: F821


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        (all_arguments, {}, r"all_arguments has \*args, expected arguments with names alone"),
        (np.exp, {}, "exp has x, expected arguments with names alone"),
        (lambda **names: 1.0, {}, r"<lambda> has \*\*names, expected"),
        (lambda: 1.0, {}, "<lambda> has no argument, expected a load and more"),
        (3.0, {}, "model is 3.0, expected a Formula or a function of named arguments"),
        (max, {}, "expected a Formula or a function of named arguments"),
        (three, {}, "three gives 3 numbers for one load, expected one"),
        (none, {}, "the result of none is None, expected a number"),
        (never, {}, "no allowed values of top give finite X"),
        (michaelis_menten, {"bounds": {"top": 3}}, "bounds of top are 3, expected"),
        (michaelis_menten, {"bounds": {"top": (2, 1)}}, r"bounds of top are \(2, 1\), expected"),
        (michaelis_menten, {"bounds": {"bottom": ANY}}, "bottom is no quantity of the model"),
        (lambda t, top: top * t, {}, "s, X may be the result|no column t"),
    ],
)
def test_what_is_no_model_is_refused_in_words(model, options, message):
    with pytest.raises(ValueError, match=message):
        fit(model, {"s": N, "X": N}, **options)


def test_a_mistake_in_a_function_is_shown_as_it_is():
    with pytest.raises(NameError, match="undefined"):
        fit(mistaken, {"s": N, "X": N})


@pytest.mark.parametrize("at", [0.0, 0.3, 1 - 1e-6, 1.0])
def test_differences_are_the_derivatives_also_at_a_bound(at):
    """Of exp(x y) + y^3, in the range 0 to 1, which no step leaves."""

    def body(x, y):
        assert np.all(x >= 0) and np.all(x <= 1)
        return np.exp(x * y) + y**3

    x, y = np.array([at]), np.array([[2.0], [3.0]])
    jet = _differences.jet(body, ("x", "y"), [(0, 1), (0, np.inf)])
    e = np.exp(x * y)
    value, *slopes = jet(x=x, y=y)
    assert value == pytest.approx(e + y**3, rel=1e-15)
    for found, exact in zip(slopes, [y * e, x * e + 3 * y**2], strict=True):
        assert found == pytest.approx(exact, rel=1e-8 if at else 1e-7)

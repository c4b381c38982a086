"""Scaling laws: published coefficients and peaks, limits, and identities between laws."""

import numpy as np
import pytest
import sympy as sp

from nummodel.formula import formula
from nummodel.models import scaling
from nummodel.models.scaling import LAWS, ceiling, optimum, speedup

N, s, k = (scaling.usl_throughput.symbols[n] for n in ("N", "sigma", "kappa"))


def test_each_law_contains_the_simpler_one():
    usl, amdahl = LAWS["usl"].expr, LAWS["amdahl"].expr
    assert sp.simplify(usl.subs(k, 0) - amdahl) == 0
    assert sp.simplify(amdahl.subs(s, 0) - LAWS["linear"].expr) == 0
    assert sp.simplify(LAWS["gustafson"].expr.subs(s, 0) - LAWS["linear"].expr) == 0


def test_gustafson_is_amdahl_with_the_share_of_the_parallel_run():
    share = s * N / (1 + s * (N - 1))
    assert sp.simplify(
        speedup(LAWS["gustafson"]).expr.subs(s, share) - speedup(LAWS["amdahl"]).expr
    ) == 0  # fmt: skip


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_one_processor_is_one_processor(law):
    values = {"X1": 7.0, "sigma": 0.3, "kappa": 0.01}
    assert law(N=1, **{n: values[n] for n in law.quantities[1:]}) == pytest.approx(7.0)
    assert speedup(law).expr.subs(N, 1) == 1


def test_published_peaks():
    """Schwartz (2015), Cisco server: 35 threads, 12,341/s; Gunther (2007), SDM91: 96.52, 1884."""
    cisco = {"sigma": 0.02671591, "kappa": 7.690945e-4}
    assert int(optimum(LAWS["usl"])(**cisco)) == 35
    assert ceiling(LAWS["usl"])(X1=995.6486, **cisco) == pytest.approx(12341, abs=2)
    sdm91 = {"sigma": 0.02773, "kappa": 1.044e-4}
    assert optimum(LAWS["usl"])(**sdm91) == pytest.approx(96.52, abs=0.05)
    assert ceiling(LAWS["usl"])(X1=90.0, **sdm91) == pytest.approx(1884, abs=1)


def test_the_ceiling_is_the_height_of_the_peak_and_nothing_is_higher():
    shape = {"sigma": 0.05, "kappa": 0.001}
    top = ceiling(LAWS["usl"])(X1=2.0, **shape)
    assert LAWS["usl"](N=optimum(LAWS["usl"])(**shape), X1=2.0, **shape) == pytest.approx(top)
    assert (LAWS["usl"](N=np.linspace(1, 500, 9999), X1=2.0, **shape) <= top).all()


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_peaks_and_ceilings_are_those_of_algebra(law):
    """The peak is where the only slope of zero is, and the ceiling the height there, or the limit;
    a law without a peak only rises.
    """
    X1, n = law.symbols["X1"], law.symbols["N"]
    share = {law.symbols[q]: sp.Rational(1, 5) for q in ("sigma", "kappa") if q in law.symbols}
    slope = sp.numer(sp.together(law.expr.diff(n)))
    roots = sp.solve(slope, n)
    if peak := optimum(law):
        (root,) = [r for r in roots if r.subs(share) > 0]
        assert sp.simplify(root**2 - peak.expr**2) == 0
        height = law.expr.subs(n, root)
        top = ceiling(law).expr.args[0][0]  # where that is not below N = 1
        assert sp.simplify(1 / height - 1 / top) == 0
        assert law.expr.diff(n, 2).subs({n: root}).subs(share | {X1: 1}) < 0
        below = {s: 0.6, k: 0.5, n: 1}
        assert law.expr.diff(n).subs(below | {X1: 1}) < 0  # so that the first load is highest
        assert ceiling(law)(X1=7.0, sigma=0.6, kappa=0.5) == 7.0
    else:
        assert not roots and slope.subs(share | {X1: 1}) > 0
        limit = sp.limit(law.expr.subs(share), n, sp.oo)
        found = ceiling(law)
        assert limit == (found.expr.subs(share) if found else sp.oo)


def test_the_usl_grows_again_by_no_population():
    """Its peak is unique: the slope changes sign once."""
    slope = np.diff(LAWS["usl"](N=np.geomspace(1, 1e6, 4000), X1=1, sigma=0.02, kappa=1e-5))
    assert (np.diff(np.sign(slope)) != 0).sum() == 1


@formula("X")
def in_roots(N, X1, sigma, kappa):
    return X1 * N / (1 + (N - 1) * (sigma + kappa * sp.sqrt(N)))


@pytest.mark.parametrize("derive", [speedup, optimum, ceiling])
@pytest.mark.parametrize("wrong", ["usl", None, [1], {}, 1.0, in_roots], ids=range(6))
def test_only_laws_have_a_speedup_a_peak_and_a_ceiling(derive, wrong):
    with pytest.raises(ValueError, match=r"^law is .*, expected one of LAWS: linear, amdahl, "):
        derive(wrong)


def test_a_law_is_given_numbers_that_go_together():
    law = LAWS["linear"]
    for wrong, named in (({"N": "5"}, "N is '5'"), ({"X1": None}, "X1 is None")):
        with pytest.raises(ValueError, match=named):
            law(**{"N": 1.0, "X1": 1.0} | wrong)
    with pytest.raises(ValueError, match=r"N \(2,\), X1 \(3,\)"):
        law(N=[1.0, 2.0], X1=[1.0, 2.0, 3.0])


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_an_argument_outside_its_range_is_refused(law):
    sound = {"N": 16.0, "X1": 1.0, "sigma": 0.05, "kappa": 0.005}
    given = {n: sound[n] for n in law.quantities}
    for name, value in (("N", -1), ("X1", -1), ("sigma", 2), ("sigma", -0.1), ("kappa", -1)):
        if name in given:
            for wrong in (value, [sound[name], value]):
                with pytest.raises(ValueError, match=f"^{name} is {value}, expected a number of"):
                    law(**given | {name: wrong})
            unchecked = law.unchecked(**given | {name: value})
            assert unchecked == pytest.approx(law.body(**given | {name: value}))

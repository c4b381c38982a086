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


def test_laws_that_never_fall_have_no_optimum():
    assert [name for name, law in LAWS.items() if optimum(law)] == ["usl"]
    assert ceiling(LAWS["linear"])() == ceiling(LAWS["gustafson"])() == np.inf
    assert ceiling(LAWS["amdahl"])(X1=1.0, sigma=0.05) == pytest.approx(20)


def test_the_usl_grows_again_by_no_population():
    """Its peak is unique: the slope changes sign once."""
    slope = np.diff(LAWS["usl"](N=np.geomspace(1, 1e6, 4000), X1=1, sigma=0.02, kappa=1e-5))
    assert (np.diff(np.sign(slope)) != 0).sum() == 1


@formula("X")
def in_powers(N, X1, sigma, kappa):
    return X1 * N / (1 + sigma * (N - 1) + kappa * (N - 1) ** 1.5)


@formula("X")
def in_roots(N, X1, sigma, kappa):
    return X1 * N / (1 + (N - 1) * (sigma + kappa * sp.sqrt(N)))


@formula("X")
def in_logarithms(N, X1, sigma):
    return X1 * N / (1 + sigma * sp.log(N))


@formula("X")
def in_cases(N, X1, sigma):
    return sp.Piecewise((X1 * N, N < 1 / sigma), (X1 / sigma, True))


@formula("X")
def in_exponentials(N, X1, sigma, kappa):
    return X1 * (sp.exp(-kappa * N) - sp.exp(-sigma * N))


@pytest.mark.parametrize(
    "law",
    [in_powers, in_roots, in_logarithms, in_cases, in_exponentials],
    ids=lambda law: law.__name__,
)
def test_algebra_is_not_asked_for_a_peak_that_it_might_not_find(law, monkeypatch):
    """With such laws SymPy may be busy without an end, in `solve` and in `limit`."""
    for name in ("solve", "limit"):
        monkeypatch.setattr(sp, name, lambda *_: pytest.fail("algebra was asked"))
    for derive in (optimum, ceiling):
        with pytest.raises(ValueError, match=f"algebra finds no single peak of {law.__name__}"):
            derive(law)


@formula("X")
def to_a_power(N, X1, sigma):
    return X1 * N ** (1 - sigma)


def test_a_limit_that_algebra_does_not_find_is_refused_in_words():
    assert optimum(to_a_power) is None
    with pytest.raises(ValueError, match="algebra finds no ceiling of to_a_power"):
        ceiling(to_a_power)


@formula("X")
def dying_out(N, X1, kappa):
    return X1 * N * sp.exp(-kappa * N)


@formula("X")
def root_over_line(N, X1, sigma):
    return X1 * N**0.5 / (1 + sigma * N)


@pytest.mark.parametrize(
    "law, shape, peak, height",
    [
        (dying_out, {"kappa": 0.02}, 1 / 0.02, 3.0 / (0.02 * np.e)),
        (root_over_line, {"sigma": 0.1}, 1 / 0.1, 3.0 / (2 * np.sqrt(0.1))),
    ],
)
def test_a_peak_beside_factors_that_are_never_zero_is_found(law, shape, peak, height):
    """Peak and height by hand."""
    assert optimum(law)(**shape) == pytest.approx(peak)
    assert ceiling(law)(X1=3.0, **shape) == pytest.approx(height)


@formula("X")
def saturating(N, X1, sigma):
    return X1 * (1 - sp.exp(-sigma * N))


@formula("X")
def hyperbola(N, X1, sigma):
    return X1 * N / (1 + (sigma * N) ** 2) ** 0.5


@pytest.mark.parametrize("law, height", [(saturating, 3.0), (hyperbola, 3.0 / 0.2)])
def test_a_law_that_rises_to_its_ceiling_has_it_by_algebra(law, height):
    assert optimum(law) is None
    assert ceiling(law).at({"X1": 3.0, "sigma": 0.2}) == pytest.approx(height)


@pytest.mark.parametrize("derive", [speedup, optimum, ceiling])
@pytest.mark.parametrize("wrong", ["usl", None, [1], {}, 1.0])
def test_only_laws_have_a_speedup_a_peak_and_a_ceiling(derive, wrong):
    with pytest.raises(ValueError, match=r"^law is .*, expected a Formula"):
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

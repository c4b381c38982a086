"""Every formula: its NumPy function and gradient against high-precision arithmetic."""

import pickle
from copy import copy

import mpmath
import numpy as np
import pytest
import sympy as sp

from nummodel import nomenclature
from nummodel.formula import Formula, formula
from nummodel.models import numa, operational, queueing, scaling, storage

ROOMS = (scaling, operational, queueing, numa, storage)
FORMULAS = {
    f"{room.__name__}.{name}": value
    for room in ROOMS
    for name, value in vars(room).items()
    if isinstance(value, Formula)
}
FORMULAS |= {f"speedup({name})": scaling.speedup(law) for name, law in scaling.LAWS.items()}


def somewhere(law, seed):
    """Values inside the allowed ranges of all quantities, which do not contradict each other."""
    random = np.random.default_rng(seed)
    ends = {n: nomenclature.quantity(n)[3:] for n in law.quantities}
    while True:
        at = {
            n: low + random.uniform(0.05, 0.9) * (high - low if np.isfinite(high) else 9)
            for n, (low, high) in ends.items()
        }
        if "lamda" in at:
            at["lamda"] /= 9 * at["S"]  # stations are finite below a utilisation of 1
        if "D_max" in at:
            at["D"] += at["D_max"]  # which is that of all stations
            at["D_max"] += at.get("D_mean", 0.0)
            at["D"] += at.get("D_mean", 0.0)
        try:
            law(**at)
        except ArithmeticError:  # as a utilisation above 1
            continue
        return at


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("seed", range(3))
def test_values_and_slopes_against_50_digits(name, seed):
    law = FORMULAS[name]
    at = somewhere(law, seed)
    with mpmath.workdps(50):
        exact = {n: mpmath.mpf(v) for n, v in at.items()}

        def precise(**values):
            return mpmath.mpmathify(
                law.expr.evalf(50, subs={law.symbols[n]: v for n, v in values.items()})
            )

        assert law(**at) == pytest.approx(float(precise(**exact)), rel=1e-12)
        slopes = law.gradient(law.quantities)(**at)
        for quantity, slope in zip(law.quantities, slopes, strict=True):
            step = mpmath.mpf(10) ** -15
            up = precise(**exact | {quantity: exact[quantity] + step})
            down = precise(**exact | {quantity: exact[quantity] - step})
            assert slope == pytest.approx(float((up - down) / (2 * step)), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("name", FORMULAS)
def test_arrays_of_any_broadcastable_shape(name):
    law = FORMULAS[name]
    at = somewhere(law, 0)
    first = law.quantities[0]
    column = at | {first: at[first] * np.ones((3, 1))}
    if len(law.quantities) > 1:
        column[law.quantities[1]] = at[law.quantities[1]] * np.ones(4)
        assert law(**column).shape == (3, 4)
    assert law.gradient(law.quantities)(**column).shape[-1] == len(law.quantities)
    assert np.unique(law(**column)) == pytest.approx([law(**at)])


@pytest.mark.parametrize("name", FORMULAS)
def test_every_formula_is_documented_and_printable(name):
    law = FORMULAS[name]
    assert law.__doc__.strip()
    assert f"$$\n{law.latex}\n$$" in law._repr_markdown_() and "=" in law.latex
    for name in (law.result, *law.quantities):
        assert nomenclature.quantity(name).meaning in law._repr_markdown_()


def test_an_unknown_quantity_does_not_import():
    with pytest.raises(NameError, match=r"unknown quantity 'speed'.*nomenclature"):

        @formula("X")
        def throughput(N, speed):
            return N * speed


def test_a_wrong_argument_is_refused():
    with pytest.raises(TypeError):
        scaling.linear_throughput(N=1, X2=1)


def test_solving_twice_gives_the_law_back():
    demand = operational.demand
    again = demand.solved_for("rho", "utilisation")
    assert (again.expr - operational.utilisation.expr).simplify() == 0


@formula("X")
def shifted(N, X1, f_remote, r):
    """A difference of two quantities with the same range."""
    return X1 * N + N * N * (f_remote - r)


@formula("X")
def offset(N, X1, sigma, kappa):
    """The same, at any load."""
    return X1 * N + (sigma - kappa)


PLAIN = [law for law in FORMULAS.values() if law._plain] + [shifted, offset]


@pytest.mark.parametrize("law", PLAIN, ids=lambda law: law.__name__)
def test_scales_by_arithmetic_are_those_of_algebra(law):
    for name in law.quantities:
        scaled = law.expr.subs(law.symbols[name], 2 * law.symbols[name])
        assert law.is_scale(name) is (sp.simplify(scaled - 2 * law.expr) == 0)


def by_root(N, X1):
    return X1 * N ** sp.Rational(1, 2)


def by_question(N, X1, sigma):
    return X1 * N if sigma == 0 else X1 * N * (1 - sigma)


def by_truth(N, X1, sigma):
    return X1 * N * (1 - sigma) if sigma else X1 * N


def by_size(N, X1):
    """A complex step would find no slope."""
    return X1 * abs(N) / 2


@pytest.mark.parametrize(
    ("body", "slope"), [(by_root, 0.75), (by_question, 1.5), (by_truth, 1.5), (by_size, 1.5)]
)
def test_bodies_that_are_not_arithmetic_go_through_algebra(body, slope):
    law = formula("X")(body)
    assert not law._plain
    at = {n: {"N": 4.0, "X1": 3.0, "sigma": 0.5}[n] for n in law.quantities}
    assert law(**at) == 6.0
    assert law.gradient(["N"])(**at).tolist() == pytest.approx([slope])


def test_a_constant_slope_has_the_shape_of_the_load():
    """SymPy #9725: lambdify gives a scalar for an expression without the array variable."""
    slopes = scaling.linear_throughput.gradient(["X1", "N"])(N=np.arange(1.0, 4), X1=2.0)
    assert slopes.tolist() == [[1, 2], [2, 2], [3, 2]]


@pytest.mark.parametrize("name", nomenclature.QUANTITIES)
def test_quantities_are_complete(name):
    latex, unit, meaning, low, high = nomenclature.quantity(name)
    assert latex and unit and meaning and low < high
    assert latex in nomenclature.label(name)


def test_a_law_is_sent_to_processes_by_its_name():
    for law in scaling.LAWS.values():
        assert pickle.loads(pickle.dumps(law)) is law


def test_a_copy_is_another_law_also_where_it_is_sent_by_name():
    law = scaling.amdahl_throughput
    other = copy(law)
    other._valid = None
    assert other is not law and law._valid is not None
    assert pickle.loads(pickle.dumps(law)) is law

"""Any Python function as a law: its arguments are quantities, the first of them the load."""

from collections.abc import Callable, Iterable, Mapping
from copy import copy
from functools import cache, lru_cache
from inspect import Parameter, signature
from math import inf
from typing import Any

import numpy as np

from nummodel.formula import Formula
from nummodel.nomenclature import Quantity

#: Places at which a function is asked whether a quantity is its scale, and the highest load there.
PLACES, LOADS = 40, 2000.0
Bounds = Mapping[str, tuple[float, float]]


class Function(Formula):
    """A law that a Python function computes. Algebra keeps away from it: an expression of a loop
    may be too long.
    """

    _symbolic = False

    @cache  # noqa: B019
    def is_scale(self, name: str) -> bool:
        """As `Formula.is_scale`, by values at many places: a function may have cases, and where it
        is 0, it proves nothing.
        """
        random, found = np.random.default_rng(0), []
        for _ in range(PLACES):
            at = {n: self._anywhere(n, random) for n in self.quantities}
            with np.errstate(all="ignore"):
                found.append([float(self._called(**at | {name: k * at[name]})) for k in (1, 2)])
        once, twice = np.array(found).T
        known = np.isfinite(once) & np.isfinite(twice) & ((once != 0) | (twice != 0))
        same = np.allclose(twice[known], 2 * once[known], rtol=1e-12, atol=0)
        return bool(same and known.sum() > PLACES / 4)

    def _anywhere(self, name: str, random: np.random.Generator) -> float:
        """A value of a quantity; of the load, as of what has no bounds, over many decades."""
        low, high = self.range_of(name)
        if name == self.quantities[0]:
            low, high = 1.0, LOADS
        elif np.isfinite([low, high]).all():
            return float(random.uniform(low, high))
        low = max(low, 0.0) if low > -inf else 0.0
        return low + float(np.exp(random.uniform(*np.log([1e-3, min(high, 1e4)]))))

    @property
    def slow(self) -> bool:
        """Whether it takes one number at a time, and no arrays."""
        return isinstance(self._called, np.vectorize)

    @property
    def most(self) -> int:
        """Points of a mesh on which the function is tried, at most."""
        return 2_000 if self.slow else 20_000


def law_of(
    model: Formula | Callable,
    columns: Iterable[str],
    known: Iterable[str] = (),
    bounds: Bounds | None = None,
) -> Formula:
    """The model as a law. The result of a function is X, or the only column that is no argument.

    An argument of a function may have any value, if `bounds` has no (lowest, highest) for it; an
    argument with a default keeps this value, unless it is a column, `known` or has bounds. A
    formula keeps the ranges of its quantities, but for the `bounds` given here. Raises ValueError
    for what is no function of named arguments, if the result is not clear, and for a name that the
    model does not have.
    """
    ranges = dict(bounds or {})
    if isinstance(model, Formula):
        if not ranges:
            return model
        names, result, before = model.quantities, model.result, model.meaning
    else:
        names = _arguments(model, {*columns, *known, *ranges})
        results = [c for c in columns if c not in names]
        results = ["X"] if "X" in results else results
        if len(results) != 1:
            found = ", ".join(results) or "no column"
            raise ValueError(f"fit: {found} may be the result of the model, expected one, or X")
        (result,) = results

        def before(name: str) -> Quantity:
            symbol = name.replace("_", r"\_")
            return Quantity(rf"\mathrm{{{symbol}}}", "-", "", -inf, inf)

    for name in ranges:
        if name not in (result, *names):
            expected = f"expected one of: {', '.join(names)}"
            raise ValueError(f"fit: {name} is no quantity of the model, {expected}")
    meanings = []
    for name in (result, *names):
        latex, unit, meaning, *ends = before(name)
        low, high = _ends(name, ranges.get(name, ends))
        meanings.append((name, Quantity(latex, unit, meaning, low, high)))
    if isinstance(model, Formula):
        return _within(model, tuple(meanings))
    # A bound method has a hash, whether its object has one or not.
    body = model if hasattr(model, "__name__") else model.__call__  # type: ignore[operator]
    return _made(body, result, names, tuple(meanings), _name(model))


def _ends(name: str, ends: Any) -> tuple[float, float]:
    """The bounds of a quantity. Raises ValueError for what is no range."""
    try:
        low, high = map(float, ends)
    except (TypeError, ValueError):
        low = high = 0.0
    if not low < high:
        raise ValueError(f"fit: bounds of {name} are {ends!r}, expected (lowest, highest)")
    return low, high


@lru_cache(256)  # so that a law is not derived again for each fit
def _within(law: Formula, meanings: tuple) -> Formula:
    other = copy(law)
    other.own = dict(meanings)
    other._valid = None  # it knows the ranges that the law had
    for derived in ("symbols", "expr", "_called"):  # from the ranges that it had
        other.__dict__.pop(derived, None)
    return other


@lru_cache(256)
def _made(body: Callable, result: str, names: tuple, meanings: tuple, name: str) -> Formula:
    return Function.made(result, body, names, name, body.__doc__ or "", dict(meanings))


def _name(model: Any) -> str:
    """What a function, an object that can be called, or a `functools.partial` is called."""
    return getattr(getattr(model, "func", model), "__name__", type(model).__name__)


def _arguments(model: Any, wanted: set[str]) -> tuple[str, ...]:
    """The arguments of a function, but for those with a default that are not `wanted`."""
    try:
        arguments = signature(model).parameters.values()
    except (TypeError, ValueError):
        expected = "expected a Formula or a function of named arguments"
        raise ValueError(f"fit: model is {model!r}, {expected}") from None
    for a in arguments:
        if a.kind not in (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY):
            raise ValueError(f"fit: {_name(model)} has {a}, expected arguments with names alone")
    names = tuple(a.name for a in arguments if a.default is Parameter.empty or a.name in wanted)
    if not names:
        raise ValueError(f"fit: {_name(model)} has no argument, expected a load and more")
    return names

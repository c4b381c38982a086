"""What a fit is told, checked before anything is searched: columns, weights, what is known."""

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from nummodel.errors import InputError
from nummodel.formula import Formula
from nummodel.nomenclature import quantity, range_of

#: Ways in which the error of a measurement may depend on its size; an array is another.
KINDS = ("absolute", "relative", "log")


@dataclass(frozen=True, eq=False, repr=False)
class Measured:
    """A law, its load and result, how often each point counts, the kind of weights, the half-width
    of rounding of each result, what is left to estimate, and what is known: numbers, and columns.
    """

    law: Formula
    N: np.ndarray
    X: np.ndarray
    times: np.ndarray
    weights: str
    half: np.ndarray
    free: tuple[str, ...]
    known: dict[str, Any]


def measured(law: Formula, data, weights, resolution, times, known) -> Measured:
    """The arguments of `fit.fit` as figures that fit together. Raises as that does."""
    load = law.quantities[0]
    for q in (load, law.result):
        if q not in data:
            found, names = ", ".join(data), f"{load} and {law.result}"
            raise ValueError(f"fit: no column {q} among {found}, expected {names}: rename them")
    N, X = (_column(data, q) for q in (load, law.result))
    if N.shape != X.shape:
        raise ValueError(f"fit: {N.size} {load} and {X.size} {law.result}, expected as many")
    if not (N > 0).all():
        raise ValueError(f"fit: {load} must be positive")
    columns = {n: _column(data, n) for n in law.quantities[1:] if n in data}
    for n in known.keys() & columns.keys():
        raise ValueError(f"fit: {n} is a column and known, expected one of the two")
    known = columns | known
    for n, value in known.items():
        _check(law, n, value, N.shape)
    kind = weights if isinstance(weights, str) else "given"
    if kind not in (*KINDS, "given"):
        raise ValueError(f"weights {weights!r}, expected one of {', '.join(KINDS)}, or an array")
    if kind in ("relative", "log") and not (X > 0).all():
        raise ValueError(f"fit: {kind} weights need positive {law.result}")
    if not (X > 0).any():
        raise ValueError(f"fit: no {law.result} is positive, expected throughputs")
    own = 1.0 if kind in KINDS else weights
    counts = _spread("weights", own, X) * _spread("times", times, X)
    if not all(np.isfinite(column).all() for column in (N, X, counts)) or not (counts > 0).all():
        raise ValueError("fit: N, X, weights and times must be finite, weights and times positive")
    half = _spread("resolution", resolution, X)
    if not ((half >= 0) & np.isfinite(half)).all():
        raise ValueError("fit: resolution must be finite and not negative")
    free = tuple(n for n in law.quantities[1:] if n not in known)
    if not free:
        raise ValueError(f"fit: nothing to estimate, all of {', '.join(law.quantities)} are known")
    different = len(np.unique(np.column_stack([N, *columns.values()]), axis=0))
    if different < len(free):
        raise InputError(
            f"{different} different {', '.join([load, *columns])}, "
            f"expected at least {len(free)} to estimate {', '.join(free)}"
        )
    return Measured(law, N, X, counts, kind, half, free, known)


def check_start(start: Mapping[str, Any], free: tuple[str, ...]) -> None:
    """Raises ValueError unless `start` has a number in its range for each free quantity."""
    if set(start) != set(free):
        raise ValueError(f"fit: start has {', '.join(start)}, expected {', '.join(free)}")
    for n, value in start.items():
        low, high = quantity(n)[3:]
        if not (isinstance(value, Real) and low <= float(value) <= high):
            raise ValueError(f"fit: {n} starts at {value}, expected a number{range_of(n)}")


def _column(data: Mapping[str, Any], name: str) -> np.ndarray:
    values = np.asarray(data[name], dtype=float)
    if values.ndim != 1:
        raise ValueError(f"fit: {name} is {data[name]}, expected a column of numbers")
    return values


def _spread(what: str, value: Any, X: np.ndarray) -> np.ndarray:
    """A number for each point, from one for all or as many."""
    if np.shape(value) not in ((), X.shape):
        raise ValueError(f"fit: {np.size(value)} {what} and {X.size} points, expected as many")
    return np.broadcast_to(np.asarray(value, dtype=float), X.shape)


def _check(law: Formula, name: str, value: Any, shape: tuple[int, ...]) -> None:
    """What is known of a quantity: of the law, in its range, a number or one for each point."""
    if name not in law.quantities[1:]:
        expected, said = ", ".join(law.quantities[1:]), law.__name__  # type: ignore[attr-defined]
        raise ValueError(f"fit: {said} has no {name!r}, expected one of: {expected}")
    if np.shape(value) not in ((), shape):
        load = law.quantities[0]
        raise ValueError(f"fit: {np.size(value)} {name} and {shape[0]} {load}, expected as many")
    low, high = quantity(name)[3:]
    if not (np.isfinite(value) & (low <= value) & (value <= high)).all():
        raise ValueError(f"fit: {name} is {value}, expected {low:g} to {high:g}")

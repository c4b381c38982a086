"""Slopes of a function that is no formula: by central differences.

A slope has an error of some 1e-10 of the function, for a quantity in units of its value and a
function that is computed to all digits.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from nummodel.arguments import numbers

#: The step, as a share of a value; the least such value; a step at 0.
STEP, LEAST, AT_ZERO = 2e-5, 1e-9, 1e-7


def elementwise(body: Callable, *points: Mapping[str, float]) -> Callable:
    """The function for arrays, NaN where it raises ArithmeticError or ValueError: itself, if it
    gives for arrays what it gives for numbers. Raises ValueError if its result is no number.
    """

    def own(**values: Any) -> Any:
        """Called with copies, which it may change."""
        return body(**{n: v.copy() if isinstance(v, np.ndarray) else v for n, v in values.items()})

    def number(**values: float) -> float:
        try:
            result = body(**values)
        except (ArithmeticError, ValueError):
            return np.nan
        result = numbers(f"the result of {body.__name__}", result)
        if result.size != 1:
            found = f"{body.__name__} gives {result.size} numbers for one load"
            raise ValueError(f"{found}, expected one")
        return float(result.item())

    one_by_one = np.vectorize(number, otypes=[float])

    def together(**values: Any) -> Any:
        try:
            return own(**values)
        except (ArithmeticError, ValueError):  # at some of the points
            return one_by_one(**values)

    columns = {n: np.array([[p[n]] for p in points]) for n in points[0]}
    with np.errstate(all="ignore"):
        expected = one_by_one(**columns)
        try:
            found = np.asarray(own(**columns), dtype=float)
        except Exception:  # it takes numbers only
            return one_by_one
    same = found.shape == expected.shape and np.allclose(found, expected, equal_nan=True)
    return together if same else one_by_one


def jet(body: Callable, names: tuple[str, ...], ranges: list[tuple[float, float]]) -> Callable:
    """Function of all quantities giving [value, slopes], as `Formula.jet`. No step leaves the range
    of its quantity.
    """

    def computed(**values: Any) -> list:
        shape = np.broadcast_shapes(*map(np.shape, values.values()))

        def at(**moved: np.ndarray) -> np.ndarray:
            return np.broadcast_to(np.asarray(body(**values | moved), float), shape)

        with np.errstate(all="ignore"):
            found = [at()]
            for n, (low, high) in zip(names, ranges, strict=True):
                x = np.asarray(values[n], dtype=float)
                h = np.where(x == 0, AT_ZERO, STEP * np.maximum(abs(x), LEAST))
                middle = np.clip(x, low + h, high - h)
                below, above = at(**{n: middle - h}), at(**{n: middle + h})
                # The slope of the parabola through three points, at x.
                bend = (above + below - 2 * at(**{n: middle})) / h**2 if np.any(middle != x) else 0
                found.append((above - below) / (2 * h) + bend * (x - middle))
        return found

    return computed

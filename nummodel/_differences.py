"""Derivatives of a function that is no formula: by central differences.

A first derivative has an error of some 1e-10 of the function, a second one of 1e-8, for a quantity
in units of its value and a function that is computed to all digits. The minimum that a search finds
depends on the first derivatives only; the second ones make the search short.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from nummodel.arguments import numbers

#: Steps for first and second derivatives, as shares of a value; the least such value; a step at 0.
FIRST, SECOND, LEAST, AT_ZERO = 2e-5, 3e-4, 1e-9, 1e-7


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


def jet(
    body: Callable,
    names: tuple[str, ...],
    pairs: Iterable[tuple[int, int]],
    ranges: list[tuple[float, float]],
) -> Callable:
    """Function of all quantities giving [value, slopes, second derivatives], as `Formula.jet`. No
    step leaves the range of its quantity.
    """

    def computed(**values: Any) -> list:
        shape = np.broadcast_shapes(*map(np.shape, values.values()))
        x = {
            n: np.reshape(v, (1,) * (len(shape) - np.ndim(v)) + np.shape(v))
            for n, v in values.items()
        }

        def at(points: list[dict]) -> np.ndarray:
            """The values at points that differ from x in some quantities, in one call."""
            moved = {n: np.stack([point.get(n, x[n]) for point in points]) for n in names}
            return np.broadcast_to(np.asarray(body(**x | moved), float), (len(points), *shape))

        def steps(share: float) -> tuple[dict, dict]:
            h = {
                n: np.where(x[n] == 0, AT_ZERO, share * np.maximum(abs(x[n]), LEAST)) for n in names
            }
            ends = zip(names, ranges, strict=True)
            return h, {n: np.clip(x[n], low + h[n], high - h[n]) for n, (low, high) in ends}

        with np.errstate(all="ignore"):
            found = [np.broadcast_to(np.asarray(body(**x), float), shape)]
            if not names:
                return found
            h, c = steps(FIRST)
            around = at([{n: c[n] + side * h[n]} for n in names for side in (-1, 0, 1)])
            for n, (low, middle, high) in zip(names, around.reshape(-1, 3, *shape), strict=True):
                # The slope of the parabola through three points, at x.
                bend = (high + low - 2 * middle) / h[n] ** 2
                found.append(
                    (high - low) / (2 * h[n]) + np.where(x[n] == c[n], 0, bend * (x[n] - c[n]))
                )
            h, c = steps(SECOND)
            sides = {n: {side: {n: c[n] + side * h[n]} for side in (-1, 1)} for n in names}
            points = [c, *(c | sides[n][side] for n in names for side in (-1, 1))]
            crossed = [(i, j) for i, j in pairs if i != j]
            for i, j in crossed:
                points += [c | sides[names[i]][side] | sides[names[j]][side] for side in (-1, 1)]
            middle, *others = at(points) if pairs else [0.0]
            ends = [low + high for low, high in zip(others[::2], others[1::2], strict=True)]
            both = dict(zip(crossed, ends[len(names) :], strict=True))
            for i, j in pairs:
                far = both[i, j] - ends[j] if i != j else 0.0
                bend = (far - ends[i] + 2 * middle) / (2 * h[names[i]] * h[names[j]])
                found.append(bend if i != j else -2 * bend)
        return found

    return computed

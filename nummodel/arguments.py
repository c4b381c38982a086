"""Arguments of the models: checked against the ranges of their quantities, and made arrays.

All models check here, so that all refuse the same values in the same words. A number above
`LARGEST` is refused because products of such numbers overflow, a count above `COUNTABLE` because
the work would not end. A result that is no number, or outside its range, is refused here as well.
"""

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import signature
from math import inf
from typing import Any

import numpy as np

from nummodel.nomenclature import QUANTITIES, quantity

WHOLE = ("N", "K", "c", "n", "m", "nodes", "batch")
#: The highest share that a utilisation can be, with its errors.
FULLEST = 1.2
#: Results of other models, which may be as large as they come out, and infinite.
RESULTS = ("W_mmc",)
LARGEST, COUNTABLE = 1e100, 10**9
#: By how much rounding may bring a result below its lowest value or above its highest.
ROUNDING = 1e-9
#: The weights of a fit: how the error of a measurement depends on its size, or "auto", for which a
#: fit finds it; an array is another.
WEIGHTS = ("absolute", "relative", "log", "auto")
#: What an argument of 0, 1 or 2 dimensions is.
KINDS = ("{0}number", "list of {0}numbers", "table of {0}numbers")


def numbers(name: str, value: Any) -> np.ndarray:
    """An argument as an array of floats. Raises ValueError, naming it, for what is no number."""
    try:
        array = np.asarray(value)
        if array.dtype.kind in "biuf":
            return np.asarray(array, dtype=float) + 0.0  # which makes -0 a 0
        # Long whole numbers and fractions; but NumPy would make nan of None.
        if array.dtype.kind == "O" and all(v is not None for v in array.flat):
            return np.asarray(array, dtype=float)
    except (TypeError, ValueError, OverflowError):
        pass
    raise ValueError(f"{name} is {value!r}, expected a number or several")


def within(
    name: str, value: Any, low: float, high: float = LARGEST, *, whole=False, ndim=(), empty=False
) -> np.ndarray:
    """An argument as an array of floats, none of them below `low` or above `high`. The number of
    its dimensions is one of `ndim`, or any if `ndim` is empty. Raises a ValueError that names the
    argument and says what was expected.
    """
    try:
        array = numbers(name, value)
        if whole and np.asarray(value).dtype == bool:
            raise ValueError
    except ValueError:
        array = np.array(np.nan)
    bad = ~((array >= low) & (array <= high))
    bad |= whole & (array != np.rint(array))
    shaped = array.ndim in (ndim or (array.ndim,)) and array.size >= (not empty)
    if shaped and not bad.any():
        return array
    kinds = " or a ".join(KINDS[n] for n in ndim or (0,)).format("whole " if whole else "")
    expected = f"expected a {kinds} of at least {low:g}"
    if high < COUNTABLE or (array > high).any():
        expected += " and at most " + (f"{high:,.0f}" if whole else f"{high:g}")
    raise ValueError(f"{name} is {_found(value, array, bad)}, {expected}")


def _found(value: Any, array: np.ndarray, bad: np.ndarray) -> str:
    """The first bad number of an argument, or the argument itself."""
    if not array.size:
        return "empty"
    plain = bad.any() and (array.ndim or isinstance(value, np.number))
    return f"{array[bad][0]:g}" if plain else repr(value)


def valid(values: Mapping[str, Any], whole=WHOLE, empty=False) -> dict[str, Any]:
    """The arguments as float arrays. Raises ValueError, naming the argument, for a value outside
    the range of its quantity, and for shapes that do not go together.
    """
    arrays = {}
    for name, value in values.items():
        low, high = quantity(name)[3:]
        most = inf if name in RESULTS else COUNTABLE if name in whole else LARGEST
        high = min(high, most)
        arrays[name] = within(name, value, low, high, whole=name in whole, empty=empty)
    aligned(arrays)
    return arrays


def continuous(values: Mapping[str, Any]) -> dict[str, Any]:
    """As `valid`, for the points of a curve: counts need not be whole, and arrays may be empty."""
    return valid(values, whole=(), empty=True)


def aligned(arrays: Mapping[str, np.ndarray]) -> tuple[int, ...]:
    """The common shape of these arrays. Raises ValueError, with all shapes, if they do not fit."""
    try:
        return np.broadcast_shapes(*(array.shape for array in arrays.values()))
    except ValueError:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        raise ValueError(f"{shapes}: expected as many of each, or one") from None


def count(name: str, value: Any, least: int = 1, most: int = COUNTABLE) -> int:
    """An argument that is one whole number, such as a number of nodes or of processors."""
    return int(within(name, value, least, most, whole=True, ndim=(0,)))


def indices(name: str, value: Any, most: int, ndim: tuple = (0, 1)) -> np.ndarray:
    """An argument as whole numbers from 0 to `most` - 1: places in a sequence."""
    return within(name, value, 0, most - 1, whole=True, ndim=ndim).astype(int)


def feasible(name: str, value: float, most: float, why: str) -> None:
    """Raises ValueError, before any work is done, for a value that would make too much work."""
    if value > most:
        raise ValueError(f"{name} is {value:,.0f}, expected at most {most:,.0f}: {why}")


def ordered(given: Mapping[str, Any], small: str, large: str, why: str = "") -> None:
    """Raises ValueError where the argument called `large` is less than the one called `small`."""
    least, most = np.broadcast_arrays(given[small], given[large])
    less = most < least * (1 - ROUNDING)
    if less.any():
        raise ValueError(
            f"{large} is {most[less][0]:g}, expected at least {small}, {least[less][0]:g}{why}"
        )


def a_figure(name: str, result: Any, given: Mapping[str, Any], low: float, high: float) -> None:
    """Raises ArithmeticError for a result that is no number or out of its range: its arguments
    contradict each other, or are too far apart for floats.
    """
    values = np.asarray(result)
    good = (values >= low - ROUNDING) & (values <= high + ROUNDING)
    if not good.all():
        first = tuple(np.argwhere(~good)[0])
        at = {n: np.broadcast_to(v, values.shape)[first] for n, v in given.items()}
        listed = ", ".join(f"{n} = {v:g}" for n, v in at.items())
        wrong = f"{values[first]:g}, which cannot be"
        raise ArithmeticError(f"{name} comes out as {wrong}, from {listed}")


def checked(function: Callable) -> Callable:
    """The function, with those of its arguments that are quantities checked and made arrays."""
    parameters = signature(function)

    @wraps(function)
    def call(*args, **kwargs):
        given = parameters.bind(*args, **kwargs).arguments
        return function(**given | valid({n: v for n, v in given.items() if n in QUANTITIES}))

    return call


def station(law: Callable) -> Callable:
    """The function, with its arguments and its result checked; scalars in, float out."""
    parameters = signature(law)

    @wraps(law)
    def call(*args, **kwargs):
        values = valid(parameters.bind(*args, **kwargs).arguments)
        with np.errstate(all="ignore"):
            result = law(**values)
        a_figure(law.__name__, result, values, 0.0, inf)
        return result if np.ndim(result) else float(result)

    return call

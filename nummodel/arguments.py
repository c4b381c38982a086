"""Arguments of the models: held against the ranges of their quantities, and made arrays.

Every model asks here, so that all refuse the same in the same words. What no machine has is refused
as well: a figure above `LARGEST` makes products that floats cannot hold, a count above `COUNTABLE`
makes work without end. A result that is no figure is refused here, too.
"""

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import signature
from math import inf
from typing import Any

import numpy as np

from nummodel.nomenclature import quantity, range_of

WHOLE = ("N", "K", "c", "n", "m", "nodes", "batch")
#: Results of other models, which may be as large as they come out, and infinite.
RESULTS = ("W_mmc",)
LARGEST, COUNTABLE = 1e100, 10**9
#: How far below 0, or above a highest value, rounding may bring a result.
ROUNDING = 1e-9


def numbers(name: str, value: Any) -> np.ndarray:
    """An argument as an array of floats. Raises ValueError, naming it, for what is no number."""
    try:
        array = np.asarray(value)
        if array.dtype.kind in "biuf":
            return np.asarray(array, dtype=float) + 0.0  # which makes -0 a 0
        # Long whole numbers and fractions; not nothing, of which NumPy makes nan.
        if array.dtype.kind == "O" and all(v is not None for v in array.flat):
            return np.asarray(array, dtype=float)
    except (TypeError, ValueError, OverflowError):
        pass
    raise ValueError(f"{name} is {value!r}, expected a number or several")


def valid(values: Mapping[str, Any], whole: tuple[str, ...] = WHOLE) -> dict[str, Any]:
    """The arguments as float arrays. Raises ValueError naming one that makes no sense, and for
    shapes that do not go together.
    """
    arrays = {}
    for name, value in values.items():
        low, high = quantity(name)[3:]
        kind = "a whole number" if name in whole else "a number"
        most = inf if name in RESULTS else COUNTABLE if name in whole else LARGEST
        try:
            array = numbers(name, value)
        except ValueError:
            array = np.array(np.nan)
        if not array.size:
            raise ValueError(f"{name} is empty, expected {kind}{range_of(name)}")
        bad = ~((array >= low) & (array <= min(high, most)))
        if name in whole:
            bad |= array != np.rint(array)
        if bad.any():
            got = f"{array[bad][0]:g}" if array.ndim else repr(value)
            limit = f" and at most {most:g}" if high == inf and (array > most).any() else ""
            raise ValueError(f"{name} is {got}, expected {kind}{range_of(name)}{limit}")
        arrays[name] = array
    if len(arrays) > 1:
        aligned(arrays)
    return arrays


def continuous(values: Mapping[str, Any]) -> dict[str, Any]:
    """As `valid`, where a count need not be whole: a curve may be drawn between populations."""
    return valid(values, whole=())


def aligned(arrays: Mapping[str, np.ndarray]) -> tuple[int, ...]:
    """The shape that all have together. Raises ValueError naming the shapes that do not fit."""
    try:
        return np.broadcast_shapes(*(array.shape for array in arrays.values()))
    except ValueError:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        raise ValueError(f"{shapes}: expected as many of each, or one") from None


def count(name: str, value: Any, most: int = COUNTABLE) -> int:
    """The value, where one whole number of at least 1 is asked for: of nodes, of processors.
    Raises ValueError for anything else, and for more than `most`.
    """
    try:
        number = numbers(name, value)
    except ValueError:
        number = np.array(np.nan)
    if number.ndim or isinstance(value, bool) or not 1 <= number <= most or number % 1:
        limit = f" and at most {most:,}" if not number.ndim and number > most else ""
        raise ValueError(f"{name} is {value!r}, expected a whole number of at least 1{limit}")
    return int(number)


def indices(name: str, value: Any, most: int, what: str) -> np.ndarray:
    """An argument as whole numbers from 0 to `most` - 1, which say which of several is meant."""
    try:
        array = np.asarray(value)
        if array.dtype.kind in "iu" and ((array >= 0) & (array < most)).all():
            return array
    except ValueError:  # lists of unequal length
        pass
    raise ValueError(f"{name} is {value!r}, expected a list of {what} from 0 to {most - 1}")


def feasible(name: str, value: float, most: float, why: str) -> None:
    """Raises ValueError, before any work is done, for a value that makes too much of it."""
    if value > most:
        raise ValueError(f"{name} is {value:,.0f}, expected at most {most:,.0f}: {why}")


def positive(name: str, values: Any) -> None:
    """Raises ValueError where one of the values is 0, or its reciprocal no figure."""
    if np.min(values) < 1 / LARGEST:
        raise ValueError(f"{name} is {np.min(values):g}, expected more")


def a_figure(name: str, result: Any, given: Mapping[str, Any], low: float, high: float) -> None:
    """Raises ArithmeticError for a result out of its range, or none: arguments that contradict each
    other, or that are too far apart for floats.
    """
    found = np.asarray(result)
    good = (found >= low - ROUNDING) & (found <= high + ROUNDING)
    if not good.all():
        first = tuple(np.argwhere(~good)[0])
        at = {n: np.broadcast_to(v, found.shape)[first] for n, v in given.items()}
        said = ", ".join(f"{n} = {v:g}" for n, v in at.items())
        raise ArithmeticError(f"{name} comes out as {found[first]:g}, which cannot be, from {said}")


def station(law: Callable) -> Callable:
    """The law with its arguments and its result checked; scalars in, float out."""
    names = signature(law)

    @wraps(law)
    def checked(*args, **kwargs):
        values = valid(names.bind(*args, **kwargs).arguments)
        with np.errstate(all="ignore"):
            result = law(**values)
        a_figure(law.__name__, result, values, 0.0, inf)
        return result if np.ndim(result) else float(result)

    return checked

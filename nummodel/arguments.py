"""Arguments of stations: held against the ranges of their quantities, and made arrays."""

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import signature
from numbers import Integral
from typing import Any

import numpy as np

from nummodel.nomenclature import quantity, range_of

WHOLE = ("N", "K", "c", "n", "m", "nodes", "batch")
MAY_BE_INFINITE = ("W_mmc",)  # the wait of an unstable station


def valid(values: Mapping[str, Any], whole: tuple[str, ...] = WHOLE) -> dict[str, Any]:
    """The arguments as float arrays. Raises ValueError naming one that makes no sense."""
    arrays = {}
    for name, value in values.items():
        low, high = quantity(name)[3:]
        kind = "a whole number" if name in whole else "a number"
        try:
            array = np.asarray(value, dtype=float)
        except (TypeError, ValueError):
            array = np.array(np.nan)
        bad = ~((array >= low) & (array <= high))
        bad |= np.isinf(array) & (name not in MAY_BE_INFINITE)
        if name in whole:
            bad |= array != np.rint(array)
        if bad.any():
            got = f"{array[bad][0]:g}" if array.ndim else repr(value)
            raise ValueError(f"{name} is {got}, expected {kind}{range_of(name)}")
        arrays[name] = array
    return arrays


def continuous(values: Mapping[str, Any]) -> dict[str, Any]:
    """As `valid`, where a count need not be whole: a curve may be drawn between populations."""
    return valid(values, whole=())


def count(name: str, value: Any) -> None:
    """Raises ValueError unless the value is one whole number of at least 1, where no other will do:
    of nodes, of processors.
    """
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise ValueError(f"{name} is {value!r}, expected a whole number of at least 1")


def station(law: Callable) -> Callable:
    """The law with its arguments checked; scalars in, float out."""
    names = signature(law)

    @wraps(law)
    def checked(*args, **kwargs):
        values = valid(names.bind(*args, **kwargs).arguments)
        with np.errstate(all="ignore"):
            result = law(**values)
        return result if np.ndim(result) else float(result)

    return checked

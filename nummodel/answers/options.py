"""Options of `nummodel fit` that are written in a small language of their own."""

import operator
import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np

from nummodel.arguments import LARGEST
from nummodel.errors import InputError
from nummodel.records.columns import SIZES
from nummodel.records.readers.table import is_number

COMPARISONS = {
    "<=": operator.le, ">=": operator.ge, "==": operator.eq, "<": operator.lt, ">": operator.gt,
}  # fmt: skip


class Target(NamedTuple):
    """What a user wants: throughputs of `value` or more, if `name` is X, or mean response times of
    `value` or less, if it is R. R is in seconds if a `unit` was given, or else in that of the file.
    """

    name: str
    value: float
    unit: bool = False


def target(
    wanted: str | None, y: str = "X", found: Mapping[str, tuple[str, float]] | None = None
) -> Target | None:
    """The target in a text such as "R=0.5", "R=500ms", "R_ms=500" or "X=1000". X is also called
    `y`, and both as in the file: `found` has these names, and by what the file's figures were
    multiplied. Raises InputError.
    """
    if not wanted:
        return None
    name, _, value = (part.strip() for part in wanted.partition("="))
    found = found or {}
    (X, times), (R, unit) = found.get("X", ("X", 1.0)), found.get("R", ("R", 1.0))
    known = {f"R_{ending}": ("R", size) for ending, size in SIZES.items()}
    known |= {R: ("R", unit), "R": ("R", 1.0), "X": ("X", 1.0), y: ("X", 1.0), X: ("X", times)}
    meant, size = known.get(name, ("", 1.0))
    if name == "X" != X and times != 1:
        raise InputError(f"--target {wanted}: {X} was made {y}, expected {X}=... or {y}=...")
    parted = re.fullmatch(r"(.*?)\s*([a-zµμ]+)", value)
    if meant == "R" == name and parted:
        value, size = parted[1], SIZES.get(parted[2], np.nan)
    good = meant in ("X", "R") and is_number(value) and size > 0
    if not good or not 0 < float(value) * size < LARGEST:
        told = "a throughput or a mean response time in seconds, as in X=1000, R=0.5s or R=500ms"
        raise InputError(f"--target {wanted}: expected {told} (percentiles are not forecast)")
    return Target(meant, float(value) * size, meant == "R" and (name != "R" or bool(parted)))


def loads(at: str | Iterable[float]) -> list[float]:
    """The loads at which to forecast. Raises InputError for what is no load."""
    items = [str(item).strip() for item in (at.split(",") if isinstance(at, str) else at)]
    found = [float(item) for item in items if is_number(item)]
    if len(found) < len(items) or not all(0 < load < LARGEST for load in found):
        raise InputError(f"--at {','.join(items)}: expected positive loads, as in 200,400")
    return found


def given(known: str | None, stations: Iterable[str] = ()) -> dict[str, float]:
    """The think time and the numbers of servers in a text such as "Z=1,c_cpu=4", of a table in
    which these `stations` have a utilisation. Raises InputError.
    """
    found: dict[str, float] = {}
    here = f"the stations here are {' and '.join([*(stations or ['cpu']), 'lock'])}"
    for one in known.split(",") if known else []:
        name, _, value = (part.strip() for part in one.partition("="))
        good = is_number(value) and 0 <= float(value) < LARGEST
        servers = re.fullmatch(r"c_[A-Za-z]\w*", name) and good and float(value) >= 1
        if not (good and name == "Z") and not (servers and float(value).is_integer()):
            expected = "expected a think time or servers, as in Z=1,c_cpu=4"
            raise InputError(f"--known {one}: {expected}; {here}")
        if name in found:
            raise InputError(f"--known {known}: {name} stands there twice, expected it once")
        found[name] = float(value) if name == "Z" else int(float(value))
    return found


def held_out(expression: str | None, N: np.ndarray, x: str = "N") -> np.ndarray:
    """The loads for which a comparison such as "N>24" is true. Raises InputError.

    The load may be called N or by the name of its column.

    >>> held_out("N > 24", np.array([6, 24, 30]))
    array([False, False,  True])
    """
    if expression is None:
        return np.zeros(len(N), dtype=bool)
    number = r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?"
    match = re.fullmatch(rf"\s*(.*?)\s*(<=|>=|==|<|>)\s*({number})\s*", expression)
    if not match:
        raise InputError(f"--holdout {expression!r}: no comparison, expected one such as 'N>24'")
    if match[1] not in ("N", x):
        expected = f"N or {x}" if x != "N" else "N"
        raise InputError(f"--holdout {expression!r}: {match[1]!r} is not the load, {expected}")
    return COMPARISONS[match[2]](N, float(match[3]))

"""Lines of a text by what they begin with, and figures in the units that tools print."""

import re
from collections.abc import Iterator
from itertools import groupby

from nummodel.records.readers._reading import Malformed

#: Powers of ten of a second, and of one.
SECONDS = {"ns": -9, "us": -6, "µs": -6, "μs": -6, "ms": -3, "s": 0}
MINUTES = {"m": 60, "h": 3600}
THOUSANDS = {"": 0, "k": 3, "M": 6, "G": 9}
FIGURE = re.compile(r"([0-9]{1,20}(?:\.[0-9]{1,20})?) ?([a-zA-Zµμ]{0,2})")


def scaled(cell: str, power: int, line: int, what: str) -> float:
    """A number, times ten to a power, without an error of rounding. Raises Malformed."""
    if not re.fullmatch(r"[0-9]{1,20}(\.[0-9]{0,20})?", cell, re.ASCII):
        raise Malformed(line, f"{what} is {cell[:40]!r}, expected a number")
    return float(f"{cell}e{power}")


def seconds(cell: str, line: int, what: str) -> float:
    """A time with its unit, such as 1.12ms or 2.00m, in seconds. Raises Malformed."""
    found = FIGURE.fullmatch(cell)
    if found and found[2] in MINUTES:
        return float(found[1]) * MINUTES[found[2]]
    if found and found[2] in SECONDS:
        return float(f"{found[1]}e{SECONDS[found[2]]}")
    raise Malformed(line, f"{what} is {cell[:40]!r}, expected a time such as 1.12ms")


def parts(text: str, begins: re.Pattern) -> Iterator[list[tuple[int, str]]]:
    """The lines of each part, with their numbers from 1 on; a part begins with a line that the
    pattern matches. Lines before the first of these belong to the first part.
    """
    part = -1

    def of(numbered: tuple[int, str]) -> int:
        nonlocal part
        part += bool(begins.match(numbered[1]))
        return max(part, 0)

    for _, group in groupby(enumerate(text.split("\n"), 1), of):
        yield list(group)

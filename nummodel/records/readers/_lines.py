"""Lines of a text by what they begin with, and figures in the units that tools print."""

import json
import re
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from nummodel.records.readers._reading import Malformed

#: Powers of ten of a second, and of one.
SECONDS = {"ns": -9, "us": -6, "µs": -6, "μs": -6, "ms": -3, "s": 0, "sec": 0, "secs": 0}
SECONDS |= {"nsec": -9, "usec": -6, "msec": -3}
MINUTES = {"m": 60, "h": 3600}
THOUSANDS = {"": 0, "k": 3, "K": 3, "M": 6, "G": 9}
FIGURE = re.compile(r"([0-9]{1,20}(?:\.[0-9]{1,20})?) ?([a-zA-Zµμ]{0,4})")
#: A whole number of hours and minutes before the seconds, as in 1h3m0s and 00:02:10.
CLOCK = re.compile(r"(?:([0-9]{1,4})(?:h|:(?=[0-9]+:)))?(?:([0-9]{1,4})[m:])?([0-9.]{1,20})s?")
#: What tools print where there is no figure.
NOTHING = {"", "-", "--", "---", "N/A", "n/a", "null", "None", "nan", "-nan", "NaN", "inf"}
#: Elements of a list in a JSON document, at most; a longer one has single requests.
LONGEST = 1000


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
    if (clock := CLOCK.fullmatch(cell)) and clock[3].count(".") < 2 and clock[3] != ".":
        hours, minutes = (float(part or 0) for part in clock.groups()[:2])
        return hours * 3600 + minutes * 60 + float(clock[3])
    raise Malformed(line, f"{what} is {cell[:40]!r}, expected a time such as 1.12ms")


def figure(cell: str, unit: str, line: int, what: str) -> float | str | None:
    """A cell in SI units, None if it says that there is no figure. `unit` is "time" for a cell that
    has a unit of time, "text", "sum" for several numbers, "/min" for a rate, "" for a number that
    may end in k, M or G, or a unit of time. Raises Malformed.
    """
    cell = cell.strip()
    if unit == "text":
        return cell
    if unit == "sum":
        return float(sum(int(n) for n in re.findall(r"[0-9]{1,18}", cell)))
    if cell in NOTHING or cell.startswith("-nan"):
        return None
    if re.fullmatch(r"[0-9]{1,3}(,[0-9]{3})+(\.[0-9]*)?", cell):
        cell = cell.replace(",", "")
    if unit == "time":
        return seconds(cell, line, what)
    power = THOUSANDS.get(cell[-1:], 0) + SECONDS.get(unit, 0)
    if re.fullmatch(r"[0-9](\.[0-9]{1,20})?[eE][-+]?[0-9]{1,2}", cell, re.ASCII):
        return float(cell) * 10.0**power
    number = scaled(cell.rstrip("kKMG").replace(",", "."), power, line, what)
    return number / 60 if unit == "/min" else number


def short(percent: str) -> str:
    """50 of 50.000, and 99.9 of 99.900."""
    return percent.rstrip("0").rstrip(".") if "." in percent else percent


def parts(text: str, begins: re.Pattern) -> Iterator[list[tuple[int, str]]]:
    """The lines of each part, with their numbers from 1 on and without their indent; a part begins
    with a line that the pattern matches. Lines before the first of these belong to the first part.
    """
    part = -1

    def of(numbered: tuple[int, str]) -> int:
        nonlocal part
        part += bool(begins.match(numbered[1]))
        return max(part, 0)

    lines = (line.strip() for line in text.split("\n"))
    for _, group in groupby(enumerate(lines, 1), of):
        yield list(group)


def leaves(text: str, each: str) -> Iterator[list[tuple[int, str]]]:
    """The values of a JSON document as lines such as `latencies.mean: 12`: those of the whole
    document, or of each element of its list `each`. Raises Malformed.
    """
    try:
        document = json.loads(text)
        items = document[each] if each else [document]
        if not isinstance(items, list):
            raise TypeError
        for item in items:
            yield [(0, line) for line in _leaves(item, "")]
    except json.JSONDecodeError as error:
        raise Malformed(
            error.lineno, f"no JSON: {error.msg}, expected the file of a tool"
        ) from None
    except (KeyError, TypeError, ValueError, RecursionError):
        raise Malformed(0, "expected the JSON document of a tool, whole and unchanged") from None


def _leaves(value: Any, path: str) -> Iterator[str]:
    """The lines of a part of a document."""
    if isinstance(value, list):
        value = dict(enumerate(value)) if len(value) <= LONGEST else {}
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _leaves(inner, f"{path}.{name}" if path else str(name))
    else:
        yield f"{path}: {value!s:.200}"

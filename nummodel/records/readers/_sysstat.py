"""What outputs of mpstat, sar and iostat have in common: times, shares of processor time, JSON."""

import json
import re
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from nummodel.records.readers._reading import Column, Malformed, Reading, column, number

if TYPE_CHECKING:
    import pandas as pd

IOSTAT = re.compile(r"^avg-cpu:\s+%user|^Device:?\s.*(%util|\stps\s)|^ +(r/s|tps) .* Device$", re.M)
MPSTAT = re.compile(r"^Linux .{1,300}\([0-9]+ CPU\)\s*$|^\S+( [AP]M)? +CPU .*%idle", re.M)
CLOCK = re.compile(r"([0-9]{1,2}):([0-9]{2}):([0-9]{2})(?: ([AP])M)?(?=\s|$)")
DAY = 86_400
EXPECTED = "expected the whole JSON of mpstat, iostat or sadf, printed with LC_ALL=C"

#: Shares of processor time that are left as they are printed, by their names without the %.
TIMES = {
    "nice": Column("-", "share of processor time of niced processes, included in user"),
    "irq": Column("-", "share of processor time in hardware interrupts, included in system"),
    "soft": Column("-", "share of processor time in software interrupts, included in system"),
    "iowait": column("iowait"),
    "steal": column("steal"),
    "guest": Column("-", "share of processor time for guests"),
    "gnice": Column("-", "share of processor time for niced guests"),
    "idle": column("idle"),
}
#: Shares that are sums of what is printed.
SUMS = {"user": ("usr", "user", "nice"), "system": ("sys", "system", "irq", "soft")}
USED = tuple({**dict.fromkeys(SUMS["user"] + SUMS["system"]), **TIMES})


def tool(text: str) -> str:
    """The reader of a text, "iostat" or "sysstat", by its beginning; "" for other texts."""
    start = text[:20_000].lstrip()
    if re.match(r'\{\s*"sysstat"\s*:', start):
        return "iostat" if '"avg-cpu"' in start or '"disk_device"' in start else "sysstat"
    return "iostat" if IOSTAT.search(start) else "sysstat" if MPSTAT.search(start) else ""


class Row(NamedTuple):
    """Figures of a processor or device (`key`), at a second of the day or in a report (`mark`)."""

    mark: int
    key: str
    line: int
    figures: list[float]


@dataclass
class Section:
    """All rows with the same header, whose `names` have no %."""

    names: list[str]
    rows: list[Row] = field(default_factory=list)

    def frame(self) -> "pd.DataFrame":
        """The figures as they are printed."""
        import numpy as np
        import pandas as pd

        return pd.DataFrame(np.array([row.figures for row in self.rows]), columns=self.names)


class Figures(dict[str, float]):
    """Figures by the cells that show them, so that a frequent cell is converted once."""

    def __missing__(self, cell: str) -> float:
        digits = cell.isascii() and cell.replace(".", "", 1).isdigit()
        short = digits and cell[0] != "." and len(cell) < 16
        return self.setdefault(cell, float(cell) if short else number(cell, 0, ""))

    def row(self, cells: list[str], names: list[str], line: int) -> list[float]:
        """The figures of a row. Raises Malformed for the first cell that is no number."""
        if len(cells) != len(names):
            raise Malformed(line, f"{len(cells)} figures, expected {len(names)} as in the header")
        try:
            return list(map(self.__getitem__, cells))
        except Malformed:
            return [number(cell, line, name) for cell, name in zip(cells, names, strict=True)]


@dataclass
class Output:
    """What a text or JSON has: sections by kind, notes, and names that are not in `used`."""

    used: tuple[str, ...] = USED
    processors: int | None = None
    sections: dict[str, Section] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    ignored: dict[str, None] = field(default_factory=dict)
    known: Figures = field(default_factory=Figures)

    def section(self, kind: str, names: list[str], line: int) -> Section:
        """The rows of a kind, whose header is always the same. Unknown names are left out."""
        section = self.sections.get(kind)
        if section is None:
            if len(set(names)) < len(names):
                raise Malformed(line, "a name appears twice in the header, expected it once")
            self.ignored |= {name: None for name in names if name not in self.used}
            section = self.sections[kind] = Section(names)
        elif section.names != names:
            raise Malformed(line, "another header than before, expected the output of one run")
        return section

    def banner(self, line: str, where: int) -> None:
        """The first line, which has the number of processors since sysstat 10."""
        if self.sections or self.processors:
            raise Malformed(where, "a second run begins here, expected the output of one run")
        if found := re.search(r"\(([0-9]{1,6}) CPU\)\s*$", line[-40:]):
            self.processors = int(found[1])

    def reading(
        self, table: "pd.DataFrame", columns: dict[str, Column], samples: "pd.DataFrame | None"
    ) -> Reading:
        """The table and the samples, with the number of processors and all sentences."""
        for frame in (table, samples):
            if self.processors and frame is not None:
                frame.insert(1, "c_cpu", float(self.processors))
                columns["c_cpu"] = column("c_cpu")
        if some := "; ".join([*self.ignored][:10]):
            others = " and others" if len(self.ignored) > 10 else ""
            self.notes.append(f"Sections and columns left out: {some}{others}.")
        return Reading(table, columns, tuple(self.notes), samples)


def lines_of(text: str, output: Output) -> list[str]:
    """The lines of a text. A last line without its end is cut if headers are longer."""
    lines = text.rstrip().split("\n")
    if text[-1:] == "\n":
        return lines
    headers = [line.rstrip() for line in lines if "%idle" in line or line.startswith("Device")]
    if len(lines[-1]) < max(map(len, headers), default=0):
        output.notes.append("The last line is cut off and left out.")
        del lines[-1]
    return lines


def second(clock: str, line: int) -> int:
    """The second of the day of a time such as 23:59:59 or 11:59:59 PM. Raises Malformed."""
    if match := CLOCK.match(clock):
        hour, minute, second = (int(match[i]) for i in (1, 2, 3))
        if match[4]:
            hour = hour % 12 + 12 * (match[4] == "P") if 1 <= hour <= 12 else 24
        if hour < 24 and minute < 60 and second <= 60:
            return 3600 * hour + 60 * minute + second
    raise Malformed(line, f"the time is {clock[:40]!r}, expected such as 23:59:59 or 11:59:59 PM")


def elapsed(seconds: list[int], lines: list[int]) -> list[float]:
    """Seconds since the first time. Midnight passes where a time is much before the last."""
    t = [0.0]
    for line, (before, after) in zip(lines[1:], pairwise(seconds), strict=True):
        step = after - before + DAY * (after - before < -DAY // 2)
        if step < 0:
            raise Malformed(line, "the time goes back, expected rows in order")
        t.append(t[-1] + step)
    return t


def shares(section: Section) -> "tuple[pd.DataFrame, dict[str, Column]]":
    """Shares of processor time. Raises Malformed for those beyond 100 %."""
    printed = section.frame()
    if "idle" not in printed:
        raise Malformed(section.rows[0].line, "no %idle among the shares, expected it")
    percent = printed.filter(USED).sum(axis=1)
    if percent.max() > 101:
        line = section.rows[percent.argmax()].line
        raise Malformed(line, f"shares add up to {percent.max():.6g} %, expected 100 %")
    table = printed.filter([*TIMES])
    for name in ("system", "user"):
        table.insert(0, name, printed.filter(SUMS[name]).sum(axis=1))
    unused = printed.filter(("idle", "iowait", "steal")).sum(axis=1)
    table.insert(0, "U_cpu", 100 - unused.clip(upper=100))
    return (table / 100).round(10), {name: TIMES.get(name) or column(name) for name in table}


def reports_of(text: str, output: Output, known: set[str]) -> list[dict[str, Any]]:
    """The reports of the only host of a JSON, with all numbers as text. Raises Malformed."""
    try:
        whole = json.loads(text, parse_float=str, parse_int=str, parse_constant=str)
        (host,) = whole["sysstat"]["hosts"]
        processors, reports = host.get("number-of-cpus", ""), host["statistics"]
        output.processors = int(processors) if re.fullmatch("[0-9]{1,6}", processors) else None
        for report in map(dict.keys, reports):
            output.ignored |= {name: None for name in report if name not in known}
    except (TypeError, KeyError, ValueError, AttributeError, RecursionError) as error:
        raise Malformed(getattr(error, "lineno", 0), f"no JSON of one host, {EXPECTED}") from None
    return reports


def cells_of(rows: Any, name: str) -> list[dict[str, str]]:
    """The cells of rows in JSON, by name. Raises Malformed for anything else."""
    are_rows = isinstance(rows, list) and all(isinstance(row, dict) for row in rows)
    if are_rows and all(isinstance(cell, str) for row in rows for cell in row.values()):
        return rows
    raise Malformed(0, f"{name} is no list of rows with figures, {EXPECTED}")

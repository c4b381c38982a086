"""What outputs of mpstat, sar and iostat have in common: times, shares of processor time, JSON."""

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from nummodel.records.readers._reading import Column, Malformed, Reading, column

if TYPE_CHECKING:
    import pandas as pd

IOSTAT = re.compile(
    r"^[ \t]*(?:avg-cpu:[ \t]+%user|Device:?[ \t][^\n]*(?:%util|[ \t]tps[ \t])"
    r"|(?:r/s|tps) [^\n]* Device$)",
    re.M,
)
MPSTAT = re.compile(
    r"^[ \t]*(?:Linux [^\n]{1,300}\([0-9]+ CPU\)[ \t]*$|[0-9:]{7,8}(?: [AP]M)? +CPU [^\n]*%idle)",
    re.M,
)
BANNER = re.compile(r"Linux \S{1,100} \((.{1,200}?)\)(?:.{0,200}\(([0-9]{1,6}) CPU\))?")
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
    """The reader of a text, "iostat" or "sysstat"; "" for other texts."""
    if re.match(r'\s*\{\s*"sysstat"\s*:', text):
        start = text[:20_000]
        return "iostat" if '"avg-cpu"' in start or '"disk_device"' in start else "sysstat"
    return "iostat" if IOSTAT.search(text) else "sysstat" if MPSTAT.search(text) else ""


class Row(NamedTuple):
    """Figures of a processor or device (`key`), at a second of the day or in a report (`mark`)."""

    run: int
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
        import pandas as pd

        return pd.DataFrame([row.figures for row in self.rows], columns=self.names, dtype=float)


@dataclass
class Output:
    """What a text or JSON has: sections by kind, notes, and names that are not in `used`."""

    used: tuple[str, ...] = USED
    machine: tuple[str, str] | None = None
    #: The number of the run, from 0 on: each begins with its banner.
    run: int = 0
    width: int = 0
    sections: dict[str, Section] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    ignored: dict[str, None] = field(default_factory=dict)

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

    def banner(self, line: str, at: int) -> bool:
        """Whether a line is the first of a run: it has the machine and its processors."""
        if not (found := BANNER.match(line[:600].strip())):
            return False
        machine = (found[1], found[2] or "")
        if self.machine not in (None, machine):
            raise Malformed(at, "a run of another machine begins here, expected one machine")
        self.run += self.machine is not None
        self.machine = machine
        return True

    def whole(self, line: str) -> bool:
        """Whether a line is as long as headers are."""
        return len(line.rstrip()) >= self.width

    def reading(
        self, table: "pd.DataFrame", columns: dict[str, Column], samples: "pd.DataFrame | None"
    ) -> Reading:
        """The table and the samples, with the number of processors and all sentences."""
        for frame in (table, samples):
            if self.machine and self.machine[1] and frame is not None:
                frame.insert(1, "c_cpu", float(self.machine[1]))
                columns["c_cpu"] = column("c_cpu")
        runs = {row.run for section in self.sections.values() for row in section.rows}
        if len(runs) > 1:
            self.notes.append(f"{len(runs)} runs are in this file: rows are of all of them.")
        if some := "; ".join([*self.ignored][:10]):
            others = " and others" if len(self.ignored) > 10 else ""
            self.notes.append(f"Sections and columns left out: {some}{others}.")
        return Reading(table, columns, tuple(self.notes), samples)


def second(clock: str, line: int) -> int:
    """The second of the day of a time such as 23:59:59 or 11:59:59 PM. Raises Malformed."""
    if match := CLOCK.match(clock):
        hour, minute, second = (int(match[i]) for i in (1, 2, 3))
        if match[4]:
            hour = hour % 12 + 12 * (match[4] == "P") if 1 <= hour <= 12 else 24
        if hour < 24 and minute < 60 and second <= 60:
            return 3600 * hour + 60 * minute + second
    raise Malformed(line, f"the time is {clock[:40]!r}, expected such as 23:59:59 or 11:59:59 PM")


def elapsed(rows: list[tuple[int, int, int]], starts: dict[int, int]) -> list[float]:
    """Seconds since the start of the first run of some rows, each its run, second of the day and
    line. Midnight passes between runs, and where a time is much before the last.
    """
    t, now, run = [], 0, rows[0][0]
    before = starts.get(run, rows[0][1])
    for this, mark, line in rows:
        marks = [mark] if this == run else [starts.get(this, mark), mark]
        for after in marks:
            step = after - before
            if step < 0 and (this != run or step < -DAY // 2):
                step += DAY
            if step < 0:
                raise Malformed(line, "the time goes back, expected rows in order")
            now, before = now + step, after
        run = this
        t.append(float(now))
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
        output.machine = ("", processors if re.fullmatch("[0-9]{1,6}", processors) else "")
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

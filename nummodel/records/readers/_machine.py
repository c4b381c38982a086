"""Outputs of vmstat, mpstat, sar and iostat: reports at intervals, of processors and devices.

A reader is an `Output` that says which lines begin runs, reports and sections, and what columns
mean. The first report of a run is where the run starts. What it prints is the average since boot.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

from nummodel.records.readers._output import Take, are_figures, figures, take
from nummodel.records.readers._reading import Malformed, column

#: With more reports than these, the last is cut if it lacks a device that all others have.
MANY = 3
DAY = 86_400
CLOCK = re.compile(r"([0-9]{1,2}):([0-9]{2}):([0-9]{2})(?: ([AP])M)?(?![0-9:])")
BANNER = re.compile(r"Linux \S{1,100} \((.{1,200}?)\)(?:.{0,200}\(([0-9]{1,6}) CPU\))?")
EXPECTED = "expected the whole JSON of mpstat, iostat or sadf, printed with LC_ALL=C"
OFFLINE = "Rows of zeros are left out: these processors are offline."
PERCENT = 0.01


class Figure(NamedTuple):
    """A column: its name, unit and meaning, and the names without their % that tools print for it,
    each with the unit it has there. What is printed is added to the `start`.
    """

    name: str
    unit: str
    meaning: str
    printed: Mapping[str, float]
    start: float = 0.0


def share(name: str, *printed: str, of: str = "") -> Figure:
    """A share of processor time that is printed in percent."""
    unit, meaning = ("-", f"share of processor time {of}") if of else column(name)
    return Figure(name, unit, meaning, dict.fromkeys(printed or (name,), PERCENT))


#: Shares of processor time in outputs of sysstat.
PROCESSORS = (
    Figure("U_cpu", *column("U_cpu"), dict.fromkeys(("idle", "iowait", "steal"), -PERCENT), 1.0),
    share("user", "usr", "user", "nice"),
    share("system", "sys", "system", "irq", "soft"),
    share("nice", of="of niced processes, included in user"),
    share("irq", of="in hardware interrupts, included in system"),
    share("soft", of="in software interrupts, included in system"),
    share("iowait"),
    share("steal"),
    share("guest", of="for guests"),
    share("gnice", of="for niced guests"),
    share("idle"),
)


class Report(NamedTuple):
    """The run of a report, and its time in seconds since some midnight, or None."""

    run: int
    time: float | None


class Output:
    """What was read so far. Readers declare the first attributes."""

    #: The name of the tool, and what it calls a report.
    tool, word = "", "report"
    #: The columns of each kind of rows, "cpu" and "device".
    figures: ClassVar[Mapping[str, tuple[Figure, ...]]] = {"cpu": PROCESSORS}
    #: Names that each header of processors has, and the greatest sum of their shares, in percent.
    needs: tuple[str, ...] = ("idle",)
    total = 101
    #: What prints times, and what to expect where nothing is found.
    timed, expected = "", ""
    #: The names of lists in JSON, and the kinds of their rows.
    lists: ClassVar[Mapping[str, str]] = {}

    def __init__(self) -> None:
        self.reports: list[Report] = []
        #: Rows by columns, with the number of their report.
        self.rows: list[dict[str, Any]] = []
        #: The names in the header of each kind.
        self.headers: dict[str, list[str]] = {}
        #: The machine and the number of its processors, "" if the output does not tell them.
        self.machine: tuple[str, str] | None = None
        self.run = self.width = 0
        #: The names that are read in rows of each kind, with their units.
        self.units = {
            kind: {name: unit for figure in of for name, unit in figure.printed.items()}
            for kind, of in self.figures.items()
        }
        self.shares = [name for name, unit in self.units["cpu"].items() if abs(unit) == PERCENT]
        self.notes: dict[str, None] = {}
        self.ignored: dict[str, None] = {}

    def read(self, text: str, head: Take, row: Take) -> None:
        """Take the rows of a text or a JSON. `head` takes lines that begin a run, a report or a
        section. Raises Malformed.
        """
        if self.lists and text.lstrip().startswith("{"):
            self.document(text)
        else:
            told = take(text, head, row, lambda line: len(line.rstrip()) >= self.width)
            self.notes |= dict.fromkeys(told)
            self._leave_out_cut()

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

    def begin(self, time: float | None, at: int) -> None:
        """A report begins. Midnight passes between runs, and where a time of the day is much before
        the last one. Raises Malformed for a time that goes back.
        """
        run, before = self.reports[-1] if self.reports else (self.run, None)
        if time is not None and before is not None:
            if time < DAY:
                time += before // DAY * DAY
                time += DAY * (time < before - (DAY // 2 if run == self.run else 0))
            if time < before:
                raise Malformed(at, "the time goes back, expected rows in order")
        self.reports.append(Report(self.run, time))

    def section(self, kind: str, names: list[str], line: str = "", at: int = 0) -> None:
        """Take the header of a kind, which is always the same. Raises Malformed for another one."""
        self.width = max(self.width, len(line.rstrip()))
        if self.headers.setdefault(kind, names) != names:
            raise Malformed(at, "another header than before, expected the output of one run")
        missing = [name for name in self.needs if kind == "cpu" and name not in names]
        if missing:
            what = f"a header without {', '.join(missing)}"
            raise Malformed(at, f"{what}, expected that of {self.tool}")
        if len(set(names)) < len(names):
            raise Malformed(at, "a name appears twice in the header, expected it once")
        self.ignored |= dict.fromkeys(name for name in names if name not in self.units[kind])

    def printed(self, kind: str, cells: list[str], at: int) -> dict[str, float]:
        """The figures of a row by their names, none for a line that is no row. Raises Malformed."""
        names, units = self.headers[kind], self.units[kind]
        if len(cells) != len(names) and not are_figures(cells):
            return {}
        row = zip(names, figures(cells, names, at), strict=True)
        known = {name: figure for name, figure in row if name in units}
        total = sum(known[name] for name in self.shares if name in known)
        if total > self.total:
            raise Malformed(at, f"shares add up to {total:.6g} %, expected 100 %")
        return known

    def add(self, kind: str, key: str, printed: dict[str, float]) -> bool:
        """Add a row to the last report, if it has figures. Old versions print zeros for processors
        that are offline.
        """
        if kind == "cpu" and printed and not any(printed.values()):
            self.notes[OFFLINE] = None
        elif printed:
            self.rows.append({**printed, "report": len(self.reports) - 1, kind: key})
        return bool(printed)

    def _leave_out_cut(self) -> None:
        """Leave out the last report if it lacks what all others have."""
        found: list[set[str]] = [set() for _ in self.reports]
        for row in self.rows:
            # Devices may be missing in one report (-z), but not in the last of many only.
            key = row.get("device", "")
            found[row["report"]].add(key if len(found) > MANY else str("device" in row))
        if len(found) > 1 and set.intersection(*found[:-1]) - found[-1]:
            del self.reports[-1]
            self.rows = [row for row in self.rows if row["report"] < len(self.reports)]
            self.notes["The last report is cut off and left out."] = None

    def document(self, text: str) -> None:
        """Take the reports of the only host of a JSON, numbers as text. Raises Malformed."""
        try:
            whole = json.loads(text, parse_float=str, parse_int=str, parse_constant=str)
            (host,) = whole["sysstat"]["hosts"]
            processors = host.get("number-of-cpus", "")
            self.machine = ("", processors if re.fullmatch("[0-9]{1,6}", processors) else "")
            for report in host["statistics"]:
                self._take_report(report)
        except Malformed:
            raise
        except (TypeError, KeyError, ValueError, AttributeError, RecursionError) as error:
            line = getattr(error, "lineno", 0)
            raise Malformed(line, f"no JSON of one host, {EXPECTED}") from None

    def _take_report(self, report: dict[str, Any]) -> None:
        """Take a report in JSON, unless it has nothing of processors and devices."""
        self.ignored |= {name: None for name in report if name not in (*self.lists, "timestamp")}
        kinds = [(report[name], kind) for name, kind in self.lists.items() if name in report]
        clock = CLOCK.search(str(report.get("timestamp")))
        if kinds:
            self.begin(second(clock[0], 0) if clock else None, 0)
        for rows, kind in kinds:
            for row in [rows] if isinstance(rows, dict) else rows:
                key = row.pop("disk_device", None) or row.pop("cpu", "all")
                known = {name: cell for name, cell in row.items() if name in self.units[kind]}
                self.ignored |= dict.fromkeys(name for name in row if name not in known)
                self.section(kind, [*known])
                self.add(kind, str(key), self.printed(kind, [*known.values()], 0))


def second(clock: str, line: int) -> int:
    """The second of the day of a time such as 23:59:59 or 11:59:59 PM. Raises Malformed."""
    if match := CLOCK.match(clock):
        hour, minute, second = (int(match[i]) for i in (1, 2, 3))
        if match[4]:
            hour = hour % 12 + 12 * (match[4] == "P") if 1 <= hour <= 12 else 24
        if hour < 24 and minute < 60 and second <= 60:
            return 3600 * hour + 60 * minute + second
    raise Malformed(line, f"the time is {clock[:40]!r}, expected such as 23:59:59 or 11:59:59 PM")

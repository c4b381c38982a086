"""vmstat of procps 3 and 4 with a delay, also with -w, -t, -n, -S, -a or -y.

The first row of a run is the average since boot, unless -y was given. The output does not say
whether it was, so the first row of each run is left out wherever there are more. The other modes
(-d, -D, -f, -m, -p and -s) are not read. Admitted with recordings of procps 4; layouts of procps 3
are by hand.
"""

import re
from dataclasses import replace
from datetime import datetime
from typing import ClassVar

from nummodel.records.readers._machine import Figure, Output, share
from nummodel.records.readers._machine_table import reading
from nummodel.records.readers._reading import Malformed, Reading

#: Names in the header that every version for Linux prints; other systems have no swpd or wa.
EXPECTED = ("r", "b", "swpd", "in", "cs", "us", "sy", "id", "wa")
FIGURES = (
    share("U_cpu", "us", "sy", "gu"),
    Figure("runnable", "-", "threads that run or wait for a processor", {"r": 1}),
    Figure("blocked", "-", "threads that wait for a disk", {"b": 1}),
    Figure("switches", "1/s", "context switches", {"cs": 1}),
    Figure("interrupts", "1/s", "interrupts, the clock included", {"in": 1}),
    share("user", "us"),
    share("system", "sy"),
    share("idle", "id"),
    share("iowait", "wa"),
    share("steal", "st"),
    share("guest", "gu", of="for guests, not included in user"),
)
STAMP = re.compile(r"\s([0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2})(\s+\S+)?\s*$")
HEADER = re.compile(r"^[ \t]*r[ \t]+b[ \t]+swpd[ \t][^\n]*[ \t]us[ \t]+sy[ \t]+id[ \t]", re.M)
#: In one run, vmstat prints the header again when a window is full: below more rows than these.
WINDOW = 9


def recognises(text: str) -> bool:
    """Whether the text has a header of vmstat."""
    return HEADER.search(text) is not None


def parse(text: str) -> Reading:
    """One row of means, and a sample for each row but the first of each run. Raises Malformed."""
    lines = _Lines()
    lines.read(text, lines.head, lines.row)
    all_rows = reading(lines)
    table = all_rows.table.drop(columns=["t", "cpu"]).mean().round(10).to_frame().T
    known = {*table, *(() if all_rows.samples is None else ("t",))}
    columns = {name: column for name, column in all_rows.columns.items() if name in known}
    return replace(all_rows, table=table, columns=columns)


class _Lines(Output):
    """The rows of an output, each of them a report."""

    tool, word = "vmstat", "row"
    figures: ClassVar = {"cpu": FIGURES}
    needs = EXPECTED
    #: Percentages are rounded to whole numbers, so that six of them may add up to 103.
    total = 103
    timed = "vmstat -t prints them"
    expected = f"no row below {', '.join(EXPECTED)}, expected vmstat 1 (-d, -s etc. are not read)"
    #: The last line of vmstat, and whether another one stands between its lines since then.
    last, apart = 0, False
    #: Rows below the last header, and below the first header of the run if it has more of them.
    below, window = 0, 0
    first: tuple[float, ...] = ()

    def head(self, line: str, cells: list[str], at: int) -> bool:
        """Take the names of the columns, or of their groups. The last may be the time zone."""
        groups = cells[0].lstrip("-").startswith("procs")
        if not groups and cells[:2] != ["r", "b"]:
            return False
        self.apart |= at > self.last + 1
        self.last = at
        if not groups:
            zone = not (cells[-1].isalpha() and cells[-1].islower())
            self.section("cpu", cells[:-1] if zone else cells, line, at)
            self.window = self.window or self.below
            if self.apart or not WINDOW < self.below == self.window:
                self._begin_run()
            self.below = 0
        return True

    def _begin_run(self) -> None:
        """A new run begins, unless the last one has no row."""
        self.run += bool(self.reports) and self.reports[-1].run == self.run
        self.below = self.window = 0
        self.apart = False

    def row(self, line: str, cells: list[str], at: int) -> bool:
        """Take the figures and the time of a row."""
        if not self.headers:
            return False
        # Rows without a time have no colon: they need no search.
        stamp = STAMP.search(line, max(0, len(line) - 60)) if ":" in line[-30:] else None
        row = self.printed("cpu", line[: stamp.start()].split() if stamp else cells, at)
        time = _seconds(stamp[1], at) if stamp else None
        if not row:
            return False
        if self.window and not self.below and self._is_since_boot(row):
            self._begin_run()
        if not self.window and not self.below:
            self.first = tuple(row.values())
        self.begin(time, at)
        self.below += 1
        self.last, self.apart = at, False
        return self.add("cpu", "all", row)

    def _is_since_boot(self, row: dict[str, float]) -> bool:
        """Whether a row repeats the first of its run, but for what a run adds to the averages."""
        averages = zip([*row.values()][2:], self.first[2:], strict=True)
        return all(abs(now - before) <= 1 + 0.05 * before for now, before in averages)


def _seconds(stamp: str, at: int) -> float:
    """The time of a row, in seconds since a day long ago. Raises Malformed."""
    try:
        return (datetime.fromisoformat(stamp) - datetime.min).total_seconds()
    except ValueError:
        expected = "such as 2024-05-31 23:59:59"
        raise Malformed(at, f"the time is {stamp!r}, expected {expected}") from None

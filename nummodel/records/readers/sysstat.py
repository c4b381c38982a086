"""mpstat and sar -u of sysstat 10 to 12, also with -P ALL, as text or JSON, and sadf -j.

Sections about other things than processor time are left out. Admitted with recordings of 12.6 and
two excerpts of the authors' tests; older layouts are by hand.
"""

import re
from typing import ClassVar

from nummodel.records.readers import iostat
from nummodel.records.readers._machine import CLOCK, DAY, Output, Report, second
from nummodel.records.readers._machine_table import reading
from nummodel.records.readers._output import FIGURE
from nummodel.records.readers._reading import Reading

MPSTAT = re.compile(
    r"^[ \t]*(?:Linux [^\n]{1,300}\([0-9]+ CPU\)[ \t]*$|[0-9:]{7,8}(?: [AP]M)? +CPU [^\n]*%idle)"
    r'|\A\s*\{\s*"sysstat"\s*:',
    re.M,
)
#: The word for an average, in any language.
WORD = re.compile(r"[^\W\d_]{2,20}\.? ?:(?=\s)")
RESTARTS = "Lines of restarts and comments are left out."
SECOND = "The start is not printed: the first interval counts as long as the second."
AVERAGES = "The printed averages are left out."


def recognises(text: str) -> bool:
    """Whether the text has what mpstat or sar print, or is JSON of them."""
    return MPSTAT.search(text) is not None and not iostat.recognises(text)


def parse(text: str) -> Reading:
    """A row for each of a processor, and a sample for each of all processors. Raises Malformed."""
    lines = _Lines()
    lines.read(text, lines.head, lines.row)
    return reading(lines)


class _Lines(Output):
    """The names of the section whose rows follow, none if it is left out, and its labels."""

    tool = "mpstat"
    timed = "text of mpstat has them"
    expected = "no shares of processors, expected mpstat or sar -u, not -I or -N alone"
    lists: ClassVar = {"cpu-load": "cpu"}
    names: list[str] | None = None
    labels = 0

    def head(self, line: str, cells: list[str], at: int) -> bool:
        """Take the banner of a run, the names of a section, a restart or a comment."""
        if self.banner(line, at):
            return True
        time, cells = _timed(line, at, self.names is not None)
        if cells[:1] == ["COM"] or cells[:2] == ["LINUX", "RESTART"]:
            self.notes[RESTARTS] = None
            return True
        if not cells or (cells[0] != "CPU" and any(map(FIGURE.fullmatch, cells))):
            return False
        self.names = []
        if cells[0] != "CPU" or "%idle" not in cells:
            self.ignored[" ".join(cells[:3])[:60]] = None
            return True
        # Labels such as NODE (mpstat -T) are between the processor and the shares.
        self.names = [name[1:] for name in cells if name.startswith("%")]
        self.labels = len(cells) - 1 - len(self.names)
        self.ignored |= dict.fromkeys(cells[1 : 1 + self.labels])
        self.section("cpu", self.names, line, at)
        if time is not None and (not self.reports or self.reports[-1].run < self.run):
            self.begin(time, at)
        return True

    def row(self, line: str, cells: list[str], at: int) -> bool:
        """Take a row of a processor, or of a section that is left out."""
        time, cells = _timed(line, at, self.names is not None)
        if not cells or self.names is None:
            return False
        if not self.names:
            return True
        key, *cells = cells
        if not re.fullmatch("all|[0-9]{1,6}", key):
            return False
        # In rows of all processors, labels are blank.
        if len(cells) == self.labels + len(self.names):
            cells = cells[self.labels :]
        row = self.printed("cpu", cells, at)
        if time is None:
            self.notes[AVERAGES] = None
            return bool(row)
        run, before = self.reports[-1] if self.reports else (self.run, None)
        if row and (run, before and before % DAY) != (self.run, time):
            self.begin(time, at)
        return self.add("cpu", key, row)

    def document(self, text: str) -> None:
        """Take the reports of a JSON. Raises Malformed."""
        super().document(text)
        times = [report.time for report in self.reports if report.time is not None]
        steps = [time - times[0] for time in times if time > times[0]]
        if steps:
            self.notes[SECOND] = None
        else:
            self.reports = [Report(0, None) for _ in self.reports]
        self.reports.insert(0, Report(0, times[0] - steps[0] if steps else None))
        self.rows = [{**row, "report": row["report"] + 1} for row in self.rows]


def _timed(line: str, at: int, begun: bool) -> tuple[int | None, list[str]]:
    """The second of the day at the beginning of a line, or None for an average, and the other
    cells: none if the line does not begin so.
    """
    line = line.lstrip()
    if clock := CLOCK.match(line):
        return second(clock[0], at), line[clock.end() :].split()
    average = WORD.match(line) if begun else None
    return None, line[average.end() :].split() if average else []

"""mpstat and sar -u of sysstat 10 to 12, also with -P ALL, as text or JSON, and sadf -j.

Sections about other things than processor time are left out. Admitted with recordings of 12.6 and
two excerpts of the authors' tests; older layouts are by hand.
"""

import re
from itertools import dropwhile, groupby
from typing import TYPE_CHECKING

from nummodel.records.readers import _sysstat
from nummodel.records.readers._output import FIGURE, figures, take
from nummodel.records.readers._reading import Column, Malformed, Reading, column, number
from nummodel.records.readers._sysstat import CLOCK, DAY, USED, Output, Row, Section, second

if TYPE_CHECKING:
    import pandas as pd

#: In place of the second of the day, in rows that begin with "Average:", in any language.
AVERAGE = -1
WORD = re.compile(r"[^\W\d_]{2,20}\.? ?:(?=\s)")
RESTARTS = "Lines of restarts and comments are left out."
#: The second at which each run starts, which JSON of mpstat does not tell.
Starts = dict[int, int]


def recognises(text: str) -> bool:
    """Whether the text has what mpstat or sar print, or is JSON of them."""
    return _sysstat.tool(text) == "sysstat"


def parse(text: str) -> Reading:
    """A row for each row of a processor, and a sample for each of all processors."""
    output = Output()
    starts = (_json if text.lstrip().startswith("{") else _text)(text, output)
    cpu = output.sections.get("cpu")
    if not cpu or not cpu.rows:
        raise Malformed(0, "no shares of processors, expected mpstat or sar -u, not -I or -N alone")
    since_boot = all(row.mark == starts.get(row.run) for row in cpu.rows)
    if since_boot and output.run:
        raise Malformed(0, "averages since boot only, expected runs such as mpstat 1")
    if not since_boot:
        cpu.rows = _after_boot(cpu.rows, starts)
    _leave_out_offline(cpu, output)
    frame, columns = _sysstat.shares(cpu)
    t, meaning = _times(cpu.rows, starts, output)
    frame.insert(0, "cpu", [row.key for row in cpu.rows])
    frame.insert(0, "t", t)
    columns = {"t": meaning, "cpu": Column("-", "the processor, or all of them"), **columns}
    samples = None
    if since_boot:
        output.notes.append("The only report is the average since boot, so it is no sample.")
    else:
        samples = _samples(frame, output)
    if "average" in output.sections:
        output.notes.append("The printed averages are left out.")
    return output.reading(frame, columns, samples)


def _text(text: str, output: Output) -> Starts:
    """Read the rows of a text, and return the second at which each run starts."""
    lines = _Lines(output)
    output.notes += take(text, lines.head, lines.row, output.whole)
    return lines.starts


class _Lines:
    """What was found so far: names of a section, none if it is left out, and starts of runs."""

    def __init__(self, output: Output) -> None:
        self.output = output
        self.starts: Starts = {}
        self.names: list[str] | None = None
        self.labels = 0

    def head(self, line: str, cells: list[str], at: int) -> bool:
        """Take the banner of a run, the names of a section, a restart or a comment."""
        if self.output.banner(line, at):
            return True
        mark, cells = _timed(line, at, self.names is not None)
        if cells[:1] == ["COM"] or cells[:2] == ["LINUX", "RESTART"]:
            if RESTARTS not in self.output.notes:
                self.output.notes.append(RESTARTS)
            return True
        if not cells or (cells[0] != "CPU" and any(map(FIGURE.fullmatch, cells))):
            return False
        self.names = []
        if cells[0] == "CPU" and "%idle" in cells:
            self._section(mark, [name[1:] for name in cells if name.startswith("%")], cells, at)
            self.output.width = max(self.output.width, len(line.rstrip()))
        else:
            self.output.ignored[" ".join(cells[:3])[:60]] = None
        return True

    def _section(self, mark: int, names: list[str], cells: list[str], at: int) -> None:
        """Rows of processors follow. Their labels (mpstat -T) are left out."""
        self.names, self.labels = names, len(cells) - 1 - len(names)
        self.output.ignored |= dict.fromkeys(cells[1 : 1 + self.labels])
        self.output.section("average" if mark == AVERAGE else "cpu", names, at)
        if mark != AVERAGE:
            self.starts.setdefault(self.output.run, mark)

    def row(self, line: str, cells: list[str], at: int) -> bool:
        """Take a row of a processor, or of a section that is left out."""
        mark, cells = _timed(line, at, self.names is not None)
        if not cells or self.names is None:
            return False
        if self.names:
            key, *cells = cells
            if not re.fullmatch("all|[0-9]{1,6}", key):
                return False
            # In rows of all processors, labels are blank.
            if len(cells) == self.labels + len(self.names):
                cells = cells[self.labels :]
            section = self.output.section("average" if mark == AVERAGE else "cpu", self.names, at)
            row = Row(self.output.run, mark, key, at, figures(cells, self.names, at))
            section.rows.append(row)
        return True


def _timed(line: str, at: int, begun: bool) -> tuple[int, list[str]]:
    """The second of the day at the beginning of a line, or AVERAGE, and the other cells: none if
    the line does not begin so.
    """
    line = line.lstrip()
    if clock := CLOCK.match(line):
        return second(clock[0], at), line[clock.end() :].split()
    average = WORD.match(line) if begun else None
    return AVERAGE, line[average.end() :].split() if average else []


def _json(text: str, output: Output) -> Starts:
    """Read the rows of a JSON, and return the second at which they start, if sadf tells it."""
    starts: Starts = {}
    for report in _sysstat.reports_of(text, output, {"timestamp", "cpu-load"}):
        if "cpu-load" not in report:
            continue
        mark, length = _stamp(report.get("timestamp"))
        if length is not None:
            starts.setdefault(0, (mark - length) % DAY)
        for row in _sysstat.cells_of(report["cpu-load"], "cpu-load"):
            names = [name for name in row if name in USED]
            cells = figures([row[name] for name in names], names, 0)
            section = output.section("cpu", names, 0)
            section.rows.append(Row(0, mark, row.get("cpu", "all"), 0, cells))
    return starts


def _stamp(stamp: object) -> tuple[int, int | None]:
    """The second of the day of a report in JSON, and the length of its interval in sadf."""
    length = None
    if isinstance(stamp, dict):
        length = int(number(str(stamp.get("interval")), 0, "interval")) % DAY
        stamp = stamp.get("time")
    return second(str(stamp), 0), length


def _after_boot(rows: list[Row], starts: Starts) -> list[Row]:
    """The rows of runs without the first at the very start, which are averages since boot."""
    kept: list[Row] = []
    for run, some in groupby(rows, lambda row: row.run):
        start = starts.get(run)
        kept += dropwhile(lambda row, start=start: row.mark == start, some)  # type: ignore
    return kept


def _leave_out_offline(cpu: Section, output: Output) -> None:
    """Leave out processors without any time: old versions print zeros for those offline."""
    online = [row for row in cpu.rows if any(row.figures)]
    if not online:
        raise Malformed(0, "no shares of processors but zeros, expected those in use")
    if len(online) < len(cpu.rows):
        output.notes.append("Rows of zeros are left out: these processors are offline.")
    cpu.rows = online


def _times(rows: list[Row], starts: Starts, output: Output) -> tuple[list[float] | float, Column]:
    """The seconds of rows since the start of the first run."""
    marks = [row.mark for row in rows]
    if not starts:
        later = next((mark for mark in marks if mark != marks[0]), None)
        if later is None:
            output.notes.append(
                "There is one interval without its start, so t counts reports, not seconds."
            )
            return 1.0, Column("reports", "number of the report, since its start is not printed")
        output.notes.append(
            "The start is not printed: the first interval counts as long as the second."
        )
        starts = {0: (marks[0] - (later - marks[0]) % DAY) % DAY}
    return _sysstat.elapsed([(row.run, row.mark, row.line) for row in rows], starts), column("t")


def _samples(frame: "pd.DataFrame", output: Output) -> "pd.DataFrame | None":
    """The rows of all processors."""
    if len(frame) % frame["cpu"].nunique():
        output.notes.append("Some processors are missing in some intervals: they were offline.")
    samples = frame[frame["cpu"] == "all"].drop(columns="cpu").reset_index(drop=True)
    if len(samples):
        return samples
    output.notes.append("There are no rows of all processors, so there are no samples.")
    return None

"""mpstat and sar -u of sysstat 10 to 12, also with -P ALL, as text or JSON, and sadf -j.

Sections about other things than processor time are left out. Admitted with recordings of 12.6 and
two excerpts of the authors' tests; older layouts are by hand.
"""

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from nummodel.records.readers import _sysstat
from nummodel.records.readers._reading import Column, Malformed, Reading, column, number
from nummodel.records.readers._sysstat import CLOCK, DAY, USED, Output, Row, Section, second

if TYPE_CHECKING:
    import pandas as pd

#: In place of the second of the day, in rows that begin with "Average:".
AVERAGE = -1
RESTARTS = "Lines of restarts and comments are left out."


def recognises(text: str) -> bool:
    """Whether the text begins as an output of mpstat or sar does, or is JSON of them."""
    return _sysstat.tool(text) == "sysstat"


def parse(text: str) -> Reading:
    """A row for each row of a processor, and a sample for each of all processors."""
    output = Output()
    read = _json if text.lstrip().startswith("{") else _text
    start = read(text, output)
    cpu = output.sections.get("cpu")
    if not cpu:
        raise Malformed(0, "no shares of processors, expected mpstat or sar -u, not -I or -N alone")
    _leave_out_offline(cpu, output)
    frame, columns = _sysstat.shares(cpu)
    t, meaning = _times(cpu.rows, start, output)
    frame.insert(0, "cpu", [row.key for row in cpu.rows])
    frame.insert(0, "t", t)
    columns = {"t": meaning, "cpu": Column("-", "the processor, or all of them"), **columns}
    samples = None
    if all(row.mark == start for row in cpu.rows):
        output.notes.append("The only report is the average since boot, so it is no sample.")
    else:
        samples = _samples(frame, output)
    if samples is not None and "average" in output.sections:
        output.notes.append(_comparison(cpu, output.sections["average"]))
    return output.reading(frame, columns, samples)


def _text(text: str, output: Output) -> int | None:
    """Read the rows of a text, and return the second at which they start."""
    start, names, labels = None, None, 0
    for i, (before, line) in enumerate(pairwise(["", *_sysstat.lines_of(text, output)]), 1):
        if not line.strip():
            continue
        if line.startswith("Linux "):
            output.banner(line, i)
            continue
        mark, cells = _timed(line, i)
        if cells[0] == "COM" or cells[:2] == ["LINUX", "RESTART"]:
            if RESTARTS not in output.notes:
                output.notes.append(RESTARTS)
        elif _is_header(cells, not before.strip()):
            names, labels = _header(cells, output)
            if names and start is None and mark != AVERAGE:
                start = mark
        elif names is None:
            raise Malformed(i, "no header yet, expected the names CPU, %usr and others")
        elif names:
            _add(mark, cells, names, labels, i, output)
    return start


def _timed(line: str, where: int) -> tuple[int, list[str]]:
    """The second of the day at the beginning of a line, or AVERAGE, and the other cells."""
    line = line.lstrip()
    if clock := CLOCK.match(line):
        mark, cells = second(clock[0], where), line[clock.end() :].split()
    else:
        first, *cells = line.replace(" :", ":", 1).split()
        mark = AVERAGE
        if not re.fullmatch(r"[^\W\d_]{2,20}\.? ?:", first):  # Average: or Durchschn.: by language
            raise Malformed(where, f"{first[:40]!r} begins no line of mpstat or sar")
    if not cells:
        raise Malformed(where, "a time only, expected a processor and its shares")
    return mark, cells


def _is_header(cells: list[str], after_blank: bool) -> bool:
    """Whether cells are the names of a section: no number is among them."""
    return cells[0] in ("CPU", "NODE") or (
        after_blank and not any(re.match("[0-9.,]+$", cell) for cell in cells)
    )


def _header(cells: list[str], output: Output) -> tuple[list[str], int]:
    """The names of the shares of a section, and how many labels (mpstat -T) precede them.

    There are no names for a section that is left out.
    """
    if cells[0] != "CPU" or "%idle" not in cells:
        output.ignored[" ".join(cells[:3])[:60]] = None
        return [], 0
    labels = [name for name in cells[1:] if not name.startswith("%")]
    names = [name[1:] for name in cells if name.startswith("%")]
    output.ignored |= dict.fromkeys(labels)
    return names, len(labels)


def _add(
    mark: int, cells: list[str], names: list[str], labels: int, line: int, output: Output
) -> None:
    """Add a row. Its labels are left out; in rows of all processors they are blank."""
    key, *cells = cells
    if labels and len(cells) == labels + len(names):
        cells = cells[labels:]
    section = output.section("average" if mark == AVERAGE else "cpu", names, line)
    section.rows.append(Row(mark, key, line, output.known.row(cells, names, line)))


def _json(text: str, output: Output) -> int | None:
    """Read the rows of a JSON, and return the second at which they start, if sadf tells it."""
    start = None
    for report in _sysstat.reports_of(text, output, {"timestamp", "cpu-load"}):
        if "cpu-load" not in report:
            continue
        mark, length = _stamp(report.get("timestamp"))
        if start is None and length is not None:
            start = (mark - length) % DAY
        for row in _sysstat.cells_of(report["cpu-load"], "cpu-load"):
            names = [name for name in row if name in USED]
            figures = output.known.row([row[name] for name in names], names, 0)
            cpu = output.section("cpu", names, 0)
            cpu.rows.append(Row(mark, row.get("cpu", "all"), 0, figures))
    return start


def _stamp(stamp: object) -> tuple[int, int | None]:
    """The second of the day of a report in JSON, and the length of its interval in sadf."""
    length = None
    if isinstance(stamp, dict):
        length = int(number(str(stamp.get("interval")), 0, "interval")) % DAY
        stamp = stamp.get("time")
    return second(str(stamp), 0), length


def _leave_out_offline(cpu: Section, output: Output) -> None:
    """Leave out processors without any time: old versions print zeros for those offline."""
    online = [row for row in cpu.rows if any(row.figures)]
    if not online:
        raise Malformed(0, "no shares of processors but zeros, expected those in use")
    if len(online) < len(cpu.rows):
        output.notes.append("Rows of zeros are left out: these processors are offline.")
    cpu.rows = online


def _times(
    rows: list[Row], start: int | None, output: Output
) -> tuple[list[float] | float, Column]:
    """The seconds of rows since the start. JSON of mpstat does not tell the start."""
    marks = [row.mark for row in rows]
    if start is None:
        later = next((mark for mark in marks if mark != marks[0]), None)
        if later is None:
            output.notes.append(
                "There is one interval without its start, so t counts reports, not seconds."
            )
            return 1.0, Column("reports", "number of the report, since its start is not printed")
        output.notes.append(
            "The start is not printed: the first interval counts as long as the second."
        )
        start = (marks[0] - (later - marks[0]) % DAY) % DAY
    t = _sysstat.elapsed([start, *marks], [0, *(row.line for row in rows)])[1:]
    return t, column("t")


def _samples(frame: "pd.DataFrame", output: Output) -> "pd.DataFrame | None":
    """The rows of all processors."""
    if len(frame) % frame["cpu"].nunique():
        output.notes.append("Some processors are missing in some intervals: they were offline.")
    samples = frame[frame["cpu"] == "all"].drop(columns="cpu").reset_index(drop=True)
    if len(samples):
        return samples
    output.notes.append("There are no rows of all processors, so there are no samples.")
    return None


def _comparison(cpu: Section, averages: Section) -> str:
    """Which averages of all processors are not the means of their samples.

    Intervals are not quite equally long. Where they differ by 1 %, the mean moves by up to 1 % of
    the range of the samples.
    """
    import numpy as np

    printed = [row.figures for row in averages.rows if row.key == "all"]
    rows = np.array([row.figures for row in cpu.rows if row.key == "all"])
    if len(printed) != 1 or averages.names != cpu.names:
        return "The printed averages are left out."
    apart = abs(rows.mean(axis=0) - printed[0]) > 0.0101 + 0.01 * np.ptp(rows, axis=0)
    if apart.any():
        names = ", ".join(np.array(cpu.names)[apart])
        return f"The printed averages are not the means of the samples: {names}."
    return "The printed averages are left out. They agree with the means of the samples."

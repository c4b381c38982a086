"""iostat of sysstat 8 to 12: processors, and devices with -x, as text or JSON.

The output with -h is not read. The first report is the average since boot, unless -y was given. The
output does not say whether it was, so the first report is left out wherever there are more.
Admitted with recordings of 12.6; older layouts are by hand.
"""

import re
from typing import TYPE_CHECKING

from nummodel.records.readers import _sysstat
from nummodel.records.readers._reading import Column, Malformed, Reading, column
from nummodel.records.readers._sysstat import USED, Output, Row, Section, second

if TYPE_CHECKING:
    import pandas as pd

#: Devices times reports, at most, unless each report has each device.
LARGEST = 1_000_000
#: The line of a report with -t, such as 05/31/24 23:59:59, or 2024-05-31T23:59:59+0000.
STAMP = re.compile(
    r"(?:Time:\s*|\S*[0-9]\s+|[0-9]{4}-[0-9]{2}-[0-9]{2}T)"
    r"([0-9]{1,2}:[0-9]{2}:[0-9]{2}(?: [AP]M)?)(?:Z|[-+][0-9:]{2,6})?"
)
#: What rows are about, by the first word of their header, and what their `key` is.
KINDS = {"avg-cpu:": "cpu", "Device": "device", "Device:": "device"}
KEYS = {"cpu": "the processor, or all of them", "device": "the device"}
Figure = tuple[str, str, float, str]
#: Columns of iostat by their names without the %: the name here, the unit, the unit in which iostat
#: prints the column, and the meaning.
FIGURES: dict[str, Figure] = {
    "util": ("U", "-", 0.01, "share of the time with at least one request"),
    "aqu-sz": ("queue", "-", 1, "mean number of requests, waiting or in service"),
    "avgqu-sz": ("queue", "-", 1, "mean number of requests, waiting or in service"),
    "tps": ("transfers", "1/s", 1, "requests of all kinds"),
    "rqm/s": ("merged", "1/s", 1, "requests merged with others before they were issued"),
    "await": ("time", "s", 1e-3, "mean time of a request, waiting included"),
    "areq-sz": ("size", "B", 1024, "mean size of a request"),
    "avgrq-sz": ("size", "B", 512, "mean size of a request"),
    "kB/s": ("bytes", "B/s", 1024, "bytes read, written or discarded"),
    "MB/s": ("bytes", "B/s", 1024**2, "bytes read, written or discarded"),
    "sec/s": ("bytes", "B/s", 512, "bytes read, written or discarded"),
    "f/s": ("flushes", "1/s", 1, "flush requests"),
    "f_await": ("flush_time", "s", 1e-3, "mean time of a flush request, waiting included"),
}
#: Columns of reads, and with other letters and words those of writes and discards.
MERGED = "read requests merged with others before they were issued"
FIGURES_OF_READS: dict[str, Figure] = {
    "r/s": ("reads", "1/s", 1, "read requests"),
    "rrqm/s": ("reads_merged", "1/s", 1, MERGED),
    "rrqm": ("reads_merged_share", "-", 0.01, f"share of {MERGED}"),
    "r_await": ("read_time", "s", 1e-3, "mean time of a read request, waiting included"),
    "rareq-sz": ("read_size", "B", 1024, "mean size of a read request"),
    "rkB/s": ("read_bytes", "B/s", 1024, "bytes of read requests"),
    "rMB/s": ("read_bytes", "B/s", 1024**2, "bytes of read requests"),
    "rsec/s": ("read_bytes", "B/s", 512, "bytes of read requests"),
    "kB_read/s": ("read_bytes", "B/s", 1024, "bytes of read requests"),
    "MB_read/s": ("read_bytes", "B/s", 1024**2, "bytes of read requests"),
    "Blk_read/s": ("read_bytes", "B/s", 512, "bytes of read requests"),
}


def _of_kind(kind: str, done: str) -> dict[str, Figure]:
    """Columns of one kind of request, by what they are for reads."""
    figures = {}
    for printed, (name, unit, scale, meaning) in FIGURES_OF_READS.items():
        printed = re.sub("^r", kind[0], printed).replace("_read/", f"_{done}/")
        figures[printed] = name.replace("read", kind), unit, scale, meaning.replace("read", kind)
    return figures


FIGURES |= FIGURES_OF_READS | _of_kind("write", "wrtn") | _of_kind("discard", "dscd")
#: Figures of each device that the samples have.
SAMPLED = ("U", "reads", "writes")


def recognises(text: str) -> bool:
    """Whether the text has a header of iostat near its beginning, or is JSON of it."""
    return _sysstat.tool(text) == "iostat"


def parse(text: str) -> Reading:
    """A row for each row of all processors or of a device, and a sample for each report."""
    import pandas as pd

    output = Output(used=(*USED, *FIGURES))
    read = _json if text.lstrip().startswith("{") else _text
    times = read(text, output)
    if not any(section.rows for section in output.sections.values()):
        raise Malformed(0, "no shares of processors and no devices, expected iostat -x 1")
    if len(times) == 1:
        output.notes.append("The only report may be the average since boot, so it is no sample.")
    else:
        _leave_out_first_report(output)
    t, meaning = _times(times, output)
    columns = {"t": meaning}
    frames = _frames(output, columns)
    samples = _samples(frames, columns, output) if len(times) > 1 else None
    table = pd.concat([*frames.values()]).sort_index(kind="stable")
    table = table.fillna({kind: "" for kind in frames})
    for whole in (table, samples):
        if whole is not None:
            whole.insert(0, "t", [t[mark] for mark in whole.index])
            whole.index = range(len(whole))
    return output.reading(table, columns, samples)


def _text(text: str, output: Output) -> list[int | None]:
    """Read the rows of a text, and return the second of the day of each report, or None."""
    if " Device\n" in text:
        where = text[: text.index(" Device\n")].count("\n") + 1
        raise Malformed(where, "devices at the ends of lines, expected iostat without -h")
    times: list[int | None] = []
    kinds: set[str] = set()
    headers: dict[str, Section] = {}
    kind = ""
    for i, line in enumerate(_sysstat.lines_of(text, output), 1):
        cells = line.split()
        if not cells:
            continue
        first = cells[0]
        if first == "Linux":
            output.banner(line, i)
        elif first in KINDS:
            kind = KINDS[first]
            if not times or kind in kinds:
                times.append(None)
                kinds.clear()
            kinds.add(kind)
            if line not in headers:
                names = [name.lstrip("%") for name in cells[1:]]
                headers[line] = output.section(kind, names, i)
            rows, names = headers[line].rows, headers[line].names
        elif len(line) < 60 and (stamp := STAMP.fullmatch(line.strip())):
            times.append(second(stamp[1], i))
            kinds.clear()
            kind = ""
        elif kind:
            key, cells = ("all", cells) if kind == "cpu" else (first, cells[1:])
            rows.append(Row(len(times) - 1, key, i, output.known.row(cells, names, i)))
            kind = "" if kind == "cpu" else kind
        else:
            raise Malformed(i, f"{first[:40]!r} begins no line of iostat")
    return times


def _json(text: str, output: Output) -> list[int | None]:
    """Read the rows of a JSON, and return the second of the day of each report, or None."""
    times: list[int | None] = []
    reports = _sysstat.reports_of(text, output, {"timestamp", "avg-cpu", "disk"})
    for i, report in enumerate(reports):
        stamp = report.get("timestamp")
        found = re.search(r"[T ]([0-9:]{8}( [AP]M)?)", str(stamp))
        times.append(None if stamp is None else second(found[1] if found else str(stamp), 0))
        of_cpu = [report["avg-cpu"]] if "avg-cpu" in report else []
        for kind, rows in (("cpu", of_cpu), ("device", report.get("disk", []))):
            for row in _sysstat.cells_of(rows, kind):
                names = [name for name in row if name != "disk_device"]
                figures = output.known.row([row[name] for name in names], names, 0)
                key = row.get("disk_device", "all")
                output.section(kind, names, 0).rows.append(Row(i, key, 0, figures))
    return times


def _leave_out_first_report(output: Output) -> None:
    """Leave out the rows of the first report."""
    for section in output.sections.values():
        section.rows = [row for row in section.rows if row.mark > 0]
    output.notes.append("The first report is left out: it is since boot, unless -y was given.")
    if not any(section.rows for section in output.sections.values()):
        raise Malformed(0, "only the report since boot has rows, expected a report after it")


def _times(times: list[int | None], output: Output) -> tuple[list[float], Column]:
    """The second of each report since the first, or its number if the output has no times."""
    seconds = [time for time in times if time is not None]
    if len(seconds) == len(times):
        return _sysstat.elapsed(seconds, [0] * len(seconds)), column("t")
    output.notes.append("Reports have no times (iostat -t), so t counts reports, not seconds.")
    numbers = [float(i) for i in range(len(times))] if len(times) > 1 else [1.0]
    return numbers, Column("reports", "number of the report, since the output has no times")


def _frames(output: Output, columns: dict[str, Column]) -> "dict[str, pd.DataFrame]":
    """The rows of each kind, by the number of their report. Adds the meanings to `columns`."""
    frames = {}
    for kind, section in output.sections.items():
        if section.rows:
            frame, meanings = (_devices if kind == "device" else _sysstat.shares)(section)
            frame.insert(0, kind, [row.key for row in section.rows])
            columns |= {kind: Column("-", KEYS[kind]), **meanings}
            frames[kind] = frame.set_axis([row.mark for row in section.rows])
    return frames


def _devices(section: Section) -> "tuple[pd.DataFrame, dict[str, Column]]":
    """What iostat says of devices, in units without prefixes."""
    import pandas as pd

    data, columns = {}, {}
    for name, values in section.frame().items():
        if name in FIGURES:
            called, unit, scale, meaning = FIGURES[name]
            data[called] = (values * scale).round(10)
            columns[called] = Column(unit, meaning)
    return pd.DataFrame(data, index=range(len(section.rows))), columns


def _samples(
    frames: "dict[str, pd.DataFrame]", columns: dict[str, Column], output: Output
) -> "pd.DataFrame | None":
    """A row for each report: shares of all processors, and figures of each device."""
    import pandas as pd

    parts = []
    if "cpu" in frames:
        parts.append(frames["cpu"].drop(columns="cpu"))
    if "device" in frames:
        parts.append(_wide(frames["device"], columns, output))
    samples = pd.concat(parts, axis=1).sort_index()
    if len(samples.columns):
        return samples
    output.notes.append("Neither shares of processors nor %util, r/s and w/s: so no samples.")
    return None


def _wide(frame: "pd.DataFrame", columns: dict[str, Column], output: Output) -> "pd.DataFrame":
    """Use, reads and writes of each device as columns, with a row for each report."""
    import numpy as np
    import pandas as pd

    reports, row = np.unique(frame.index, return_inverse=True)
    place, devices = pd.factorize(frame["device"])
    cells = len(reports) * len(devices)
    if cells > max(LARGEST, 2 * len(frame)):
        raise Malformed(0, f"{len(devices)} devices come and go, expected the same in each report")
    if "cpu" in devices:
        raise Malformed(0, "a device has the name cpu, expected the name of a disk")
    if len(frame) < cells:
        output.notes.append("Some devices are missing in some reports, with no figures there.")
    data = {}
    for name in (name for name in SAMPLED if name in frame):
        matrix = np.full((len(devices), len(reports)), np.nan)
        matrix[place, row] = frame[name]
        for device, values in zip(devices, matrix, strict=True):
            called = f"{name}_{device}"
            data[called] = values
            columns[called] = Column(columns[name].unit, f"{columns[name].meaning}, of {device}")
    return pd.DataFrame(data, index=reports)

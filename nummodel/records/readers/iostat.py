"""iostat of sysstat 8 to 12: processors, and devices with -x, as text or JSON.

The output with -h is not read. The first report is the average since boot, unless -y was given. The
output does not say whether it was, so the first report is left out wherever there are more.
Admitted with recordings of 12.6; older layouts are by hand.
"""

import re
from typing import TYPE_CHECKING, NamedTuple

from nummodel.records.readers import _sysstat
from nummodel.records.readers._output import are_figures, figures, take
from nummodel.records.readers._reading import Column, Malformed, Reading, column
from nummodel.records.readers._sysstat import USED, Output, Row, Section, second

if TYPE_CHECKING:
    import pandas as pd

#: Devices times reports, at most, unless each report has each device.
LARGEST = 1_000_000
#: With more reports than these, the last is cut if it lacks a device that all others have.
MANY = 3
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
    """Whether the text has a header of iostat, or is JSON of it."""
    return _sysstat.tool(text) == "iostat"


def parse(text: str) -> Reading:
    """A row for each row of all processors or of a device, and a sample for each report."""
    import pandas as pd

    output = Output(used=(*USED, *FIGURES))
    read = _json if text.lstrip().startswith("{") else _text
    reports = read(text, output)
    if not any(section.rows for section in output.sections.values()):
        raise Malformed(0, "no shares of processors and no devices, expected iostat -x 1")
    if len(reports) == 1:
        output.notes.append("The only report may be the average since boot, so it is no sample.")
    else:
        _leave_out(output, reports)
    t, meaning = _times(reports, output)
    columns = {"t": meaning}
    frames = _frames(output, columns)
    samples = _samples(frames, columns, output) if len(reports) > 1 else None
    table = pd.concat([*frames.values()]).sort_index(kind="stable")
    table = table.fillna({kind: "" for kind in frames})
    for whole in (table, samples):
        if whole is not None:
            whole.insert(0, "t", [t[mark] for mark in whole.index])
            whole.index = range(len(whole))
    return output.reading(table, columns, samples)


class Report(NamedTuple):
    """A report: its run, and its second of the day or None."""

    run: int
    time: int | None


def _text(text: str, output: Output) -> list[Report]:
    """Read the rows of a text, and return its reports."""
    lines = _Lines(output)
    output.notes += take(text, lines.head, lines.row, output.whole)
    found: list[set[str]] = [set() for _ in lines.reports]
    for kind, section in output.sections.items():
        for row in section.rows:
            # Devices may be missing in one report (-z), but not in the last of many only.
            found[row.mark].add(row.key if len(found) > MANY else kind)
    if len(found) > 1 and set.intersection(*found[:-1]) - found[-1]:
        for section in output.sections.values():
            section.rows = [row for row in section.rows if row.mark < len(found) - 1]
        output.notes.append("The last report is cut off and left out.")
        del lines.reports[-1]
    return lines.reports


class _Lines:
    """What was found so far: reports, and the section whose rows follow."""

    def __init__(self, output: Output) -> None:
        self.output = output
        self.reports: list[Report] = []
        #: Kinds of rows that the last report has, and the one that follows.
        self.kinds: set[str] = set()
        self.kind = ""
        self.time: int | None = None

    def head(self, line: str, cells: list[str], at: int) -> bool:
        """Take the banner of a run, the time of a report, or the names of its figures."""
        if cells[-1] == "Device" and len(cells) > 1:
            raise Malformed(at, "devices at the ends of lines, expected iostat without -h")
        banner = self.output.banner(line, at)
        stamp = STAMP.fullmatch(line.strip()) if len(line) < 60 else None
        if banner or stamp:
            self.kinds, self.kind = set(), ""
            self.time = second(stamp[1], at) if stamp else None
            return True
        if cells[0] not in KINDS:
            return False
        names = [name.lstrip("%") for name in cells[1:]]
        self.output.section(KINDS[cells[0]], names, at)
        self.kind = KINDS[cells[0]]
        self.output.width = max(self.output.width, len(line.rstrip()))
        if not self.kinds or self.kind in self.kinds:
            self.reports.append(Report(self.output.run, self.time))
            self.kinds, self.time = set(), None
        self.kinds.add(self.kind)
        return True

    def row(self, line: str, cells: list[str], at: int) -> bool:
        """Take the shares of processors, or the figures of a device."""
        if not self.kind:
            return False
        key, cells = ("all", cells) if self.kind == "cpu" else (cells[0], cells[1:])
        section = self.output.sections[self.kind]
        if len(cells) != len(section.names) and not are_figures(cells):
            return False
        row = figures(cells, section.names, at)
        section.rows.append(Row(self.output.run, len(self.reports) - 1, key, at, row))
        self.kind = "" if self.kind == "cpu" else self.kind
        return True


def _json(text: str, output: Output) -> list[Report]:
    """Read the rows of a JSON, and return its reports."""
    found: list[Report] = []
    reports = _sysstat.reports_of(text, output, {"timestamp", "avg-cpu", "disk"})
    for i, report in enumerate(reports):
        stamp = report.get("timestamp")
        clock = re.search(r"[T ]([0-9:]{8}( [AP]M)?)", str(stamp))
        time = None if stamp is None else second(clock[1] if clock else str(stamp), 0)
        found.append(Report(0, time))
        of_cpu = [report["avg-cpu"]] if "avg-cpu" in report else []
        for kind, rows in (("cpu", of_cpu), ("device", report.get("disk", []))):
            for row in _sysstat.cells_of(rows, kind):
                names = [name for name in row if name != "disk_device"]
                cells = figures([row[name] for name in names], names, 0)
                key = row.get("disk_device", "all")
                section = output.section(kind, names, 0)
                section.rows.append(Row(0, i, key, 0, cells))
    return found


def _leave_out(output: Output, reports: list[Report]) -> None:
    """Leave out the rows of the first report of each run."""
    firsts = {next(i for i, report in enumerate(reports) if report.run == run)
              for run in {report.run for report in reports}}  # fmt: skip
    for section in output.sections.values():
        section.rows = [row for row in section.rows if row.mark not in firsts]
    first = "first report is left out: it is since boot"
    if len(firsts) > 1:
        first = "first report of each run is left out: these are since boot"
    output.notes.append(f"The {first}, unless -y was given.")
    if not any(section.rows for section in output.sections.values()):
        raise Malformed(0, "only reports since boot have rows, expected a report after them")


def _times(reports: list[Report], output: Output) -> tuple[list[float], Column]:
    """The second of each report since the first, or its number if the output has no times."""
    timed = [(report.run, report.time, 0) for report in reports if report.time is not None]
    if len(timed) == len(reports):
        return _sysstat.elapsed(timed, {}), column("t")
    output.notes.append("Reports have no times (iostat -t), so t counts reports, not seconds.")
    numbers = [float(i) for i in range(len(reports))] if len(reports) > 1 else [1.0]
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

    parts = [frames["cpu"].drop(columns="cpu")] if "cpu" in frames else []
    devices = frames.get("device", pd.DataFrame())
    if len(devices):
        names, reports = devices["device"].nunique(), devices.index.nunique()
        if names * reports > max(LARGEST, 2 * len(devices)):
            raise Malformed(0, f"{names} devices come and go, expected the same in each report")
        if "cpu" in set(devices["device"]):
            raise Malformed(0, "a device has the name cpu, expected the name of a disk")
        if len(devices) < names * reports:
            output.notes.append("Some devices are missing in some reports, with no figures there.")
    for name in (name for name in SAMPLED if name in devices):
        wide = devices.set_index("device", append=True)[name]
        wide = wide[~wide.index.duplicated(keep="last")].unstack("device")
        parts.append(wide[[*dict.fromkeys(devices["device"])]].add_prefix(f"{name}_"))
        for device in wide:
            meaning = f"{columns[name].meaning}, of {device}"
            columns[f"{name}_{device}"] = Column(columns[name].unit, meaning)
    if parts:
        return pd.concat(parts, axis=1).sort_index()
    output.notes.append("Neither shares of processors nor %util, r/s and w/s: so no samples.")
    return None

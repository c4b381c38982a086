"""iostat of sysstat 8 to 12: processors, and devices with -x, as text or JSON.

The output with -h is not read. The first report is the average since boot, unless -y was given. The
output does not say whether it was, so the first report is left out wherever there are more.
Admitted with recordings of 12.6; older layouts are by hand.
"""

import re
from typing import ClassVar

from nummodel.records.readers._machine import PERCENT, PROCESSORS, Figure, Output, second
from nummodel.records.readers._machine_table import reading
from nummodel.records.readers._reading import Malformed, Reading

IOSTAT = re.compile(
    r"^[ \t]*(?:avg-cpu:[ \t]+%user|Device:?[ \t][^\n]*(?:%util|[ \t]tps[ \t])"
    r"|(?:r/s|tps) [^\n]* Device$)",
    re.M,
)
#: The line of a report with -t, such as 05/31/24 23:59:59, or 2024-05-31T23:59:59+0000.
STAMP = re.compile(
    r"(?:Time:\s*|\S*[0-9]\s+|[0-9]{4}-[0-9]{2}-[0-9]{2}T)"
    r"([0-9]{1,2}:[0-9]{2}:[0-9]{2}(?: [AP]M)?)(?:Z|[-+][0-9:]{2,6})?"
)
#: What rows are about, by the first word of their header.
KINDS = {"avg-cpu:": "cpu", "Device": "device", "Device:": "device"}
QUEUE = "mean number of requests, waiting or in service"
BYTES = "bytes read, written or discarded"
MERGED = "merged with others before they were issued"
MS, KIB, MIB, SECTOR = 1e-3, 1024, 1024**2, 512


def _requests(kind: str, r: str, done: str) -> tuple[Figure, ...]:
    """The columns of one kind of requests, printed with its letter and with what was done."""
    merged = f"{kind} requests {MERGED}"
    size = {f"{r}kB/s": KIB, f"{r}MB/s": MIB, f"{r}sec/s": SECTOR}
    size |= {f"kB_{done}/s": KIB, f"MB_{done}/s": MIB, f"Blk_{done}/s": SECTOR}
    waiting = f"mean time of a {kind} request, waiting included"
    return (
        Figure(f"{kind}s", "1/s", f"{kind} requests", {f"{r}/s": 1}),
        Figure(f"{kind}s_merged", "1/s", merged, {f"{r}rqm/s": 1}),
        Figure(f"{kind}s_merged_share", "-", f"share of {merged}", {f"{r}rqm": PERCENT}),
        Figure(f"{kind}_time", "s", waiting, {f"{r}_await": MS}),
        Figure(f"{kind}_size", "B", f"mean size of a {kind} request", {f"{r}areq-sz": KIB}),
        Figure(f"{kind}_bytes", "B/s", f"bytes of {kind} requests", size),
    )


DEVICES = (
    Figure("U", "-", "share of the time with at least one request", {"util": PERCENT}),
    Figure("queue", "-", QUEUE, {"aqu-sz": 1, "avgqu-sz": 1}),
    Figure("transfers", "1/s", "requests of all kinds", {"tps": 1}),
    *_requests("read", "r", "read"),
    *_requests("write", "w", "wrtn"),
    *_requests("discard", "d", "dscd"),
    Figure("merged", "1/s", f"requests {MERGED}", {"rqm/s": 1}),
    Figure("time", "s", "mean time of a request, waiting included", {"await": MS}),
    Figure("size", "B", "mean size of a request", {"areq-sz": KIB, "avgrq-sz": SECTOR}),
    Figure("bytes", "B/s", BYTES, {"kB/s": KIB, "MB/s": MIB, "sec/s": SECTOR}),
    Figure("flushes", "1/s", "flush requests", {"f/s": 1}),
    Figure("flush_time", "s", "mean time of a flush request, waiting included", {"f_await": MS}),
)


def recognises(text: str) -> bool:
    """Whether the text has a header of iostat, or is JSON of it."""
    if re.match(r'\s*\{\s*"sysstat"\s*:', text):
        return '"avg-cpu"' in text[:20_000] or '"disk_device"' in text[:20_000]
    return IOSTAT.search(text) is not None


def parse(text: str) -> Reading:
    """A row for each row of all processors or of a device, and a sample for each report. Raises
    Malformed.
    """
    lines = _Lines()
    lines.read(text, lines.head, lines.row)
    return reading(lines)


class _Lines(Output):
    """The reports of an output, and the section whose rows follow."""

    tool = "iostat"
    figures: ClassVar = {"cpu": PROCESSORS, "device": DEVICES}
    timed = "iostat -t prints them"
    expected = "no shares of processors and no devices, expected iostat -x 1"
    lists: ClassVar = {"avg-cpu": "cpu", "disk": "device"}
    #: The kind of the rows that follow, the kinds that the report has, and its time.
    kind = ""
    kinds: frozenset[str] = frozenset()
    time: int | None = None

    def head(self, line: str, cells: list[str], at: int) -> bool:
        """Take the banner of a run, the time of a report, or the names of its figures."""
        if cells[-1] == "Device" and len(cells) > 1:
            raise Malformed(at, "devices at the ends of lines, expected iostat without -h")
        stamp = STAMP.fullmatch(line.strip()) if len(line) < 60 else None
        if self.banner(line, at) or stamp:
            self.kind, self.kinds = "", frozenset()
            self.time = second(stamp[1], at) if stamp else None
            return True
        if cells[0] not in KINDS:
            return False
        kind = KINDS[cells[0]]
        self.section(kind, [name.lstrip("%") for name in cells[1:]], line, at)
        self.kind = kind
        if not self.kinds or self.kind in self.kinds:
            self.begin(self.time, at)
            self.kinds, self.time = frozenset(), None
        self.kinds |= {self.kind}
        return True

    def row(self, line: str, cells: list[str], at: int) -> bool:
        """Take the shares of processors, or the figures of a device."""
        if not self.kind:
            return False
        if self.kind == "device":
            return self.add("device", cells[0], self.printed("device", cells[1:], at))
        row = self.printed("cpu", cells, at)
        self.kind = "" if row else "cpu"
        return self.add("cpu", "all", row)

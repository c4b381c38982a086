"""Intel Memory Latency Checker 3.x: latencies and bandwidths of memory, by node and by load.

A megabyte has 1,000,000 bytes, as MLC prints above its bandwidths.
"""

import re
from collections import Counter
from itertools import pairwise
from typing import Any

from nummodel.records.readers._lines import scaled
from nummodel.records.readers._output import FIGURE, table_of, take
from nummodel.records.readers._reading import Column, Malformed, Reading

#: What is measured below a line that begins so, and the column of its figures.
SECTIONS = {
    "Measuring idle latencies": ("idle latency", "latency"),
    "Measuring idle latency": ("idle latency", "latency"),
    "Measuring Peak Injection Memory Bandwidths": ("peak injection bandwidth", "bandwidth"),
    "Measuring Maximum Memory Bandwidths": ("maximum bandwidth", "bandwidth"),
    "Measuring Memory Bandwidths between nodes": ("bandwidth between nodes", "bandwidth"),
    "Measuring Loaded Latencies": ("loaded latency", "load"),
    "Measuring cache-to-cache transfer latency": ("cache-to-cache latency", "latency"),
    "Remote Socket L2->L2": ("", "latency"),
}
LOAD_HEADER = ("Inject Latency Bandwidth", "Delay (ns) MB/sec")
BANNER = "Intel(R) Memory Latency Checker"
SETTINGS = (
    BANNER,
    "Command line parameters:",
    "Using ",
    "***",
    "Bandwidths are in MB/sec",
    "Will take several minutes",
)
ACCESS = re.compile(r"Measuring idle latenc(?:ies|y) for (\w{1,20} access)")
TRAFFIC = re.compile(r"Using (.{1,60}) traffic type\s*$")
MEGABYTE = re.compile(r"1 MB/sec = ([0-9,]{1,20}) Bytes/sec")
NODES = re.compile(r"(?:writer )?(?:numa node|socket)((?: [0-9]{1,9})+)", re.I)
TITLE = re.compile(r"(?:numa node|memory node|reader numa node|reader socket|=+)", re.I)
#: Rows: of one figure with its name, of loads, and of nodes.
ITERATION = re.compile(r"Each iteration took [0-9.]{1,20} [\w ]{1,30} clocks \( ?(\S{1,20}) ns\)")
LOCAL = re.compile(r"(Local Socket L2->L2 HITM?) latency (\S{1,20})")
MIX = re.compile(r"(\S.{0,60}?) ?: ?(\S{0,20}[0-9]\S{0,20})")
LOAD = re.compile(r"([0-9]{1,9}) (\S{1,20}) (\S{1,20})")
#: The last cell of a row of nodes.
DIAGONAL = re.compile(rf"-|{FIGURE.pattern}", re.ASCII)
WHOLE = re.compile(r"(\.[0-9]|-|\))\s*$")

COLUMNS = {
    "part": Column("-", "which of several outputs in the file, from 1 on"),
    "what": Column("-", "what MLC measured"),
    "traffic": Column("-", "kind of accesses, if MLC names it"),
    "from_node": Column("-", "node of the processors that read, or of the cache that wrote"),
    "to_node": Column("-", "node of the memory, or of the cache that read"),
    "delay": Column("-", "injection delay, as MLC counts it: less delay is more load"),
    "latency": Column("s", "mean time of an access"),
    "bandwidth": Column("B/s", "bytes that were transferred a second"),
}


def recognises(text: str) -> bool:
    """Whether a line is the head of MLC, or of one of its measurements."""
    begins = "|".join(re.escape(begin) for begin in (*SECTIONS, f"{BANNER} - v"))
    if re.search(rf"^[ \t]*(?:{begins})", text, re.M):
        return True
    lines = [" ".join(line.split()) for line in text[:20_000].split("\n")]
    return LOAD_HEADER in pairwise(lines)


def parse(text: str) -> Reading:
    """A row for each printed latency or bandwidth. Raises Malformed for lines not of MLC."""
    output = _Output()
    outside = take(text, output.head, output.row, lambda line: WHOLE.search(line[-9:]) is not None)
    told = [f"{what}: {n}." for what, n in output.left_out.items()]
    expected = "no figure, expected latencies or bandwidths of MLC"
    return table_of(output.rows, COLUMNS, told + outside, expected)


class _Output:
    """The figures of an output that is read line by line."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.left_out: Counter[str] = Counter()
        self.part = 0
        self.what, self.kind, self.traffic = "idle latency", "", ""
        self.nodes: list[int] = []

    def head(self, line: str, cells: list[str], at: int) -> bool:
        """Take the head of a measurement or of a matrix, or a setting."""
        text = " ".join(cells)
        if begin := next((b for b in SECTIONS if text.startswith(b)), ""):
            what, self.kind = SECTIONS[begin]
            access = ACCESS.match(text)
            self.what, self.nodes = what or text, []
            self.traffic = access[1] if access else ""
        elif text in LOAD_HEADER:
            # An excerpt may begin with the header of the table.
            self.what, self.kind, self.nodes = "loaded latency", "load", []
        elif text.startswith(SETTINGS):
            self._setting(text, at)
        elif found := NODES.fullmatch(text):
            self.nodes = [int(node) for node in found[1].split()]
        else:
            return TITLE.fullmatch(text) is not None
        return True

    def _setting(self, text: str, at: int) -> None:
        """A line about how MLC measures; the first of a run is its version."""
        if text.startswith(BANNER):
            self.part += 1
            self.what, self.kind, self.traffic, self.nodes = "idle latency", "", "", []
        if found := TRAFFIC.match(text):
            self.traffic = found[1]
        unit = MEGABYTE.search(text)
        if unit and unit[1] != "1,000,000":
            raise Malformed(at, f"1 MB/sec is {unit[1]} Bytes/sec, expected 1,000,000")
        self.left_out["Lines about settings, such as sizes of buffers, are left out"] += 1

    def row(self, line: str, cells: list[str], at: int) -> bool:
        """Take a line of figures. Raises Malformed if it is not as it should be."""
        text = " ".join(cells)
        if found := ITERATION.match(text):
            self._add(at, latency=found[1])
            self.left_out["Latencies in clocks are left out"] += 1
        elif found := LOCAL.fullmatch(text):
            self._add(at, what=f"{found[1]} latency", latency=found[2])
        elif self.kind == "load" and (found := LOAD.fullmatch(text)):
            self._add(at, delay=int(found[1]), latency=found[2], bandwidth=found[3])
        elif self.kind == "bandwidth" and not self.nodes and (found := MIX.fullmatch(text)):
            self._add(at, traffic=found[1], bandwidth=found[2])
        elif self.nodes and len(cells) == len(self.nodes) + 1 and DIAGONAL.fullmatch(cells[-1]):
            self._matrix_row(cells, at)
        elif self.kind and FIGURE.fullmatch(cells[0]):
            wanted = f"a node and {len(self.nodes)} figures" if self.nodes else "three figures"
            raise Malformed(at, f"{len(cells)} cells, expected {wanted} of the {self.what}")
        else:
            return False
        return True

    def _matrix_row(self, cells: list[str], at: int) -> None:
        """The figures of one node."""
        if not re.fullmatch("[0-9]{1,9}", cells[0], re.ASCII):
            raise Malformed(at, f"{cells[0][:40]!r}, expected the number of a node")
        figures = [(to, cell) for to, cell in zip(self.nodes, cells[1:], strict=True)]
        for _, cell in figures:
            scaled(cell.replace("-", "0"), 0, at, self.kind)
        for to, cell in figures:
            if cell == "-":
                self.left_out["Pairs of nodes without a figure (-)"] += 1
            else:
                self._add(at, from_node=int(cells[0]), to_node=to, **{self.kind: cell})

    def _add(self, at: int, **cells: Any) -> None:
        """A row of the table: ns and MB/s in SI units. Raises Malformed."""
        for name, power in (("latency", -9), ("bandwidth", 6)):
            if name in cells:
                cells[name] = scaled(cells[name], power, at, name)
        begin = {"part": max(1, self.part), "what": self.what, "traffic": self.traffic}
        self.rows.append(begin | cells)

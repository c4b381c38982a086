"""Intel Memory Latency Checker 3.x: latencies and bandwidths of memory, by node and by load.

A megabyte has 1,000,000 bytes, as MLC prints above its bandwidths.
"""

import re
from collections import Counter
from itertools import pairwise
from typing import Any

from nummodel.records.readers._lines import scaled
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
SETTINGS = (
    "Intel(R) Memory Latency Checker",
    "Command line parameters:",
    "Using ",
    "***",
    "Bandwidths are in MB/sec",
    "Will take several minutes",
)
ACCESS = re.compile(r"Measuring idle latenc(?:ies|y) for (\w{1,20} access)")
TRAFFIC = re.compile(r"Using (.{1,60}) traffic type\s*$")
MEGABYTE = re.compile(r"1 MB/sec = ([0-9,]{1,20}) Bytes/sec")
ITERATION = re.compile(
    r"Each iteration took [0-9.]{1,20} [\w ]{1,30} clocks \(\s*(\S{1,20})\s+ns\)"
)
TITLE = re.compile(r"\s*(numa node|memory node|reader numa node|reader socket)\s*", re.I)
HEADER = re.compile(
    r"\s*(?:numa node|socket|writer numa node|writer socket)((?:\s+[0-9]{1,9})+)\s*", re.I
)
LOCAL = re.compile(r"(Local Socket L2->L2 HITM?)\s+latency\s+(\S+)\s*")
REMARK = re.compile(r"\s*([#$]|\[?[^\s@]{1,80}@\S|.{0,200}?[#$] )")
LOAD = ["Inject Latency Bandwidth", "Delay (ns) MB/sec"]

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
    if "Intel(R) Memory Latency Checker - v" in text:
        return True
    begins = "|".join(re.escape(begin) for begin in SECTIONS)
    if re.search(rf"^[ \t]*({begins})", text, re.M):
        return True
    lines = [" ".join(line.split()) for line in text[:20_000].split("\n")]
    return any(pair == LOAD for pair in map(list, pairwise(lines)))


def parse(text: str) -> Reading:
    """A row for each printed latency or bandwidth. Raises Malformed for lines not of MLC."""
    import pandas as pd

    output = _Output()
    lines = text.split("\n")
    cut = False
    for line, printed in enumerate(lines, 1):
        last = line == len(lines) and bool(printed.strip())
        before = len(output.rows)
        try:
            output.read(printed, line)
        except Malformed:
            if not last or not output.rows:
                raise
            cut = True
        if last and len(output.rows) > before and not output.is_whole(printed):
            del output.rows[before:]
            cut = True
    if not output.rows:
        raise Malformed(0, "no figure, expected latencies or bandwidths of MLC")
    table = pd.DataFrame(output.rows)
    table["part"] = table["part"].clip(lower=1)
    used = [n for n in COLUMNS if n in table and (n != "part" or table[n].nunique() > 1)]
    told = [f"{what}: {n}." for what, n in output.left_out.items()]
    told += ["The last line is cut off and left out."] * cut
    return Reading(table[used], {n: COLUMNS[n] for n in used}, tuple(told))


class _Output:
    """The figures of an output that is read line by line."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.left_out: Counter[str] = Counter()
        self.part = 0
        self.what = self.kind = self.traffic = ""
        self.nodes: list[int] = []
        self.decimals: dict[str, int] = {}
        self.figure = ""

    def read(self, line: str, at: int) -> None:
        """Take a line. Raises Malformed for what is not of MLC."""
        text = " ".join(line.split())
        begin = next((b for b in SECTIONS if text.startswith(b)), "")
        if begin:
            self._section(begin, text)
        elif text.startswith(SETTINGS):
            self._setting(text, at)
        elif found := HEADER.fullmatch(line):
            self.nodes = [int(node) for node in found[1].split()]
        elif not text or TITLE.fullmatch(line) or not text.strip("="):
            pass
        elif text in LOAD:
            # An excerpt may begin with the header of the table.
            self.what, self.kind = "loaded latency", "load"
        elif found := ITERATION.match(text):
            self._add(at, latency=found[1])
            self.left_out["Latencies in clocks are left out"] += 1
        elif not self._figures(line, at):
            self._remark(line, at)

    def is_whole(self, line: str) -> bool:
        """Whether the last line ends with as many decimals as the figures before."""
        wanted = self.decimals.get(self.figure, 1)
        return line.rstrip().endswith(("-", ")")) or _decimals(line.rstrip()) >= wanted

    def _section(self, begin: str, text: str) -> None:
        """A new measurement."""
        what, self.kind = SECTIONS[begin]
        access = ACCESS.match(text)
        self.what, self.nodes = what or text, []
        self.traffic = access[1] if access else ""
        self.decimals = {}

    def _setting(self, text: str, at: int) -> None:
        """A line about how MLC measures."""
        self.part += text.startswith(SETTINGS[0])
        if found := TRAFFIC.match(text):
            self.traffic = found[1]
        unit = MEGABYTE.search(text)
        if unit and unit[1] != "1,000,000":
            raise Malformed(at, f"1 MB/sec is {unit[1]} Bytes/sec, expected 1,000,000")
        self.left_out["Lines about settings, such as sizes of buffers, are left out"] += 1

    def _figures(self, line: str, at: int) -> bool:
        """Take a line of figures, if it is one. Raises Malformed if it is not as it should be."""
        cells = line.split()
        if found := LOCAL.fullmatch(line.strip()):
            self._add(at, what=f"{found[1]} latency", latency=found[2])
        elif self.kind == "load" and re.fullmatch("[0-9]{1,9}", cells[0], re.ASCII):
            if len(cells) != 3:
                raise Malformed(at, f"{len(cells)} cells, expected delay, latency and bandwidth")
            self._add(at, delay=int(cells[0]), latency=cells[1], bandwidth=cells[2])
        elif self.kind == "bandwidth" and ":" in line.rstrip()[:-1] and not self.nodes:
            name, _, cell = line.rpartition(":")
            self._add(at, traffic=" ".join(name.split()), bandwidth=cell.strip())
        elif self.nodes and re.fullmatch("[0-9]{1,9}", cells[0], re.ASCII):
            self._matrix_row(cells, at)
        else:
            return False
        return True

    def _matrix_row(self, cells: list[str], at: int) -> None:
        """The figures of one node."""
        if len(cells) != len(self.nodes) + 1:
            wanted = f"a node and {len(self.nodes)} figures"
            raise Malformed(at, f"{len(cells)} cells, expected {wanted}")
        nodes = [(int(cells[0]), to) for to in self.nodes]
        added = len(self.rows)
        try:
            for (here, there), cell in zip(nodes, cells[1:], strict=True):
                if cell == "-":
                    self.left_out["Pairs of nodes without a figure (-)"] += 1
                else:
                    self._add(at, from_node=here, to_node=there, **{self.kind: cell})
        except Malformed:
            del self.rows[added:]
            raise

    def _add(self, at: int, **cells: Any) -> None:
        """A row of the table: ns and MB/s in SI units. Raises Malformed."""
        row = {"part": self.part, "what": self.what or "idle latency", "traffic": self.traffic}
        row |= cells
        for name, power in (("latency", -9), ("bandwidth", 6)):
            if name in cells:
                row[name] = scaled(cells[name], power, at, name)
                wanted = self.decimals.get(name, 1)
                self.decimals[name] = max(wanted, _decimals(cells[name]))
                self.figure = name
        self.rows.append(row)

    def _remark(self, line: str, at: int) -> None:
        """A line that MLC did not print ends a measurement."""
        if self.kind and not REMARK.match(line):
            raise Malformed(at, f"{line.strip()[:60]!r}, expected figures of the {self.what}")
        cells = line.split()
        if len(cells) > 1 and all(re.fullmatch(r"[0-9.]{1,20}|-", cell) for cell in cells):
            raise Malformed(at, "figures without a header above, expected a measurement of MLC")
        self.kind, self.nodes = "", []
        self.left_out["Lines outside of the output, such as commands, are left out"] += 1


def _decimals(figure: str) -> int:
    """Digits at the end, after a point."""
    end = figure[-20:].rpartition(".")
    return len(end[2]) if end[1] and end[2].isdigit() else 0

"""Intel Memory Latency Checker 3.x: latencies and bandwidths of memory, by node and by load.

A megabyte has 1,000,000 bytes, as MLC prints above its bandwidths.
"""

import re
from typing import Any

from nummodel.records.readers._lines import scaled
from nummodel.records.readers._output import FIGURE
from nummodel.records.readers._printed import Head, Printed, Seen
from nummodel.records.readers._reading import Column, Malformed, Reading

BANNER = r"Intel\(R\) Memory Latency Checker"
IDLE = {"what": "idle latency", "kind": "latency", "traffic": "", "nodes": ""}
#: What is measured below a line that begins so.
SECTIONS = {
    r"Measuring idle latenc(?:ies|y)(?: for (?P<traffic>\w{1,20} access))?": IDLE,
    **{
        begin: IDLE | {"what": what, "kind": kind}
        for begin, what, kind in (
            ("Measuring Peak Injection Memory Band", "peak injection bandwidth", "bandwidth"),
            ("Measuring Maximum Memory Bandwidths", "maximum bandwidth", "bandwidth"),
            ("Measuring Memory Bandwidths between", "bandwidth between nodes", "bandwidth"),
            ("Measuring Loaded Latencies", "loaded latency", "load"),
            ("Measuring cache-to-cache transfer", "cache-to-cache latency", "latency"),
            (r"(?P<what>Remote Socket L2->L2.*)", "", "latency"),
        )
    },
}
#: The last cell of a row of nodes.
LAST = re.compile(rf"-|{FIGURE.pattern}", re.ASCII)
SETTINGS = "Lines about settings, such as sizes of buffers, are left out"
#: Rows of a kind, or of any: of one figure with its name, and of loads.
ROWS = (
    ("", r"Each iteration took [0-9.]{1,20} [\w ]{1,30} clocks \( ?(?P<latency>\S{1,20}) ns\)"),
    ("", r"(?P<what>Local Socket L2->L2 HITM? latency) (?P<latency>\S{1,20})$"),
    ("load", r"(?P<delay>[0-9]{1,9}) (?P<latency>\S{1,20}) (?P<bandwidth>\S{1,20})$"),
    ("bandwidth", r"(?P<traffic>\S.{0,60}?) ?: ?(?P<bandwidth>\S{0,20}[0-9]\S{0,20})$"),
)
COLUMNS = {
    "what": Column("-", "what MLC measured"),
    "traffic": Column("-", "kind of accesses, if MLC names it"),
    "from_node": Column("-", "node of the processors that read, or of the cache that wrote"),
    "to_node": Column("-", "node of the memory, or of the cache that read"),
    "delay": Column("-", "injection delay, as MLC counts it: less delay is more load"),
    "latency": Column("s", "mean time of an access"),
    "bandwidth": Column("B/s", "bytes that were transferred a second"),
}


def _row(seen: Seen, line: str, at: int) -> list[dict[str, Any]] | None:
    """The figures of a line. Raises Malformed."""
    cells, kind = line.split(), seen.said.get("kind", "")
    nodes = seen.said.get("nodes", "").split()
    kinds = ("",) if nodes else ("", kind)
    for of, row in ROWS:
        if of in kinds and (found := re.match(row, " ".join(cells))):
            return [_figures(seen, found.groupdict(), at)]
    if nodes and len(cells) == len(nodes) + 1 and LAST.fullmatch(cells[-1]):
        seen.left_out["Pairs of nodes without a figure (-)"] += cells.count("-")
        pairs = zip(nodes, cells[1:], strict=True)
        return [
            _figures(seen, {"from_node": cells[0], "to_node": node, kind: cell}, at)
            for node, cell in pairs
            if cell != "-"
        ]
    if kind and FIGURE.fullmatch(cells[0]):
        raise Malformed(at, f"{len(cells)} cells, expected a row of the {seen.said['what']}")
    return None


def _figures(seen: Seen, cells: dict[str, str], at: int) -> dict[str, Any]:
    """The figures of a row in SI units, beside what they are. Raises Malformed."""
    row: dict[str, Any] = {n: seen.said.get(n, IDLE[n]) for n in ("what", "traffic")} | cells
    for name, power in (("latency", -9), ("bandwidth", 6)):
        if name in cells:
            row[name] = scaled(cells[name], power, at, name)
    for name in ("from_node", "to_node", "delay"):
        if name in cells:
            if not re.fullmatch("[0-9]{1,9}", cells[name], re.ASCII):
                raise Malformed(at, f"{cells[name][:40]!r}, expected the number of a node")
            row[name] = int(cells[name])
    return row


MLC = Printed(
    known=(
        *(rf"^[ \t]*(?:{begin})" for begin in (*SECTIONS, f"{BANNER} - v")),
        r"^[ \t]*Inject\s+Latency\s+Bandwidth\s+Delay\s+\(ns\)\s+MB/sec",
    ),
    heads=(
        Head(BANNER, SETTINGS, IDLE | {"kind": ""}, begins=True),
        *(Head(begin, says=says) for begin, says in SECTIONS.items()),
        # An excerpt may begin with the header of the table.
        Head(
            r"(?:Inject\s+Latency\s+Bandwidth|Delay\s+\(ns\)\s+MB/sec)$",
            says={"what": "loaded latency", "kind": "load", "nodes": ""},
        ),
        Head(
            r"Using (?:(?P<traffic>.{1,60}) traffic type$)?|Command line parameters:|\*\*\*"
            "|Bandwidths are in MB/sec|Will take several minutes",
            SETTINGS,
        ),
        Head(r"(?i:(?:writer )?(?:numa node|socket)(?P<nodes>(?:\s+[0-9]{1,9})+)$)"),
        Head(r"(?i:(?:numa node|memory node|reader numa node|reader socket|=+)$)"),
    ),
    row=_row,
    columns=COLUMNS,
    whole=lambda _, line: re.search(r"(\.[0-9]|-|\))$", line[-9:]) is not None,
    expected="no figure, expected latencies or bandwidths of MLC",
)
recognises = MLC.recognises


def parse(text: str) -> Reading:
    """A row for each printed latency or bandwidth. Raises Malformed for lines not of MLC."""
    unit = re.search("1 MB/sec = (?!1,000,000 )[0-9,]{1,20} Bytes/sec", text)
    if unit:
        at = text.count("\n", 0, unit.start()) + 1
        raise Malformed(at, f"{unit[0]}, expected 1,000,000")
    return MLC.parse(text)

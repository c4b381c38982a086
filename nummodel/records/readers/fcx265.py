"""z/VM Performance Toolkit FCX265, LOCKLOG: spin locks of the hypervisor by time.

Admitted with the layouts of two releases: of z/VM 5.3, as its performance report quotes the screen
("Spin Lock Activity"), and of z/VM 7.3, as its documentation shows it ("Spin Lock Collision
Activity"). Other layouts are refused.
"""

import re
from typing import Any

from nummodel.records.readers._lines import scaled
from nummodel.records.readers._printed import Head, Printed, Seen
from nummodel.records.readers._reading import Column, Malformed

TIME = re.compile(r">>Mean>>|[0-9]{1,2}:[0-9]{2}:[0-9]{2}", re.ASCII)
#: Each kind of figure: its power of ten, unit and meaning. The last is there since release 6.
FIGURES = {
    "rate": (0, "1/s", "acquisitions that had to spin"),
    "spin": (-6, "s", "mean spinning time of those that had to spin"),
    "share": (-2, "-", "share of processor time spent spinning"),
    "cads": (0, "1/s", "compare-and-delay instructions while spinning"),
}
KINDS = {
    "total": "exclusive and shared",
    "exclusive": "exclusive only",
    "shared": "shared only",
}
COLUMNS = {
    "end": Column("-", "end of the interval, time of day; >>Mean>> over all intervals"),
    "lock": Column("-", "name of the spin lock"),
} | {
    f"{kind}_{name}": Column(unit, f"{meaning}, {words}")
    for kind, words in KINDS.items()
    for name, (_, unit, meaning) in FIGURES.items()
}


def _row(seen: Seen, line: str, at: int) -> list[dict[str, Any]] | None:
    """The figures of a lock: in total, exclusive and shared. Raises Malformed."""
    end, *cells = line.split()
    if not TIME.fullmatch(end) or "names" not in seen.said:
        return None
    if "title" not in seen.said:
        raise Malformed(at, "no title above, expected 'Spin Lock Activity'")
    names = [*FIGURES][: 4 if "Collision" in seen.said["title"] else 3]
    columns = [(f"{kind}_{name}", FIGURES[name][0]) for kind in KINDS for name in names]
    if len(cells) != 1 + len(columns):
        expected = f"an interval, a lock and {len(columns)} figures"
        raise Malformed(at, f"{1 + len(cells)} cells, expected {expected}")
    seen.often[end, cells[0]] += 1
    row: dict[str, Any] = {"part": seen.often[end, cells[0]], "end": end, "lock": cells[0]}
    for (column, power), cell in zip(columns, cells[1:], strict=True):
        # The toolkit prints no 0 before the point.
        row[column] = scaled(re.sub(r"^\.", "0.", cell), power, at, column.replace("_", " "))
    return [row]


FCX265 = Printed(
    known=("FCX265 ", "<------- Spin Lock"),
    heads=(
        Head(r"1?\s{0,8}FCX265 ", "Headings of the screen are left out"),
        Head(r".*(?P<title>Spin Lock .*Activity)"),
        Head(r"(?P<names>End Time\s.*)"),
        Head(r".*(?:<-----|Spin Lock Log)|_+$|Interval  +\S"),
    ),
    row=_row,
    columns=COLUMNS,
    whole=lambda seen, line: len(line) >= len(seen.said.get("names", "")),
    expected="no row of a lock, expected the screen FCX265",
)
recognises, parse = FCX265.recognises, FCX265.parse

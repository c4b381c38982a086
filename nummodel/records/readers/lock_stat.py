"""/proc/lock_stat of Linux, versions 0.2 to 0.4, or rows of it without the header.

Version 0.4 has the mean waiting and holding times; none are derived for older versions. Admitted
with published outputs of 0.3 and 0.4; none of 0.2 was at hand.
"""

import re
from typing import Any

from nummodel.records.readers._lines import scaled
from nummodel.records.readers._printed import Head, Printed, Seen
from nummodel.records.readers._reading import Column

FIGURES = {
    "con_bounces": Column("-", "contentions that involved data of another processor"),
    "contentions": Column("-", "acquisitions that had to wait"),
    "waittime_min": Column("s", "shortest waiting time that is not 0"),
    "waittime_max": Column("s", "longest waiting time"),
    "waittime_total": Column("s", "sum of the waiting times"),
    "waittime_avg": Column("s", "mean waiting time of those that had to wait"),
    "acq_bounces": Column("-", "acquisitions that involved data of another processor"),
    "acquisitions": Column("-", "times that the lock was taken"),
    "holdtime_min": Column("s", "shortest holding time that is not 0"),
    "holdtime_max": Column("s", "longest holding time"),
    "holdtime_total": Column("s", "sum of the holding times"),
    "holdtime_avg": Column("s", "mean holding time"),
}
COLUMNS = {
    "lock": Column("-", "class of locks"),
    "mode": Column("-", "R for readers, W for writers, else empty"),
} | FIGURES
#: Names are aligned to the right; they may have colons and blanks in them.
LOCK = r"[ \t]*(?P<lock>\S.{0,200}?)(?:-(?P<mode>[RW]))?:"
KINDS = {
    name: "[0-9]{1,18}" + r"\.[0-9]{2}" * (column.unit == "s") for name, column in FIGURES.items()
}
CELLS = {name: rf"[ \t]+(?P<{name}>{kind})" for name, kind in KINDS.items()}
WITHOUT_MEANS = [cell for name, cell in CELLS.items() if not name.endswith("avg")]
ROWS = [LOCK + "".join(cells) + r"[ \t]*$" for cells in (CELLS.values(), WITHOUT_MEANS)]
HEADER = r"(?:lock_stat version 0\.|class name\s+con-bounces\s)"


def _row(seen: Seen, line: str, at: int) -> list[dict[str, Any]] | None:
    """The figures of a lock: counts, and microseconds in seconds."""
    if not (found := next(filter(None, (re.match(row, line, re.ASCII) for row in ROWS)), None)):
        return None
    cells = found.groupdict("")
    lock = {"lock": cells.pop("lock"), "mode": cells.pop("mode")}
    return [lock | {n: scaled(c, -6, at, n) if "." in c else int(c) for n, c in cells.items()}]


LOCK_STAT = Printed(
    known=(rf"^[ \t#]*{HEADER}", *(f"^{row}" for row in ROWS)),
    heads=(
        Head(HEADER, begins=True),
        Head(r"(?:-{3,}|\.{3,})$"),
        Head(r"\*WARNING\*", "Warnings of the kernel are left out"),
        Head(r"[^\[]*?\s[0-9]+\s*\[<", "Contention points are left out"),
    ),
    row=_row,
    columns=COLUMNS,
    whole=lambda _, line: re.search(r"\.[0-9]{2}$", line[-9:]) is not None,
    expected="no lock, expected rows such as 'unix_table_lock: 110 112 0.21 ...'",
)
recognises, parse = LOCK_STAT.recognises, LOCK_STAT.parse

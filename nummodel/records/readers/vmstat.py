"""vmstat of procps 3 and 4 with a delay, also with -w, -t, -n, -S, -a or -y.

The first row is the average since boot, unless -y was given. The output does not say whether it
was, so the first row is left out wherever there are more. The other modes (-d, -D, -f, -m, -p and
-s) are not read. Admitted with recordings of procps 4; layouts of procps 3 are by hand.
"""

import re
from datetime import datetime
from typing import TYPE_CHECKING

from nummodel.records.readers._reading import Column, Malformed, Reading, column, number

if TYPE_CHECKING:
    import pandas as pd

#: Names in the header that every version for Linux prints; other systems have no swpd or wa.
EXPECTED = ("r", "b", "swpd", "in", "cs", "us", "sy", "id", "wa")
#: Columns that are read, by their names in the header.
READ = {
    "r": ("runnable", Column("-", "threads that run or wait for a processor")),
    "b": ("blocked", Column("-", "threads that wait for a disk")),
    "cs": ("switches", Column("1/s", "context switches")),
    "in": ("interrupts", Column("1/s", "interrupts, the clock included")),
    "us": ("user", column("user")),
    "sy": ("system", column("system")),
    "id": ("idle", column("idle")),
    "wa": ("iowait", column("iowait")),
    "st": ("steal", column("steal")),
    "gu": ("guest", Column("-", "share of processor time for guests, not included in user")),
}
SHARES = ("us", "sy", "id", "wa", "st", "gu")
STAMP = re.compile(r"\s([0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2})(\s+\S+)?\s*$")
HEADER = re.compile(r"^[ \t]*r[ \t]+b[ \t]+swpd[ \t][^\n]*[ \t]us[ \t]+sy[ \t]+id[ \t]", re.M)
#: Percentages are rounded to whole numbers, so that six of them may add up to 103.
TOTAL = 103


def recognises(text: str) -> bool:
    """Whether the text has a header of vmstat near its beginning."""
    return HEADER.search(text[:20_000]) is not None


def parse(text: str) -> Reading:
    """One row of means, and a sample for each row but the first. Raises Malformed."""
    rows = _Rows()
    lines = text.rstrip().split("\n")
    for i, line in enumerate(lines, 1):
        rows.add(line.rstrip(), i, last=i == len(lines), ended=i < len(lines) or text[-1:] == "\n")
    return rows.reading()


class _Rows:
    """The rows of an output, read line by line."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.shares: list[int] = []
        self.width = 0
        self.figures: list[list[float]] = []
        self.times: list[datetime] = []
        self.left_out: list[str] = []

    def add(self, line: str, where: int, last: bool, ended: bool) -> None:
        """Read a line. The `last` line may be cut, all the more if no line end has `ended` it."""
        if not line or line.lstrip("-").startswith("procs"):
            return
        if line.split()[:2] == ["r", "b"]:
            if not (last and self.names):
                self.header(line, where)
            return
        if not self.names:
            raise Malformed(where, "no header yet, expected the names r, b, swpd and others")
        if last and self.is_cut(line, ended):
            self.left_out.append("The last line is cut off and left out.")
            return
        self.row(line, where)

    def is_cut(self, line: str, ended: bool) -> bool:
        """Whether the last line has too few figures, or no line end and less than its header."""
        cells = _without_stamp(line)[0].split()
        return len(cells) < len(self.names) or (not ended and len(line) < self.width)

    def header(self, line: str, where: int) -> None:
        """The names of the columns. The last may be the time zone, such as UTC or +03."""
        names = line.split()
        if not (names[-1].isalpha() and names[-1].islower()):
            del names[-1]
        if missing := [name for name in EXPECTED if name not in names]:
            raise Malformed(
                where, f"a header without {', '.join(missing)}, expected that of vmstat"
            )
        if len(set(names)) < len(names) or names != (self.names or names):
            raise Malformed(where, "another header than before, expected the output of one run")
        self.names, self.width = names, len(line)
        self.shares = [i for i, name in enumerate(names) if name in SHARES]

    def row(self, line: str, where: int) -> None:
        """The figures and the time of a row."""
        rest, stamp = _without_stamp(line)
        cells = rest.split()
        if len(cells) != len(self.names):
            wrong = f"{len(cells)} figures, expected {len(self.names)} as in the header"
            raise Malformed(where, wrong)
        if all(map(str.isdigit, cells)) and len(rest) < 400 and rest.isascii():
            figures = list(map(float, cells))  # as almost always, and ten times as fast
        else:
            named = zip(cells, self.names, strict=True)
            figures = [number(cell, where, name) for cell, name in named]
        total = sum(figures[i] for i in self.shares)
        if total > TOTAL:
            raise Malformed(where, f"shares add up to {total:g} %, expected 100 %")
        if bool(stamp) != bool(self.times) and self.figures:
            raise Malformed(where, "only some rows have a time, expected all or none")
        if stamp:
            self.times.append(_time(stamp, where, self.times))
        self.figures.append(figures)

    def reading(self) -> Reading:
        """What the rows say."""
        if not self.names:
            modes = "-d, -D, -f, -m, -p and -s are not read"
            raise Malformed(0, f"no header with {', '.join(EXPECTED)}, expected vmstat 1 ({modes})")
        if not self.figures:
            raise Malformed(0, "a header only, expected rows of figures")
        alone = len(self.figures) == 1
        if alone:
            self.left_out.append("The only row may be the average since boot, so it is no sample.")
        else:
            self.left_out.append(
                "The first row is left out: it is since boot, unless -y was given."
            )
        if skipped := [name for name in self.names if name not in READ]:
            self.left_out.append(f"Columns left out: {', '.join(skipped)}.")
        frame, columns = self.frame(self.figures if alone else self.figures[1:])
        table = frame.mean().round(10).to_frame().T
        if alone:
            return Reading(table, columns, tuple(self.left_out))
        if self.times:
            t = [(time - self.times[0]).total_seconds() for time in self.times[1:]]
            columns = {"t": column("t"), **columns}
        else:
            t = [float(i) for i in range(1, len(frame) + 1)]
            meaning = "number of the row, since the interval between rows is not printed"
            columns = {"t": Column("rows", meaning), **columns}
            self.left_out.append("Rows have no times (vmstat -t), so t counts rows, not seconds.")
        frame.insert(0, "t", t)
        return Reading(table, columns, tuple(self.left_out), frame)

    def frame(self, figures: list[list[float]]) -> "tuple[pd.DataFrame, dict[str, Column]]":
        """The columns of some rows, with the share of processors in use, and their meanings."""
        import pandas as pd

        by_name = dict(zip(self.names, zip(*figures, strict=True), strict=True))
        used = zip(*(by_name[name] for name in ("us", "sy", "gu") if name in by_name), strict=True)
        data = {"U_cpu": [min(1.0, round(sum(row) / 100, 10)) for row in used]}
        columns = {"U_cpu": column("U_cpu")}
        for name, (called, meaning) in READ.items():
            if name in by_name:
                values = list(by_name[name])
                data[called] = [round(v / 100, 10) for v in values] if name in SHARES else values
                columns[called] = meaning
        return pd.DataFrame(data), columns


def _without_stamp(line: str) -> tuple[str, str]:
    """A row without its time, and the time, or ""."""
    # Rows without a time have no colon: they need no search.
    stamp = STAMP.search(line, max(0, len(line) - 60)) if ":" in line[-30:] else None
    return (line[: stamp.start()], stamp[1]) if stamp else (line, "")


def _time(stamp: str, where: int, before: list[datetime]) -> datetime:
    """The time of a row. Raises Malformed for no time, or one before the last."""
    try:
        time = datetime.fromisoformat(stamp)
    except ValueError:
        raise Malformed(
            where, f"the time is {stamp!r}, expected such as 2024-05-31 23:59:59"
        ) from None
    if before and time < before[-1]:
        raise Malformed(where, f"the time goes back to {stamp}, expected rows in order")
    return time

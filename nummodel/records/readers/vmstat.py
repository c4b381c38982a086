"""vmstat of procps 3 and 4 with a delay, also with -w, -t, -n, -S, -a or -y.

The first row of a run is the average since boot, unless -y was given. The output does not say
whether it was, so the first row of each run is left out wherever there are more. The other modes
(-d, -D, -f, -m, -p and -s) are not read. Admitted with recordings of procps 4; layouts of procps 3
are by hand.
"""

import re
from datetime import datetime
from typing import TYPE_CHECKING

from nummodel.records.readers._output import are_figures, figures, take
from nummodel.records.readers._reading import Column, Malformed, Reading, column

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
ROWS = Column("rows", "number of the row, since the interval between rows is not printed")
#: Percentages are rounded to whole numbers, so that six of them may add up to 103.
TOTAL = 103
#: In one run, vmstat prints the header again when a window is full: below more rows than these.
WINDOW = 9


def recognises(text: str) -> bool:
    """Whether the text has a header of vmstat."""
    return HEADER.search(text) is not None


def parse(text: str) -> Reading:
    """One row of means, and a sample for each row but the first of each run. Raises Malformed."""
    output = _Runs()
    told = take(text, output.head, output.row, lambda line: len(line.rstrip()) >= output.width)
    return output.reading(told)


class _Runs:
    """The rows of an output by runs, each as its figures and its time."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.shares: list[int] = []
        self.width = 0
        self.runs: list[list[tuple[list[float], datetime | None]]] = []
        self.blocks: list[int] = []
        self.last, self.apart = 0, False

    def head(self, line: str, cells: list[str], at: int) -> bool:
        """Take the names of the columns, or of their groups. The last may be the time zone."""
        groups = cells[0].lstrip("-").startswith("procs")
        if not groups and cells[:2] != ["r", "b"]:
            return False
        self.apart |= at > self.last + 1
        self.last = at
        if not groups:
            zone = not (cells[-1].isalpha() and cells[-1].islower())
            self._names(cells[:-1] if zone else cells, at)
            self.width = len(line.rstrip())
            if self.apart or not self.blocks or not WINDOW < self.blocks[-1] == self.blocks[0]:
                self._begin()
            self.blocks.append(0)
        return True

    def _names(self, names: list[str], at: int) -> None:
        if missing := [name for name in EXPECTED if name not in names]:
            raise Malformed(at, f"a header without {', '.join(missing)}, expected that of vmstat")
        if len(set(names)) < len(names) or names != (self.names or names):
            raise Malformed(at, "another header than before, expected the output of one run")
        self.names = names
        self.shares = [i for i, name in enumerate(names) if name in SHARES]

    def _begin(self) -> None:
        """A new run begins, unless the last one has no row."""
        self.blocks, self.apart = [], False
        if not self.runs or self.runs[-1]:
            self.runs.append([])

    def row(self, line: str, cells: list[str], at: int) -> bool:
        """Take the figures and the time of a row."""
        if not self.names:
            return False
        # Rows without a time have no colon: they need no search.
        stamp = STAMP.search(line, max(0, len(line) - 60)) if ":" in line[-30:] else None
        cells = line[: stamp.start()].split() if stamp else cells
        if len(cells) != len(self.names) and not are_figures(cells):
            return False
        row = figures(cells, self.names, at)
        total = sum(row[i] for i in self.shares)
        if total > TOTAL:
            raise Malformed(at, f"shares add up to {total:g} %, expected 100 %")
        if self.blocks[1:] and not self.blocks[-1] and self._is_since_boot(row):
            self._begin()
            self.blocks.append(0)
        self.runs[-1].append((row, self._time(stamp[1], at) if stamp else None))
        self.blocks[-1] += 1
        self.last, self.apart = at, False
        return True

    def _is_since_boot(self, row: list[float]) -> bool:
        """Whether a row repeats the first of its run, but for what a run adds to the averages."""
        begin = self.names.index("in")
        pairs = zip(row[begin:], self.runs[-1][0][0][begin:], strict=True)
        return all(abs(now - before) <= 1 + 0.05 * before for now, before in pairs)

    def _time(self, stamp: str, at: int) -> datetime:
        """The time of a row. Raises Malformed for no time, or one before the last."""
        try:
            time = datetime.fromisoformat(stamp)
        except ValueError:
            expected = "such as 2024-05-31 23:59:59"
            raise Malformed(at, f"the time is {stamp!r}, expected {expected}") from None
        before = next((run[-1][1] for run in reversed(self.runs) if run), None)
        if before and time < before:
            raise Malformed(at, f"the time goes back to {stamp}, expected rows in order")
        return time

    def reading(self, told: list[str]) -> Reading:
        """What the rows say."""
        runs = [run for run in self.runs if run]
        if not runs:
            modes = "-d, -D, -f, -m, -p and -s are not read"
            raise Malformed(0, f"no row below {', '.join(EXPECTED)}, expected vmstat 1 ({modes})")
        used = [row for run in runs for row in run[1:]]
        told.insert(0, _since_boot(len(runs), len(used)))
        if skipped := [name for name in self.names if name not in READ]:
            told.append(f"Columns left out: {', '.join(skipped)}.")
        frame, columns = self._frame([row for row, _ in used or runs[0]])
        table = frame.mean().round(10).to_frame().T
        if not used:
            return Reading(table, columns, tuple(told))
        t, meaning = _seconds(runs[0][0][1], [time for _, time in used])
        if meaning == ROWS:
            told.append("Rows have no times (vmstat -t), so t counts rows, not seconds.")
        frame.insert(0, "t", t)
        return Reading(table, {"t": meaning, **columns}, tuple(told), frame)

    def _frame(self, rows: list[list[float]]) -> "tuple[pd.DataFrame, dict[str, Column]]":
        """The columns of some rows, with the share of processors in use, and their meanings."""
        import pandas as pd

        printed = pd.DataFrame(rows, columns=self.names, dtype=float)
        read = printed[[name for name in READ if name in printed]].copy()
        shares = [name for name in SHARES if name in read]
        read[shares] = (read[shares] / 100).round(10)
        used = printed.filter(("us", "sy", "gu")).sum(axis=1).clip(upper=100)
        read = read.rename(columns={name: called for name, (called, _) in READ.items()})
        read.insert(0, "U_cpu", (used / 100).round(10))
        meanings = {"U_cpu": column("U_cpu")} | dict(READ.values())
        return read, {name: meanings[name] for name in read}


def _seconds(start: datetime | None, times: list[datetime | None]) -> tuple[list[float], Column]:
    """Seconds since the start, or numbers of rows. Raises Malformed if only some have a time."""
    known = [time for time in times if time]
    if not known and not start:
        return [float(i) for i in range(1, len(times) + 1)], ROWS
    if not start or len(known) < len(times):
        raise Malformed(0, "only some rows have a time, expected all or none")
    return [(time - start).total_seconds() for time in known], column("t")


def _since_boot(runs: int, rows: int) -> str:
    """What to say of rows since boot. Raises Malformed if several runs have no other rows."""
    if not rows and runs > 1:
        once = "each of several runs has one row, the average since boot"
        raise Malformed(0, f"{once}, expected runs of vmstat 1")
    if not rows:
        return "The only row may be the average since boot, so it is no sample."
    if runs == 1:
        return "The first row is left out: it is since boot, unless -y was given."
    first = "the first row is left out of each, since boot unless -y was given"
    return f"Samples are of {runs} runs: {first}."

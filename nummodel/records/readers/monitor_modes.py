"""OpenVMS MONITOR MODES: processors by the mode they run in, as bars or as a table (/ALL).

Admitted with one version: the screen with bars of OpenVMS Alpha 7.3, as a talk of Compaq of 2001
quotes it. The layout of the table of /ALL and of the screens of /CPU is from memory; no printed
one was at hand.
"""

import re
from typing import Any

from nummodel.records.readers._lines import scaled
from nummodel.records.readers._reading import Column, Malformed, Reading

MODES = (
    "Interrupt State",
    "Interrupt Stack",
    "MP Synchronization",
    "Kernel Mode",
    "Executive Mode",
    "Supervisor Mode",
    "User Mode",
    "Compatibility Mode",
    "Idle Time",
)
TITLE = "TIME IN PROCESSOR MODES"
STATISTICS = {"CUR": "current", "AVE": "average", "MIN": "minimum", "MAX": "maximum"}
BOX = re.compile(r"\| (CUR|AVE|MIN|MAX) \|")
NODE = re.compile(r"\bon node (\S{1,40})")
DATE = re.compile(r"\b([0-9]{1,2}-[A-Z]{3}-[0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{2})?)")
COMBINED = re.compile(r"\s*Combined for\s+([0-9]{1,4}) CPUs?\b")
CPU = re.compile(r"\s*CPU(?: ID)?[ :]+([0-9]{1,4})\b")
LAYOUT = re.compile(r"[-+|\s`0-9]*")

COLUMNS = {
    "part": Column("-", "which of several screens in the file, from 1 on"),
    "node": Column("-", "name of the node"),
    "time": Column("-", "date and time of the screen"),
    "cpu": Column("-", "number of the processor, if the screen is of one"),
    "c_cpu": Column("-", "processors that the screen is about together"),
    "mode": Column("-", "mode of the processors"),
    "current": Column("-", "mean number of processors in the mode in the last interval"),
    "average": Column("-", "mean number of processors in the mode since the start"),
    "minimum": Column("-", "least number of processors in the mode in an interval"),
    "maximum": Column("-", "greatest number of processors in the mode in an interval"),
}


def recognises(text: str) -> bool:
    """Whether the text has the title of the screen and one of its modes."""
    return TITLE in text and any(mode in text for mode in MODES)


def parse(text: str) -> Reading:
    """A row for each mode of each screen, percent of one processor as processors. Raises Malformed
    for a screen that lacks the kind of its figures, or has others.
    """
    import pandas as pd

    screen = _Screen()
    lines = text.split("\n")
    cut = False
    for line, printed in enumerate(lines, 1):
        try:
            if line == len(lines):
                screen.refuse_cut(printed, line)
            screen.read(printed, line)
        except Malformed:
            if line < len(lines) or not screen.rows:
                raise
            cut = True
    if not screen.rows:
        raise Malformed(0, f"no mode, expected a screen {TITLE}")
    table = pd.DataFrame(screen.rows)
    used = [n for n in COLUMNS if n in table and table[n].notna().any()]
    used = [n for n in used if n != "part" or table["part"].max() > 1]
    told = [f"Lines outside of screens are left out: {screen.outside}."] * bool(screen.outside)
    told += _sums(screen.rows)
    told += ["The last line is cut off and left out."] * cut
    return Reading(table[used], {n: COLUMNS[n] for n in used}, tuple(told))


class _Screen:
    """The figures of screens that are read line by line."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.head: dict[str, Any] = {"part": 0}
        self.statistics: list[str] = []
        self.inside = False
        self.outside = 0

    def read(self, line: str, at: int) -> None:
        """Take a line. Raises Malformed for what is not of the screen."""
        box = BOX.search(line[:200])
        mode = next((m for m in MODES if line.strip().startswith(m)), "")
        cells = [cell.rstrip("%") for cell in line.split()]
        if TITLE in line and not self._is_same_screen():
            self.head = {"part": self.head["part"] + 1}
            self.statistics, self.inside = [], True
        if box:
            self._box(box[1])
        elif mode:
            self._row(mode, line.strip()[len(mode) :], at)
        elif cells[-4:] == list(STATISTICS):
            self.statistics = cells[-4:]
        if NODE.search(line[:300]) or DATE.search(line[:300]):
            self._heading(line[:300])
        elif found := COMBINED.match(line):
            self.head |= {"c_cpu": int(found[1]), "cpu": None}
        elif found := CPU.match(line):
            self.head |= {"cpu": int(found[1]), "c_cpu": None}
        elif not (box or mode or TITLE in line or cells[-4:] == list(STATISTICS)):
            self._other(line, at)

    def refuse_cut(self, line: str, at: int) -> None:
        """Raise Malformed if the last line, which has no end, may have lost digits."""
        figures = line.split()
        bars = "|" in line
        if figures and figures[-1][-1].isdigit() and not bars and "." not in figures[-1][-3:-2]:
            raise Malformed(at, "a line that is cut off, expected an end")

    def _is_same_screen(self) -> bool:
        """Whether the title belongs to a box above it, or to a screen without figures so far."""
        return self.inside and (not self.rows or self.rows[-1]["part"] != self.head["part"])

    def _box(self, statistic: str) -> None:
        """The box names the one figure of the screen with bars; it may be above the title."""
        if not self._is_same_screen():
            self.head, self.inside = {"part": self.head["part"] + 1}, True
        self.statistics = [statistic]

    def _heading(self, line: str) -> None:
        """The node and the time of a screen."""
        if found := NODE.search(line):
            self.head["node"] = found[1]
        if found := DATE.search(line):
            self.head["time"] = found[1]

    def _row(self, mode: str, rest: str, at: int) -> None:
        """The figures of a mode. Raises Malformed."""
        cells = rest.partition("|")[0].split()
        if not self.statistics:
            raise Malformed(at, "figures of unknown kind, expected CUR, AVE, MIN or MAX above")
        if len(cells) != len(self.statistics):
            wanted = f"{len(self.statistics)} ({', '.join(self.statistics)})"
            raise Malformed(at, f"{len(cells)} figures of {mode}, expected {wanted}")
        row = {**self.head, "mode": mode}
        for statistic, cell in zip(self.statistics, cells, strict=True):
            row[STATISTICS[statistic]] = scaled(cell, -2, at, mode)
        self.rows.append(row)

    def _other(self, line: str, at: int) -> None:
        """A line that frames the figures, or is not of the screen."""
        plain = line.strip()
        if not plain or LAYOUT.fullmatch(plain) or "Monitor Utility" in plain:
            return
        complete = self.rows and self.rows[-1]["mode"] == MODES[-1]
        if self.inside and not complete:
            raise Malformed(at, f"{plain[:60]!r}, expected a mode such as Kernel Mode")
        self.outside += 1


def _sums(rows: list[dict[str, Any]]) -> list[str]:
    """A sentence for each screen whose modes do not add up to its processors."""
    screens: dict[Any, list[dict[str, Any]]] = {}
    for row in rows:
        screens.setdefault((row["part"], row.get("cpu")), []).append(row)
    told = []
    for (_, cpu), some in screens.items():
        cpus = 1 if cpu is not None else some[0].get("c_cpu")
        for statistic in ("current", "average"):
            if cpus and all(statistic in row for row in some):
                total = round(sum(row[statistic] for row in some), 6)
                # Bars have whole percent.
                if abs(total - cpus) > 0.005 * len(some) + 1e-9:
                    told.append(
                        f"The modes add up to {total:g} processors, of {cpus}: {statistic}."
                    )
    return told

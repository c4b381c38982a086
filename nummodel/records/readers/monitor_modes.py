"""OpenVMS MONITOR MODES: processors by the mode they run in, as the screen with bars.

Admitted with one version: OpenVMS Alpha 7.3, as a talk of Compaq of 2001 quotes it. The table of
/ALL is not read; the screens of /CPU are from memory.
"""

import re
from typing import Any

from nummodel.records.readers._lines import scaled
from nummodel.records.readers._output import table_of, take
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
ROW = re.compile(rf"\s*({'|'.join(MODES)})\s+(\S+)\s*\|")
#: What a line may say of its screen, and the columns of that.
SAID = (
    re.compile(r"\|\s*(?P<statistic>CUR|AVE|MIN|MAX)\s*\|"),
    re.compile(r"\bon node (?P<node>\S{1,40})"),
    re.compile(r"\b(?P<time>[0-9]{1,2}-[A-Z]{3}-[0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{2})?)"),
    re.compile(r"^\s*Combined for\s+(?P<c_cpu>[0-9]{1,4}) CPUs?\b"),
    re.compile(r"^\s*CPU(?: ID)?[ :]+(?P<cpu>[0-9]{1,4})\b"),
)
OF_SCREEN = {"node", "time", "cpu", "c_cpu"}
FRAME = re.compile(r"[-+|\s`0-9]*|\s*OpenVMS Monitor Utility\s*")

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
    screens = _Screens()
    outside = take(text, screens.head, screens.row, lambda line: "|" in line)
    expected = f"no mode, expected a screen {TITLE} with bars, not /ALL"
    return table_of(screens.rows, COLUMNS, outside, expected)


class _Screens:
    """The rows of all screens, and what the last one says of itself."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.said: dict[str, Any] = {}
        self.part = 0

    def head(self, line: str, cells: list[str], at: int) -> bool:
        """Take a line that says something of its screen, or frames it."""
        line = line[:300]
        found = [match for words in SAID if (match := words.search(line))]
        begins = TITLE in line or any("statistic" in match.groupdict() for match in found)
        # The box of the statistic may be above the title.
        if begins and (not self.part or (self.rows and self.rows[-1]["part"] == self.part)):
            self.part, self.said = self.part + 1, {}
        for match in found:
            self.said |= match.groupdict()
        return bool(found) or begins or (self.part > 0 and FRAME.fullmatch(line) is not None)

    def row(self, line: str, cells: list[str], at: int) -> bool:
        """Take the figure of a mode. Raises Malformed for other lines between the modes."""
        if not (found := ROW.match(line[:300])):
            if self.part and not (self.rows and self.rows[-1]["mode"] == MODES[-1]):
                raise Malformed(at, f"{line.strip()[:60]!r}, expected a mode such as Kernel Mode")
            return False
        if "statistic" not in self.said:
            raise Malformed(at, "figures of unknown kind, expected CUR, AVE, MIN or MAX in a box")
        row = {"part": self.part, "mode": found[1]}
        for name in OF_SCREEN & {*self.said}:
            row[name] = self.said[name] if name in ("node", "time") else int(self.said[name])
        row[STATISTICS[self.said["statistic"]]] = scaled(found[2], -2, at, found[1])
        self.rows.append(row)
        return True

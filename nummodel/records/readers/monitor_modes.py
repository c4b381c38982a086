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
    rows: list[dict[str, Any]] = []
    said: dict[str, Any] = {}
    part = 0

    def head(line: str, cells: list[str], at: int) -> bool:
        nonlocal said, part
        found = [match for said_of in SAID if (match := said_of.search(line[:300]))]
        begins = TITLE in line[:300] or any("statistic" in match.groupdict() for match in found)
        # The box of the statistic may be above the title.
        if begins and (not part or (rows and rows[-1]["part"] == part)):
            part, said = part + 1, {}
        for match in found:
            said |= match.groupdict()
        return bool(found) or begins or bool(rows and FRAME.fullmatch(line[:300]))

    def row(line: str, cells: list[str], at: int) -> bool:
        if not (found := ROW.match(line[:300])):
            done = rows and rows[-1]["mode"] == MODES[-1]
            if part and not done and not FRAME.fullmatch(line[:300]):
                raise Malformed(at, f"{line.strip()[:60]!r}, expected a mode such as Kernel Mode")
            return not done and bool(part)
        if "statistic" not in said:
            raise Malformed(at, "figures of unknown kind, expected CUR, AVE, MIN or MAX in a box")
        screen = {
            n: said[n] if n in ("node", "time") else int(said[n]) for n in OF_SCREEN & {*said}
        }
        mode = {"mode": found[1], STATISTICS[said["statistic"]]: scaled(found[2], -2, at, found[1])}
        rows.append({"part": part, **screen, **mode})
        return True

    outside = take(text, head, row, lambda line: "|" in line)
    expected = f"no mode, expected a screen {TITLE} with bars, not /ALL"
    return table_of(rows, COLUMNS, outside, expected)

"""OpenVMS MONITOR MODES: processors by the mode they run in, as the screen with bars.

Admitted with one version: OpenVMS Alpha 7.3, as a talk of Compaq of 2001 quotes it. The table of
/ALL is not read; the screens of /CPU are from memory.
"""

import re
from typing import Any

from nummodel.records.readers._lines import scaled
from nummodel.records.readers._printed import Head, Printed, Seen
from nummodel.records.readers._reading import Column, Malformed

LAST = "Idle Time"
MODES = (
    "Interrupt State|Interrupt Stack|MP Synchronization|Kernel Mode|Executive Mode|Supervisor Mode|"
    f"User Mode|Compatibility Mode|{LAST}"
)
TITLE = "TIME IN PROCESSOR MODES"
STATISTICS = {"CUR": "current", "AVE": "average", "MIN": "minimum", "MAX": "maximum"}
DATE = r"[0-9]{1,2}-[A-Z]{3}-[0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{2})?"
COLUMNS = {
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


def _row(seen: Seen, line: str, at: int) -> list[dict[str, Any]] | None:
    """A mode, percent of one processor as processors. Raises Malformed for other lines between the
    modes, and for figures of unknown kind.
    """
    found = re.match(rf"({MODES})\s+(\S+)\s*\|", line)
    if not found and seen.said and not (seen.rows and seen.rows[-1]["mode"] == LAST):
        raise Malformed(at, f"{line.strip()[:60]!r}, expected a mode such as Kernel Mode")
    if not found:
        return None
    if "statistic" not in seen.said:
        raise Malformed(at, "figures of unknown kind, expected CUR, AVE, MIN or MAX in a box")
    screen = {n: int(text) if n.endswith("cpu") else text for n, text in seen.said.items()}
    statistic = STATISTICS[str(screen.pop("statistic"))]
    return [{**screen, "mode": found[1], statistic: scaled(found[2], -2, at, found[1])}]


MONITOR_MODES = Printed(
    known=(rf"{TITLE}(?s:.{{0,2000}}?)(?:{MODES})",),
    heads=(
        # The box of the statistic may be above the title.
        Head(rf".*{TITLE}", begins=True),
        Head(r".*?\|\s*(?P<statistic>CUR|AVE|MIN|MAX)\s*\|", begins=True),
        Head(r".*?\bon node (?P<node>\S{1,40})"),
        Head(rf".*?\b(?P<time>{DATE})"),
        Head(r"Combined for\s+(?P<c_cpu>[0-9]{1,4}) CPUs?\b"),
        Head(r"CPU(?: ID)?[ :]+(?P<cpu>[0-9]{1,4})\b"),
        Head(r"(?:[-+|\s`0-9]*|OpenVMS Monitor Utility)$"),
    ),
    row=_row,
    columns=COLUMNS,
    whole=lambda _, line: "|" in line,
    expected=f"no mode, expected a screen {TITLE} with bars, not /ALL",
)
recognises, parse = MONITOR_MODES.recognises, MONITOR_MODES.parse

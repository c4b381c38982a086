"""cpu.stat of a Linux control group (version 1 or 2), copied before and after a run into one file.

A container or service that has used up its limit of processor time is throttled: its threads stand
still until the next period begins. Admitted with a recording of version 1; version 2 is read as
the kernel documents it (Documentation/admin-guide/cgroup-v2.rst).
"""

import re
from itertools import pairwise

from nummodel.records.readers._output import take
from nummodel.records.readers._reading import Column, Malformed, Reading

LINE = re.compile(r"\s*([a-z_.]{1,40}) ([0-9]{1,20})\s*")
#: Names of the time that was lost, and its unit in seconds: of version 2, and of version 1.
LOST = {"throttled_usec": 1e-6, "throttled_time": 1e-9}
COLUMNS = {
    "throttled": Column("-", "share of the periods in which the limit was reached"),
    "throttled_time": Column("s", "time that threads stood still, summed over processors"),
}


def recognises(text: str) -> bool:
    """Whether a text has the count of throttled periods."""
    return re.search(r"^[ \t]*nr_throttled [0-9]+[ \t]*$", text, re.MULTILINE) is not None


def _copies(text: str) -> tuple[list[dict[str, int]], list[str]]:
    """The counts of each copy by name, and what to say of other lines."""
    copies: list[dict[str, int]] = []

    def row(line: str, cells: list[str], at: int) -> bool:
        if found := LINE.fullmatch(line):
            if not copies or found[1] in copies[-1]:
                copies.append({})
            copies[-1][found[1]] = int(found[2])
        return bool(found)

    # Of a last line without an end, nobody knows whether the count has all its digits.
    whole = re.compile(r"\s*(?!nr_periods|nr_throttled|throttled)").match
    return copies, take(text, lambda *_: False, row, lambda line: whole(line) is not None)


def parse(text: str) -> Reading:
    """What was counted between the first copy and the last. Raises Malformed for one copy, and for
    counts that go back.
    """
    import pandas as pd

    copies, outside = _copies(text)
    copies = copies or [{}]
    lost = next((name for name in LOST if name in copies[0]), "throttled_usec")
    used = ("nr_periods", "nr_throttled", lost)
    if missing := [name for name in used if name not in copies[0]]:
        raise Malformed(1, f"no {missing[0]}, expected cpu.stat of a group with a limit")
    if len(copies) < 2 or any(copy.keys() != copies[0].keys() for copy in copies):
        raise Malformed(0, "a copy is missing or cut, expected one of before the run and one after")

    if any(b[name] < a[name] for a, b in pairwise(copies) for name in used):
        raise Malformed(0, "counts go back, expected copies of one group in order")
    periods, often, time = (copies[-1][name] - copies[0][name] for name in used)
    share = min(1.0, often / max(1, periods))
    table = pd.DataFrame([{"throttled": share, "throttled_time": time * LOST[lost]}])
    others = copies[0].keys() - {*used}
    told = (f"Counts left out: {', '.join(sorted(others))}.",) * bool(others)
    return Reading(table, COLUMNS, (*told, *outside))

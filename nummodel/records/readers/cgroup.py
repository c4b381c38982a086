"""cpu.stat of a Linux control group (version 1 or 2), copied before and after a run into one file.

A container or service that has used up its limit of processor time is throttled: its threads stand
still until the next period begins. Admitted with a recording of version 1; version 2 is read as
the kernel documents it (Documentation/admin-guide/cgroup-v2.rst).
"""

import re

from nummodel.records.readers._output import OUTSIDE
from nummodel.records.readers._reading import Column, Malformed, Reading

#: A count. Of a last line without an end, nobody knows whether the count has all its digits.
CUT = r"(?:nr_periods|nr_throttled|throttled\w*) [0-9]+[ \t]*\Z"
COUNT = re.compile(rf"^[ \t]*(?!{CUT})([a-z_.]{{1,40}}) ([0-9]{{1,18}})[ \t]*$", re.MULTILINE)
#: Names of the time that was lost, and its unit in seconds: of version 2, and of version 1.
LOST = {"throttled_usec": 1e-6, "throttled_time": 1e-9}
COLUMNS = {
    "throttled": Column("-", "share of the periods in which the limit was reached"),
    "throttled_time": Column("s", "time that threads stood still, summed over processors"),
}


def recognises(text: str) -> bool:
    """Whether a text has the count of throttled periods."""
    return re.search(r"^[ \t]*nr_throttled [0-9]+[ \t]*$", text, re.MULTILINE) is not None


def parse(text: str) -> Reading:
    """What was counted between the first copy and the last. Raises Malformed for one copy, and for
    counts that go back.
    """
    import pandas as pd

    counts = pd.DataFrame(COUNT.findall(text), columns=["name", "count"]).astype({"count": int})
    copies = {name: found.to_numpy() for name, found in counts.groupby("name")["count"]}
    lost = next((name for name in LOST if name in copies), "throttled_usec")
    used = ("nr_periods", "nr_throttled", lost)
    if missing := [name for name in used if name not in copies]:
        raise Malformed(1, f"no {missing[0]}, expected cpu.stat of a group with a limit")
    if len(copies[lost]) < 2 or len({*map(len, copies.values())}) > 1:
        raise Malformed(0, "a copy is missing or cut, expected one of before the run and one after")
    if any((copies[name][1:] < copies[name][:-1]).any() for name in used):
        raise Malformed(0, "counts go back, expected copies of one group in order")
    periods, often, time = (int(copies[name][-1] - copies[name][0]) for name in used)
    share = min(1.0, often / max(1, periods))
    table = pd.DataFrame([{"throttled": share, "throttled_time": time * LOST[lost]}])
    others = sorted(copies.keys() - {*used})
    told = [f"Counts left out: {', '.join(others)}."] * bool(others)
    outside = len(re.findall(r"^.*\S", text, re.MULTILINE)) - len(counts)
    told += [f"{OUTSIDE}: {outside}."] * bool(outside)
    return Reading(table, COLUMNS, tuple(told))

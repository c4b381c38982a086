"""JMeter 2 to 5: a JTL of single samples in CSV, and the lines of its summariser.

A JTL has a row for each number of threads (allThreads) at which it has samples enough.
"""

import csv
import re
from typing import Any

from nummodel.records.readers._declared import Field, Run, Tool
from nummodel.records.readers._lines import figure
from nummodel.records.readers._loads import NO_LOAD, failures, meanings
from nummodel.records.readers._reading import Malformed, Reading, number

#: Percentiles of the response time that are taken.
PERCENTS = (50, 90, 95, 99)
#: Samples of a load, at least, for each of its threads.
FEWEST = 2
LINE = (
    r".{0,80}?summary %s +([0-9]+) in +([0-9:.]+)s? = +([0-9.,]+)/s Avg: +([0-9]+) Min: +([0-9]+) "
    r"Max: +([0-9]+) Err: +([0-9]+)"
)
REPORT = re.compile(LINE % r"\+" + r".{0,20} Active: ([0-9]+)")


def samples(line: int, text: str) -> list[dict[str, Any]] | None:
    """The figures of an interval."""
    if not (found := REPORT.match(text[:1000])):
        return None
    units = {"time": "time", "X": "", "R": "ms", "N": ""}
    cells = (found[2], found[3], found[4], found[8])
    return [{n: figure(c, u, line, n) for (n, u), c in zip(units.items(), cells, strict=True)}]


def finish(run: Run) -> None:
    """The load, if it was the same in all intervals but the first and the last; the end of each."""
    t = 0.0
    for report in run.samples:
        t += report.pop("time") or 0.0
        report["t"] = t
    threads = [report["N"] for report in run.samples]
    if len(threads) > 2 and len(set(threads[1:-1])) == 1:
        run.row["N"] = threads[1]
    elif threads:
        least, most = min(threads), max(threads)
        run.notes.append(f"between {least:g} and {most:g} threads were active: no load is known")


LOG = Tool(
    begins=(r".{0,80}?Creating summariser",),
    known=r".{0,80}?summary [+=] +[0-9]+ in ",
    part=r".{0,80}?summary [+=] ",
    fields=(Field("events time:time X R:ms R_min:ms R_max:ms failed", LINE % "="),),
    samples=samples,
    finish=finish,
    last=True,
    needs={"X": "line of summary ="},
    work="samples",
    clients="threads",
)


def _is_jtl(text: str) -> bool:
    """Whether the first line has the names of a JTL."""
    first = text.lstrip().partition("\n")[0]
    return first.startswith("timeStamp,elapsed,") and ",success" in first


def recognises(text: str) -> bool:
    """Whether a text is a JTL, or has lines of the summariser."""
    return _is_jtl(text) or LOG.recognises(text)


def parse(text: str) -> Reading:
    """A row for each run of a log, or for each load of a JTL. Raises Malformed."""
    if not _is_jtl(text):
        return LOG.parse(text)
    rows = csv.reader(text.lstrip().split("\n"))
    try:
        place = {name: i for i, name in enumerate(next(rows))}
        message = place.get("responseMessage", 0)
        found = []
        for row in rows:
            if len(row) == len(place) and not row[message].startswith("Number of samples in trans"):
                start, took, threads = (
                    number(row[place[n]], rows.line_num, n) if n in place else 0.0
                    for n in ("timeStamp", "elapsed", "allThreads")
                )
                good = row[place["success"]].lower() == "true"
                found.append((start + took, threads, took, not good))
    except csv.Error as error:
        raise Malformed(rows.line_num, f"{error}, expected a JTL in CSV") from None
    if not found:
        raise Malformed(0, "no samples, expected a JTL with some")
    return _loads(found)


def _loads(samples: list[tuple[float, float, float, bool]]) -> Reading:
    """The samples of a JTL by their load: those that end while the number of threads is the same,
    over the time from the end of the last sample before.
    """
    import pandas as pd

    frame = pd.DataFrame(samples, columns=["end", "N", "R", "failed"])
    frame["end"] = (frame["end"] - (frame["end"] - frame["R"]).min()) / 1e3
    frame["R"] /= 1e3
    frame = frame.sort_values("end", kind="stable")
    stretch = (frame["N"] != frame["N"].shift()).cumsum().rename("stretch")
    ends = frame.groupby(stretch).agg(N=("N", "first"), end=("end", "max"))
    ends["time"] = ends["end"].diff().fillna(ends["end"])
    loads = frame.groupby("N").agg(R=("R", "mean"), events=("R", "size"), failed=("failed", "sum"))
    loads["time"] = ends.groupby("N")["time"].sum()
    for percent in PERCENTS:
        loads[f"R_p{percent}"] = frame.groupby("N")["R"].quantile(percent / 100)
    enough = (loads["events"] >= FEWEST * loads.index.to_series().clip(1)) & (loads["time"] > 0)
    if not enough.any():
        expected = f"expected {FEWEST} for each thread while their number is the same"
        raise Malformed(0, f"{len(samples)} samples, {expected}")
    table = loads[enough].reset_index()
    table.insert(1, "X", table["events"] / table["time"])
    failed, count = int(table["failed"].sum()), int(table["events"].sum())
    told = failures(failed, count, "samples")
    if few := [f"{N:g}" for N in loads.index[~enough]]:
        told.append(f"left out: too few samples at {', '.join(few[:20])} threads (a ramp)")
    if (table["N"] == 0).any():
        table = table.drop(columns="N")
        told.append(NO_LOAD)
    return Reading(table.astype(float), meanings(table), tuple(told))

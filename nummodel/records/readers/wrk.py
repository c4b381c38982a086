"""wrk 4 and wrk2: the summary of each run.

Admitted with recordings of one version, wrk 4.1.0; wrk2 is read as it is documented.
"""

import re
from typing import Any

from nummodel.records.readers._lines import THOUSANDS, parts, scaled, seconds
from nummodel.records.readers._reading import Column, Malformed, Reading, column

BEGINS = re.compile(r"Running .{1,40} test @ ")
LOAD = re.compile(r" +([0-9]+) threads? and ([0-9]+) connections?$")
LATENCY = re.compile(r" +Latency +(-?nan\S*|[0-9]\S*) +(\S+) +(\S+) ")
PERCENTILE = re.compile(r" +([0-9.]+)% +([0-9.]+[a-zµμ]+)$")
EVENTS = re.compile(r" +([0-9]+) requests in (\S+), ")
RATE = re.compile(r"Requests/sec: +(\S+)$")
SOCKET = re.compile(r" +Socket errors: (.*)")
STATUS = re.compile(r" +Non-2xx or 3xx responses: ([0-9]+)")
OWN = {
    "R_sd": Column("s", "standard deviation of the response times"),
    "R_max": Column("s", "longest response time"),
    "threads": Column("-", "threads of wrk itself"),
    "events": Column("-", "requests of the run"),
    "time": Column("s", "duration of the run"),
}


def recognises(text: str) -> bool:
    """Whether a text has the head of a run."""
    return re.search(r"^Running .{1,40} test @ ", text[:20000], re.MULTILINE) is not None


def parse(text: str) -> Reading:
    """A row for each run in the text; N is the number of connections. Raises Malformed for a run
    without its summary.
    """
    import pandas as pd

    rows, told = [], []
    for run, lines in enumerate(parts(text, BEGINS), 1):
        row, more = _run(lines)
        rows.append(row)
        told += [f"run {run}: {what}" for what in more]
    used = dict.fromkeys(n for row in rows for n in row)
    columns = {n: OWN[n] if n in OWN else column(n) for n in used}
    return Reading(pd.DataFrame(rows), columns, tuple(told))


def _run(lines: list[tuple[int, str]]) -> tuple[dict[str, Any], list[str]]:
    """The summary of a run, and what is odd."""
    row: dict[str, Any] = {}
    told: list[str] = []
    rated = spectrum = False
    for line, text in lines:
        rated |= text.startswith("  Thread calibration")
        spectrum |= text.startswith("  Detailed Percentile")
        if found := LOAD.match(text):
            row["N"], row["threads"] = float(found[2]), float(found[1])
        elif found := LATENCY.match(text):
            for name, cell in zip(("R", "R_sd", "R_max"), found.groups(), strict=True):
                if "nan" not in cell:  # wrk2 has no mean of a run that it could not calibrate
                    row[name] = seconds(cell, line, "latency")
        elif (found := PERCENTILE.match(text)) and not spectrum:
            row[f"R_p{_short(found[1])}"] = seconds(found[2], line, "percentile")
        elif found := EVENTS.match(text):
            row["events"], row["time"] = float(found[1]), seconds(found[2], line, "duration")
        elif found := RATE.match(text):
            cell, power = found[1], THOUSANDS.get(found[1][-1:], None)
            row["X"] = scaled(cell[:-1] if power else cell, power or 0, line, "Requests/sec")
        elif found := SOCKET.match(text):
            told.append(f"errors of sockets: {found[1][:200]}")
        elif found := STATUS.match(text):
            told.append(f"{found[1]} responses are no success, and are counted in X")
    if missing := [n for n in ("N", "X") if n not in row]:
        what = {"N": "number of connections", "X": "Requests/sec"}[missing[0]]
        first = lines[0][0]
        raise Malformed(lines[-1][0], f"no {what} of the run from line {first} on: it was cut")
    if row["N"] < 1:
        raise Malformed(lines[0][0], "the run has no connections, expected one at least")
    if spectrum:
        told.append("the detailed percentiles are left out")
    if rated:
        told.append("requests came at a rate that was given (wrk2), so N is no load")
    elif row.get("R") and abs(row["X"] * row["R"] / row["N"] - 1) > 0.2:
        told.append(
            f"X R = {row['X'] * row['R']:.3g} requests are under way, and there are {row['N']:g} "
            "connections: requests may have come at a rate (wrk2), or latencies are corrected"
        )
    return {n: row[n] for n in ("N", "X", "R") if n in row} | row, told


def _short(percent: str) -> str:
    """50 of 50.000, which wrk2 writes, and 99.9 of 99.900."""
    return percent.rstrip("0").rstrip(".") if "." in percent else percent

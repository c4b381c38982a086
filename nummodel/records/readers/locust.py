"""locust 1 to 2: `stats.csv`, which has no number of users, and `stats_history.csv` by that number.

A row for each number of users that did not change for a while.
"""

import csv

from nummodel.records.readers._lines import figure
from nummodel.records.readers._loads import NO_LOAD, failures, meanings
from nummodel.records.readers._reading import Malformed, Reading

#: Seconds over which locust averages its rates.
WINDOW = 10
#: Rows at a number of users, at least.
FEWEST = 2
#: Names of columns in the versions.
COUNT = ("Request Count", "# requests", "Total Request Count")
FAILED = ("Failure Count", "# failures", "Total Failure Count")
MEAN = ("Average Response Time", "Average response time", "Total Average Response Time")
PERCENTS = ("50%", "66%", "75%", "80%", "90%", "95%", "98%", "99%", "99.9%", "99.99%")


def recognises(text: str) -> bool:
    """Whether the first line has the names of locust."""
    first = text.lstrip().partition("\n")[0]
    stats = "Requests/s" in first and any(name in first for name in COUNT[:2])
    return "Name" in first and (stats or ("User Count" in first and "Requests/s" in first))


def parse(text: str) -> Reading:
    """A row for the run, or for each number of users. Raises Malformed."""
    rows = csv.DictReader(text.lstrip().split("\n"), restval="", restkey="more")
    try:
        cells = [(rows.line_num, row) for row in rows]
    except csv.Error as error:
        raise Malformed(rows.line_num, f"{error}, expected a CSV file of locust") from None
    whole = [(i, row) for i, row in cells if row.get("Name") in ("Aggregated", "Total")]
    if not whole:
        raise Malformed(0, "no row Aggregated, expected stats.csv or stats_history.csv of locust")
    return _history(whole) if "User Count" in whole[0][1] else _stats(*whole[-1], len(cells) - 1)


def _value(row: dict[str, str], names: tuple[str, ...], line: int, unit: str = "") -> float:
    """The figure in the first of some columns that a row has, 0 for none."""
    cell = next((row[name] for name in names if row.get(name)), "-")
    value = figure(cell, unit, line, names[0])
    return value if isinstance(value, float) else 0.0


def _stats(line: int, row: dict[str, str], others: int) -> Reading:
    """The row of all requests together."""
    import pandas as pd

    found = {
        "X": _value(row, ("Requests/s",), line),
        "R": _value(row, MEAN, line, "ms"),
        **{f"R_p{n[:-1]}": R for n in PERCENTS if (R := _value(row, (n,), line, "ms"))},
        "events": _value(row, COUNT, line),
        "failed": _value(row, FAILED, line),
    }
    told = [*failures(found["failed"], found["events"], "requests"), NO_LOAD]
    told += [f"left out: {others} rows of single requests"] * (others > 0)
    return Reading(pd.DataFrame([found]), meanings(found), tuple(told))


def _history(whole: list[tuple[int, dict[str, str]]]) -> Reading:
    """The rows by the number of users. Totals count from the start, so that differences are those
    of a stretch.
    """
    import pandas as pd

    points = pd.DataFrame(
        [
            {
                "t": _value(row, ("Timestamp",), line),
                "N": _value(row, ("User Count",), line),
                "X": _value(row, ("Requests/s",), line),
                "events": _value(row, COUNT, line),
                "sum": _value(row, COUNT, line) * _value(row, MEAN, line, "ms"),
                "failed": _value(row, FAILED, line),
            }
            for line, row in whole
        ]
    )
    rows, short = [], []
    for _, stretch in points.groupby((points["N"] != points["N"].shift()).cumsum()):
        N, several = stretch["N"].iloc[0], stretch[stretch["X"] > 0]
        late = several[several["t"] - several["t"].min() >= WINDOW]
        used = late if len(late) > FEWEST else several
        if N < 1 or len(used) < FEWEST:
            short.append(f"{N:g}")
            continue
        events, total, failed = used[["events", "sum", "failed"]].iloc[[0, -1]].diff().iloc[1]
        R = total / events if events > 0 and total > 0 else None
        rows.append({"N": N, "X": used["X"].mean(), "R": R, "events": events, "failed": failed})
    if not rows:
        raise Malformed(0, f"no {FEWEST} rows at the same number of users: a ramp has no load")
    table = pd.DataFrame(rows).astype(float)
    told = failures(table["failed"].sum(), table["events"].sum(), "requests")
    if short:
        told.append(f"left out: too few rows at {', '.join(dict.fromkeys(short))} users (a ramp)")
    told.append(f"the first {WINDOW} s at a number of users are left out if there are rows enough")
    columns = meanings([*table, "t"])
    return Reading(table, columns, tuple(told), points[["t", "N", "X"]])

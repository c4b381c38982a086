"""Outputs of tools that watch locks, as one table: lock_stat, perf lock contention and FCX265."""

from pathlib import Path
from typing import TYPE_CHECKING

from nummodel.errors import InputError
from nummodel.records import data, readers

if TYPE_CHECKING:
    import pandas as pd

#: What each reader calls the columns of `load`, and those that may name a lock, in this order.
COLUMNS = {
    "lock_stat": {"contentions": "contentions", "wait": "waittime_total", "longest": "waittime_max",
                  "acquisitions": "acquisitions", "hold": "holdtime_total",
                  "longest_hold": "holdtime_max"},
    "perf_lock": {"contentions": "contended", "wait": "total_wait", "longest": "max_wait"},
    "fcx265": {"contentions": "total_rate", "wait": "total_spin"},
    "lock-stat-lines": {name: name for name in ("contentions", "wait", "acquisitions", "hold")},
    "lock-stat-pair": {name: name for name in ("contentions", "wait", "acquisitions", "hold")},
    "zvm-lock-log": {"contentions": "total_locks", "wait": "total_wait"},
}  # fmt: skip
NAMES = ("lock", "symbol", "caller", "line")
COUNTED = ("contentions", "wait", "longest", "acquisitions", "hold", "longest_hold")
#: FCX265 prints rates, and the mean time of a spin.
RATES = ("fcx265", "zvm-lock-log")


def load(file: str | Path) -> "pd.DataFrame":
    """Locks by name, those with the longest waits in total first, but for locks without a wait. If
    the tool names callers instead of locks, each row is a call site. The name of the index is
    "lock" or "call site", and `attrs["tool"]` is the reader or the published table.

    Columns: `contentions`; `wait`, their waiting times in total [s]; `longest`, the longest of them
    [s]; `acquisitions`; `hold`, the holding times in total [s]; `longest_hold` [s]; and `elapsed`
    [s], which is 1 for FCX265, as it prints rates. Not a number stands for what the tool does not
    count. `file` may be a published table. Raises InputError for other files, and for several
    outputs in one.
    """
    import pandas as pd

    if file in data.tables():
        kind, table = str(file), data.load(str(file))
    else:
        kind, reading = readers.read(file)
        table = reading.table
    if kind not in COLUMNS:
        tools = "/proc/lock_stat, perf lock contention or FCX265, or a table of these"
        wrong = "a table of its own" if kind == "table" else f"an output of {kind}"
        raise InputError(f"{file}: {wrong}, expected an output of {tools}")
    if "part" in table:
        raise InputError(f"{file}: {table['part'].max()} outputs, expected one")
    if "end" in table and (table["end"] == ">>Mean>>").any():
        table = table[(table["end"] == ">>Mean>>") & (table["lock"] != ">>Total>")]
    names = [name for name in NAMES if name in table]
    if not names:
        raise InputError(
            f"{file}: waits of tasks or groups, expected those for locks or by callers"
        )
    found = pd.DataFrame({"lock": table[names[0]]})
    if "address" in table:
        found["lock"] = found["lock"].where(found["lock"] != "", table["address"])
    for column in COUNTED:
        found[column] = table.get(COLUMNS[kind].get(column), float("nan"))
    for more in ("mode", "type"):
        if more in table:
            found["lock"] += [f" ({text})" if text else "" for text in table[more]]
    if kind in RATES:
        found["wait"] *= found["contentions"]
    found["elapsed"] = table.get("elapsed", 1.0 if kind in RATES else float("nan"))
    locks = _together(found[found["wait"] > 0], file)
    locks.attrs["tool"] = kind
    return locks.rename_axis("call site" if names[0] == "caller" else "lock")


def _together(rows: "pd.DataFrame", file: str | Path) -> "pd.DataFrame":
    """Rows of the same name as one, in order. Raises InputError if there are none."""
    if rows.empty:
        raise InputError(f"{file}: no lock with a wait, expected one")
    how = {
        name: "max" if name in ("longest", "longest_hold", "elapsed") else "sum"
        for name in rows
        if name != "lock"
    }
    by_name = rows.groupby("lock", sort=False)
    summed = by_name.agg(how).where(by_name.count() > 0)
    return summed.sort_values("wait", ascending=False)

"""Outputs of tools that watch locks, as one table: lock_stat, perf lock contention and FCX265."""

from pathlib import Path
from typing import TYPE_CHECKING

from nummodel.errors import InputError
from nummodel.records import data, readers

if TYPE_CHECKING:
    import pandas as pd

#: The columns of `load`, and how the rows of one lock become one.
COUNTED = {"contentions": "sum", "wait": "sum", "longest": "max", "acquisitions": "sum",
           "hold": "sum", "longest_hold": "max", "elapsed": "max"}  # fmt: skip
#: What each reader, or published table, calls them otherwise.
NAMES = {
    "lock_stat": {"waittime_total": "wait", "waittime_max": "longest", "holdtime_total": "hold",
                  "holdtime_max": "longest_hold"},
    "perf_lock": {"contended": "contentions", "total_wait": "wait", "max_wait": "longest"},
    "fcx265": {"total_rate": "contentions", "total_spin": "wait"},
    "lock-stat-lines": {},
    "lock-stat-pair": {},
    "zvm-lock-log": {"total_locks": "contentions", "total_wait": "wait"},
}  # fmt: skip
#: Columns that may name a lock, in this order.
LOCKS = ("lock", "symbol", "caller", "line")
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
    tool, table = _read(file)
    name = next((name for name in LOCKS if name in table), None)
    if name is None:
        expected = "expected those for locks or by callers"
        raise InputError(f"{file}: waits of tasks or groups, {expected}")
    found = table.rename(columns=NAMES[tool]).reindex(columns=[*COUNTED])
    found["lock"] = table[name]
    if "address" in table:
        found["lock"] = found["lock"].where(found["lock"] != "", table["address"])
    for more in (name for name in ("mode", "type") if name in table):
        found["lock"] += (" (" + table[more] + ")").where(table[more] != "", "")
    if tool in RATES:
        found["wait"] *= found["contentions"]
        found["elapsed"] = 1.0
    waited = found[found["wait"] > 0].groupby("lock", sort=False)
    locks = waited.agg(COUNTED).where(waited.count() > 0)
    if locks.empty:
        raise InputError(f"{file}: no lock with a wait, expected one")
    locks.attrs["tool"] = tool
    locks.index.name = "call site" if name == "caller" else "lock"
    return locks.sort_values("wait", ascending=False)


def _read(file: str | Path) -> tuple[str, "pd.DataFrame"]:
    """The reader of one output, or a published table by its name, and its rows of locks."""
    if file in data.tables():
        tool, table = str(file), data.load(str(file))
    else:
        tool, reading = readers.read(file)
        table = reading.table
    if tool not in NAMES:
        tools = "/proc/lock_stat, perf lock contention or FCX265, or a table of these"
        wrong = "a table of its own" if tool == "table" else f"an output of {tool}"
        raise InputError(f"{file}: {wrong}, expected an output of {tools}")
    if "part" in table:
        raise InputError(f"{file}: {table['part'].max()} outputs, expected one")
    if "end" in table and (table["end"] == ">>Mean>>").any():
        table = table[(table["end"] == ">>Mean>>") & (table["lock"] != ">>Total>")]
    return tool, table

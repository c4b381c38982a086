"""Columns that several load generators have, and what is said of their runs."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from nummodel.records.readers._reading import Column, Reading, column

#: What is told of a run without a load. An option that gives the load makes it untrue.
NO_LOAD = "no number of clients is printed: --n gives it, or in a folder --pattern '{N}'"
OPEN = "came at a rate that was given, so N is no load"
#: Columns that several load generators have.
SHARED = {
    "R_min": Column("s", "shortest response time"),
    "R_max": Column("s", "longest response time"),
    "R_sd": Column("s", "standard deviation of the response times"),
    "events": Column("-", "requests or transactions of the run"),
    "failed": Column("-", "requests or transactions that failed, among those of the run"),
    "lost": Column("-", "failures beside the requests of the run, such as those of sockets"),
    "time": Column("s", "duration of the run"),
    "rate": Column("1/s", "rate of requests that was set"),
    "clients": Column("-", "clients at the same time, at most, which are no load here"),
    "series": Column("-", "what the run is of: an instance, a heading, an address, a command"),
    "run": Column("-", "number of the run in the file"),
}


def meanings(names: Iterable[str], own: Mapping[str, Column] | None = None) -> dict[str, Column]:
    """Columns by their names."""
    known = SHARED | dict(own or {})
    return {name: known[name] if name in known else column(name) for name in names}


def failures(failed: float, events: float, work: str) -> list[str]:
    """What is said of failures."""
    more = "more failed than succeeded: " if 2 * failed > events else ""
    said = f"{more}{failed:,.0f} of {events:,.0f} {work} failed, and are counted in X and R"
    return [said] if failed > 0 else []


def with_load(reading: Reading, n: float) -> Reading:
    """A reading with the load `n` where the output has none, unless a rate was given."""
    if any(what.endswith(OPEN) for what in reading.left_out):
        return reading
    table = reading.table.copy()
    table["N"] = table["N"].fillna(n) if "N" in table else float(n)
    table = table[["N", *(name for name in table if name != "N")]]
    told = tuple(what for what in reading.left_out if not what.endswith(NO_LOAD))
    return replace(
        reading, table=table, columns={**reading.columns, "N": column("N")}, left_out=told
    )

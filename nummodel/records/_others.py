"""Columns of a user's table beside load and throughput: response times, utilisations, servers."""

import re
from pathlib import Path

import numpy as np

from nummodel.arguments import FULLEST
from nummodel.errors import InputError
from nummodel.records._names import MEANS, PARTIAL, PERCENTILE, ROLES, USED, kind, words
from nummodel.records.readers import table
from nummodel.records.readers.table import Cells

#: What R, Z, U_cpu and U_disk are called as well, beside words for a mean and for the unit.
CALLED = {"r": "R", "latency": "R", "lat": "R", "response": "R", "response time": "R", "rt": "R"}
CALLED |= {"resp": "R", "resp time": "R", "z": "Z", "think time": "Z", "cpu": "U_cpu"}
CALLED |= {"processor": "U_cpu", "disk": "U_disk"}
CALLED |= dict.fromkeys(("cores", "cpus", "vcpus", "processors"), "c_cpu")
#: Units that end a name, in seconds and in shares.
SIZES = {"s": 1.0, "sec": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ns": 1e-9}
SHARES = {"pct": 0.01, "percent": 0.01}
#: A word that says that a column is no mean.
NO_MEAN = re.compile(rf"{PERCENTILE}|(pct|perc)[0-9]+|percentiles?|quantiles?")
#: What stands in an empty cell.
EMPTY = {"", "-", "na", "nan", "n/a", "null", "none"}
#: From here on, numbers that may be shares or percents are percents, and hardly a few processors.
PERCENTS = 10


def quantity(name: str) -> tuple[str, float]:
    """Which of R [s], Z [s], U_name [share] and c_name a column holds, by its name, and the size of
    its unit, which is negative for a share that is idle. ("", 1.0) for any other column, and for a
    time without a unit, but for R and Z.

    >>> quantity("avg_latency_ms"), quantity("CPU %"), quantity("%idle"), quantity("p95_ms")
    (('R', 0.001), ('U_cpu', 0.01), ('U_cpu', -0.01), ('', 1.0))
    """
    plain = "_".join(re.findall(r"\w+", name.replace("%", " pct ")))
    if found := re.fullmatch(r"([UuCc]_[A-Za-z]\w*?)(?:_(pct|percent))?", plain):
        what, unit = found.groups()
        fits = not what.endswith("_se") and (what[0] in "Uu" or not unit)
        meant = ("U" if what[0] in "Uu" else "c") + what[1:]
        return (meant, SHARES.get(unit, 1.0)) if fits else ("", 1.0)
    said = [word for word in words(name) if word not in MEANS - {"median"}]
    if len(said) == 1 < len(words(name)) and said[0] in SIZES and said[0][0] != "s":
        return "R", SIZES[said[0]]  # as avg_ms; avg_s may be a rate
    if said[1:] and said[0] in SHARES:
        said = [*said[1:], said[0]]
    unit = said.pop() if said[1:] and said[-1] in {*SIZES, *SHARES} else ""
    idle = "idle" in said
    said = [word for word in said if word != "idle"] or ["cpu"]
    meant = CALLED.get(" ".join(word for word in said if word not in {*USED, "load"}), "")
    if meant.startswith("U_"):
        fits = unit in SHARES or (not unit and not idle and not USED.isdisjoint(said))
    elif meant == "c_cpu":
        fits = name.lower() in CALLED  # but not cores_used
    else:
        fits = not idle and (unit in SIZES or name in ("R", "Z"))
    size = -SHARES.get(unit, 1.0) if idle else (SIZES | SHARES).get(unit, 1.0)
    return (meant, size) if meant and fits else ("", 1.0)


def read(
    cells: Cells, used: set[str], path: Path, complete: bool = False
) -> tuple[dict[str, np.ndarray], np.ndarray, list[str]]:
    """The columns that have a `quantity`, by its name, in seconds and shares, but for those that
    are `used` already; for each row, whether it can be used; and which columns of times and
    utilisations, and which rows, are not used, and why.

    A column with empty cells is not used. If rows are to be `complete`, it is used if more than
    half of its cells are there, and its rows without a cell are left out.
    """
    found: dict[str, np.ndarray] = {}
    whole = np.ones(len(next(iter(cells.values()))), dtype=bool)
    warnings: list[str] = []
    unknown: dict[str, list[str]] = {}  # by what to call them
    rest = [name for name in cells if name not in used]
    for name in sorted(rest, key=lambda name: quantity(name)[0] != name):
        meant, size = quantity(name)
        if name.lower() in CALLED and meant == "c_cpu" and len({*cells[name].values()}) > 1:
            continue  # as cores that grow with the load
        if not meant:
            measured = kind(name) in ("time", "resource") or not USED.isdisjoint(words(name))
            measured |= {"cpu", "load"} <= {*words(name)} or "idle" in words(name)
            plain = [word for word in words(name) if word not in SHARES]
            # As dsk_pct: a percentage, and no word says that it is something else.
            if 0 < len(plain) < len(words(name)):
                measured |= ROLES.keys().isdisjoint(plain)
            if measured and {"per", "ratio"}.isdisjoint(words(name)):
                unknown.setdefault(_hint(name), []).append(name)
            continue
        lines = [line for line, cell in cells[name].items() if cell.strip().lower() in EMPTY]
        few = 2 * len(lines) < len(whole)
        numbered = isinstance(next(iter(cells[name])), int)
        rows = f"{'row' if numbered else 'run'}{'s' * (len(lines) > 1)} "
        rows += ", ".join(map(str, lines))
        try:
            if meant in found:
                raise InputError(f"another column is {meant} already")
            if lines and not (complete and few):
                how = "; --law closed uses it, and leaves out the rows" if few else ""
                raise InputError(f"it is empty in {rows if few else f'{len(lines)} rows'}{how}")
            found[meant], guessed = _values(cells, name, path, meant, size)
            warnings += guessed
        except InputError as error:
            warnings.append(f"{name} is not used: {error}")
            continue
        if lines:
            whole &= np.isfinite(found[meant])
            of_file = " of the file" * numbered
            warnings.append(f"{rows}{of_file}: left out, as {name} is empty there")
    warnings += [f"not used: {', '.join(names)}; {how}" for how, names in unknown.items()]
    return found, whole, warnings


def _hint(name: str) -> str:
    """What to call a column that was not recognised."""
    said = {*words(name)}
    if "idle" in said:
        return "call an idle share of all processors, in percent, cpu_idle_pct"
    if {*PARTIAL, "median"} & said or any(NO_MEAN.fullmatch(word) for word in said):
        return "a percentile, or the largest or smallest value, is no mean"
    if {"cpu", "processor"} & said:
        return "call the use of all processors U_cpu_pct (percent) or U_cpu (a share of 1)"
    if kind(name) == "time":
        return "call a mean response time R_ms or R_s"
    return "call a utilisation in percent U_cpu_pct, or U_disk_pct and the like"


def _values(
    cells: Cells, name: str, path: Path, meant: str, size: float
) -> tuple[np.ndarray, list[str]]:
    """A column in seconds or shares, nan where it is empty, and a warning if its unit is guessed.
    Raises InputError for what cannot be such numbers.
    """
    full = Cells({name: {i: c for i, c in cells[name].items() if c.strip().lower() not in EMPTY}})
    full.decimal = cells.decimal
    values = table.numbers(full, name, path, positive=False)
    if (values < 0).any():
        raise InputError(f"{path}: {name} is {values.min():g}, expected no negative number")
    guessed = []
    if size < 0:
        values, size = 1 + values * size, 1.0
        guessed = [f"{meant} is 100 % - {name}: time in which processors wait for I/O may be in it"]
        if (values < 0).any():
            raise InputError(f"it is up to {100 * (1 - values.min()):g}, expected 100 % at most")
    if meant == "c_cpu" and name.lower() != meant:
        guessed = [f"{name} is taken as the number of processors, c_cpu"]
    words_only = meant.startswith("U_") and not name.lower().startswith("u_")
    if words_only and size == 1 and PERCENTS < values.max() <= 100 * FULLEST:
        size = SHARES["pct"]
        guessed = [f"{name} is taken as percent, as it is up to {values.max():g}"]
    if meant.startswith("U_") and (highest := values.max()) * size > FULLEST:
        expected = "expected 100 % at most"
        if size == 1:
            expected = f"expected a share, 1 at most; call it {meant}_pct if it is in percent"
        raise InputError(f"it is up to {highest:g}, {expected}")
    column = np.full(len(cells[name]), np.nan)
    column[[line in full[name] for line in cells[name]]] = values * size
    return column, guessed

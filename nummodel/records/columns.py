"""Two columns of a table, a load and a throughput, which are known by what their names say."""

import re
import shlex
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from nummodel.arguments import WEIGHTS
from nummodel.errors import InputError
from nummodel.nomenclature import show
from nummodel.records import _others, data, folder, readers
from nummodel.records._names import (
    MEANS,
    PARTIAL,
    ROLES,
    SPREAD,
    TIMES,
    bare,
    kind,
    per_second,
    words,
)
from nummodel.records._others import SIZES as SIZES  # the units of times, for other folders
from nummodel.records._others import quantity
from nummodel.records.readers import table
from nummodel.records.readers.table import Cells, is_number

#: Columns of what tools print that a fit takes, beside utilisations of devices.
TAKEN = ("N", "X", "R", "U_cpu", "c_cpu", "series")
#: Devices that pass their requests on to others, and so are busy when these are.
VOLUME = re.compile(r"U_(dm-|md|loop|drbd|bcache)\d")
#: A device that is never in use for this share of the time is left out.
IDLE = 0.01
#: Kinds of columns that may be the load or the throughput if the other one is known.
UNCLEAR = ("", "resource", "count")
#: Names of rates of arrival, which are no numbers of users; what a generator was told to send.
ARRIVALS = re.compile(r"(?i)lamb?da|arrival|(^|_)(rate|rps|qps)($|_)")
OFFERED = {"offered", "target", "requested", "scheduled", "sent"}


class Points(NamedTuple):
    """Measurements from a table: loads, throughputs, their weights (one of `WEIGHTS` or a column),
    the names of the two columns, warnings of rows that may not belong together; where the table has
    them, which run each row is of, and `others`: Z [s], R [s], U_name [share], c_name; and whether
    all times are in `seconds`, as the name of R has a unit; and how the throughput is called in the
    file, and by what it was multiplied.
    """

    N: np.ndarray
    X: np.ndarray
    weights: str | np.ndarray
    x: str
    y: str
    warnings: tuple[str, ...] = ()
    run: np.ndarray | None = None
    others: Mapping[str, np.ndarray] = {}
    seconds: bool = False
    of_file: tuple[str, float] = ("", 1.0)

    def where(self, keep: np.ndarray) -> "Points":
        """The measurements for which `keep` is true."""
        columns = self._asdict().items()
        kept = {n: v[keep] for n, v in columns if isinstance(v, np.ndarray)}
        return self._replace(**kept, others={n: v[keep] for n, v in self.others.items()})


def read(
    path: str | Path,
    x: str | None = None,
    y: str | None = None,
    weights: str = "absolute",
    system: bool = True,
    complete: bool = False,
) -> Points:
    """Two columns of a CSV file, or of a published table by its name, in the units printed there;
    or those of the output of a measuring tool, or of a folder with such outputs.

    `x` and `y` are the names of the columns of load and throughput. If they are not given, the
    columns are recognised by what their names say, as N and X do. `weights` is one of `WEIGHTS`, or
    the name of a third column. For a `system`, the `others` are read by their names and units, and
    else only response times are. If rows are to be `complete`, those that lack one of them are
    left out. The path "-" means standard input. Raises InputError for a file or a column that
    cannot be used.
    """
    called, path = path, data.path(path)
    close = get_close_matches(str(path), data.tables(), 1, 0.7)
    if close and not path.exists():
        raise InputError(f"{path}: no such file and no such table, did you mean {close[0]}?")
    cells, left_out, si = _cells(path)
    if weights not in WEIGHTS and weights not in cells:
        expected = f"{', '.join(WEIGHTS)}, or a column of: {_listed(cells)}"
        raise InputError(f"{path}: weights {weights!r}, expected {expected}")
    if missing := [c for c in (x, y) if c not in (None, *cells)]:
        raise InputError(f"{called}: no column {missing[0]!r}, expected one of: {_listed(cells)}")
    if (x is not None and x == y) or len(cells) < 2:
        only = repr(x or next(iter(cells)))
        how = "" if x else " (separate the cells by commas, semicolons or tabs)"
        raise InputError(f"{called}: only {only}, expected a column for X as well{how}")
    load, result = _choose(cells, x, y, weights, called)
    N = _numbers(cells, load, path, "" if x or kind(load) == "load" else "x")
    X = _numbers(cells, result, path, "" if y or kind(result) == "throughput" else "y")
    own = weights if weights in WEIGHTS else table.numbers(cells, weights, path, positive=True)
    guessed = [(load, "load", "x")] * (x is None) + [(result, "throughput", "y")] * (y is None)
    warnings = [*left_out, *_odd(guessed, result, weights)]
    warnings += _pooled(cells, {load, result, weights}, N, path)
    used = {load, result, weights}
    run = next((_runs(cells[c]) for c in cells if kind(c) == "run" and c not in used), None)
    if not system:
        used |= {c for c in cells if quantity(c)[0] != "R"}
    others, whole, unused = _others.read(cells, used, path, complete)
    time = "R" if "R" in others else "Z"
    unit = time in others and (si or time not in cells)
    file_y, size = result, 1.0
    if unit and system and (size := per_second(result)) != 1:
        times = f"multiplied by {size:g}" if size > 1 else f"divided by {1 / size:g}"
        warnings.append(f"{result} is {times} to be X_per_s, as response times are in seconds")
        X, result = X * size, "X_per_s"
    told = (*warnings, *unused)
    points = Points(N, X, own, load, result, told, run, others, unit, (file_y, size))
    return points if whole.all() else points.where(whole)


def _cells(path: Path) -> tuple[Cells, list[str], bool]:
    """The cells of a table, by line or by the name of the run. Of what tools print, those that a
    fit can use. Then what of a folder is left out, and whether times are
    in seconds, as those of most tools are.
    """
    if path.is_dir():
        reader, reading = "folder", folder.read(path)
    elif str(path) == "-" or not path.is_file() or not _is_output(path):
        return table.read(path), [], False
    else:
        reader, reading = readers.read(path)
    found, notes = reading.table, [s for s in reading.left_out if ": left out: " in s]
    lines: Iterable[int | str] = range(1, len(found) + 1)
    if reader != "excel":
        if "N" not in found:
            raise InputError(f"{path}: the output of {reader}, which has no N and X to be fitted")
        if reader == "folder" and "run" in found and found["run"].is_unique:
            lines = found["run"]
        devices = [n for n in found if re.match("U_(?!cpu$)", n) and not n.endswith("_se")]
        disks = [n for n in devices if not VOLUME.match(n)] or devices
        used = [n for n in disks if found[n].max() >= IDLE]
        if idle := [n for n in disks if n not in used]:
            notes.append(f"left out: {', '.join(idle)}, below {show(IDLE, '%')} at all loads")
        if volumes := [n for n in devices if n not in disks]:
            notes.append(f"left out: {', '.join(volumes)}, which pass requests on to other devices")
        found = found[[n for n in found if n in (*TAKEN, *used)]]
    cells = Cells({n: dict(zip(lines, map(str, found[n]), strict=True)) for n in found})
    return cells, notes, "R" in reading.columns and reading.columns["R"].unit == "s"


def _is_output(path: Path) -> bool:
    """Whether a file is a workbook, or the output of a tool."""
    if readers.is_workbook(path):
        return True
    try:
        return readers.recognised(readers.text_of(path)) not in ([], ["table"])
    except InputError:
        return False


def _runs(column: Mapping[int, str]) -> np.ndarray | None:
    """The number of the run of each row; None unless there are several runs of several rows."""
    names, run = np.unique(list(column.values()), return_inverse=True)
    return run if 1 < len(names) <= len(run) / 2 else None


def _choose(
    cells: Cells, x: str | None, y: str | None, weights: str, path: str | Path
) -> tuple[str, str]:
    """The columns of load and throughput, or InputError with the command that names them."""
    names = [c for c in cells if c not in (x, y, weights)]
    loads = [x] if x is not None else _named(cells, names, "N", "load")
    results = [y] if y is not None else _named(cells, names, "X", "throughput", "rate or count")
    letters = {c.lower(): c for c in names}
    if x is y is None and not loads and {"x", "y"} <= set(letters):
        return letters["x"], letters["y"]
    may_load, may_result = _unclear(cells, names)
    if not loads and not results:  # which `_doubt` refuses
        loads, results = may_load, [c for c in may_result if c not in may_load[:1]]
    elif not results:
        results = [c for c in may_result if _varies(cells, c)]
    if x is None and len(loads) == 1 and not _varies(cells, loads[0]):
        varying = {c for c in may_load if _varies(cells, c)} - {*results}
        loads = [*loads, *(c for c in may_load if c in varying)]
    loads, results = loads or may_load, _preferred(results, names)
    rates = [c for c in names if kind(c) == "throughput"]
    if not loads and (sent := _sent(rates)):
        rest = [y] if y is not None else [c for c in rates if c != sent]
        raise InputError(
            f"{path}: no column is known as the load, expected one with numbers of users or "
            f"threads; or if a load generator set the rate of requests, {sent} as the load and the "
            f"measured throughput in another column, as in: {_command([sent], rest, [], path)}"
        )
    if doubt := _doubt(cells, names, loads, results):
        raise InputError(f"{path}: {doubt}, as in: {_command(loads, results, names, path)}")
    return loads[0], results[0]


def _sent(rates: list[str]) -> str:
    """The rate that a load generator may have set, or ""."""
    offered = [c for c in rates if OFFERED & {*words(c)}]
    return next(iter([*offered, *filter(ARRIVALS.search, rates)]), "")


def _unclear(cells: Cells, names: list[str]) -> tuple[list[str], list[str]]:
    """Columns of numbers that may be the load, and those that may be the throughput."""
    numeric = [c for c in names if _has_numbers(cells[c].values())] or names
    resources = [c for c in numeric if kind(c) == "resource"]
    first = [c for c in numeric if kind(c) in (*UNCLEAR, "throughput", "rate or count")][:1]
    may_load = [c for c in numeric if not kind(c) or first == resources == [c]]
    may_load = [c for c in may_load if not MEANS & set(words(c))]
    return may_load, [c for c in numeric if kind(c) in ("", "count")]


def _preferred(results: list[str], names: list[str]) -> list[str]:
    """Those that say more: no extremes beside a mean, no counts beside a rate and a duration."""
    results = [c for c in results if not PARTIAL & set(words(c))] or results
    rates = [c for c in results if kind(c) == "throughput"]
    return rates if rates and any(kind(c) == "duration" for c in names) else results


def _numbers(cells: Cells, column: str, path: Path, guessed: str) -> np.ndarray:
    """A column of positive numbers; of one that was guessed, how to name another."""
    try:
        return table.numbers(cells, column, path, positive=True)
    except InputError as error:
        how = f"no {guessed} was given: --{guessed} NAME, or in a report -p {guessed}=NAME"
        hint = f" ({how}; the columns are: {_listed(cells)})" if guessed else ""
        raise InputError(f"{error}{hint}") from None


def _odd(guessed: list[tuple[str, str, str]], result: str, weights: str) -> list[str]:
    """Warnings of columns whose names do not say what the columns are taken for. `guessed` has
    those that the user did not name: the column, what it is taken for, and the option.
    """
    by_letter = {name.lower() for name, *_ in guessed} == {"x", "y"}
    warnings = [
        f"{name} is taken for the {what}, though its name does not say so; if another column is "
        f"the {what}, name it by --{option}"
        for name, what, option in guessed
        if kind(name) in UNCLEAR and not by_letter
    ]
    if kind(result) in (*TIMES, "run"):
        what = "numbers the runs" if kind(result) == "run" else "is a time"
        warnings.append(f"{result!r} {what} by its name, and a throughput is work over time")
    if weights not in WEIGHTS and SPREAD & set(words(weights)):
        warnings.append(
            f"weights multiply squared residuals; for a standard error s they are 1/s^2, and "
            f"{weights} is used as it is"
        )
    return warnings


def _pooled(cells: Cells, used: set[str], N: np.ndarray, path: Path) -> list[str]:
    """Warnings of several configurations in one file: columns that are neither used nor measured,
    in which several values have two different loads or more. Where the name says nothing, a column
    of numbers is a setting if all its values have that, and some loads have several of its values.
    """
    warnings = []
    for place, (name, column) in enumerate(cells.items(), 1):
        texts, what = list(column.values()), kind(name)
        setting = what in ("configuration", "load") or not _has_numbers(texts)
        if quantity(name)[0].startswith("U_"):
            continue  # it was measured
        if name in used or what in (*TIMES, "run") or not (setting or what in UNCLEAR):
            continue
        loads: dict[str, set[float]] = {}
        for text, load in zip(texts, N, strict=True):
            loads.setdefault(text, set()).add(load)
        values = [text for text, different in loads.items() if len(different) > 1]
        crossed = len(values) == len(loads) and sum(map(len, loads.values())) > len(set(N))
        if len(values) > 1 and (setting or crossed):
            rest = f" and {len(values) - 3} more" if len(values) > 3 else ""
            literal = values[0].replace("\\", r"\\").replace('"', r"\"")
            head = f"NR < {next(iter(column))}"  # comments before the header as well
            rows = shlex.quote(rf'{{sub(/\r$/, "")}} {head} || ${place} == "{literal}"')
            split = f": awk -F{shlex.quote(cells.delimiter)} {rows} {shlex.quote(str(path))}"
            how = f"{split} | nummodel fit -" if path.is_file() else ""  # "-" has been read
            warnings.append(
                f"the rows have different {name} ({', '.join(values[:3])}{rest}) and are fitted "
                f"together; if these are configurations, fit each alone{how}"
            )
    return warnings


def _listed(names: Iterable[str]) -> str:
    """The first eight names, and whether there are more."""
    first = list(islice(names, 9))
    return ", ".join(first) if len(first) < 9 else f"{', '.join(first[:8])}, ..."


def _has_numbers(texts: Iterable[str]) -> bool:
    return any(is_number(text.replace(",", ".")) for text in texts)


def _varies(cells: Cells, column: str) -> bool:
    return len(set(cells[column].values())) > 1


def _named(cells: Cells, names: list[str], letter: str, *wanted: str) -> list[str]:
    """The columns of these kinds; if some vary, only these, and if the letter names some, these.
    Beside a standard error, N may be the number of runs, and does not have the preference.
    """
    columns = [c for c in names if kind(c) in wanted]
    columns = [c for c in columns if _varies(cells, c)] or columns
    columns = [c for c in columns if not PARTIAL & set(words(c))] or columns
    if letter == "N" and any(SPREAD & set(words(c)) for c in names):
        return columns
    called = [c for c in columns if c.startswith(letter) and words(c)[0] == letter.lower()]
    return called or columns


def _doubt(cells: Cells, names: list[str], loads: list[str], results: list[str]) -> str:
    """What is not clear, and what was expected, or "". `names` are the columns not given."""
    units = {text for c in names if words(c)[-1:] == ["unit"] for text in cells[c].values()}
    kinds = {kind(name) for name in [*names, *units]}
    what, candidates = ("load", loads) if len(loads) != 1 else ("throughput", results)
    result = kind(results[0]) if len(loads) == len(results) == 1 and results[0] in names else None
    if result == "count" or (result == "rate or count" and "duration" in kinds):
        expected = "expected a rate, or if all runs took the same time, this count named by --y"
        return f"{results[0]} may be a count, and a throughput is work over time, {expected}"
    meant = {*loads, *results}
    guessed = [c for c in names if c in meant and (kind(c) in UNCLEAR or c == "x")]
    if loads and results and set(guessed) == meant:
        what, candidates = "load or the throughput", guessed
    elif result == "":  # as "score" beside "clock rate"
        candidates = [c for c in names if c == results[0] or _tells_rate(c)]
    if len(candidates) > 1:
        doubt = f"{_listed(candidates)} may be the {what}"
    elif not candidates:
        times = _listed(c for c in names if kind(c) in TIMES and loads)
        why = f" ({times}: a time; a throughput is work over time)" if times else ""
        if not loads and any(kind(c) == "throughput" for c in names):
            why = " (a number of users or threads)"
        doubt = f"no column is known as the {what}{why}"
    elif result == "" and (kinds & {"duration", "time"} or bare(results[0])):
        doubt = f"{results[0]} may be something else, and a throughput is work over time"
    else:
        return ""
    return f"{doubt}, expected the load named by --x and the throughput by --y"


def _tells_rate(name: str) -> bool:
    return "throughput" in map(ROLES.get, words(name))


def _command(loads: list[str], results: list[str], names: list[str], path: str | Path) -> str:
    """The command that names likely columns, or COLUMN."""
    others = [
        c for k in ("resource", "count") for c in names if kind(c) == k and c not in results[:1]
    ]
    load = next((c for c in [*loads, *others] if not bare(c)), "COLUMN")
    result = next((c for c in results if c != load and not bare(c)), "COLUMN")
    file, load, result = (shlex.quote(str(part)) for part in (path, load, result))
    return f"nummodel fit {file} --x {load} --y {result} (in a report: -p x={load} -p y={result})"

"""Which column of a table is which: by the list of known names, or as the user says.

Nobody else asks what the name of a column means: `Points` carries the answer.
"""

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np

from nummodel.arguments import FULLEST, WEIGHTS
from nummodel.errors import InputError
from nummodel.records import _cells, data
from nummodel.records._cells import listing
from nummodel.records._names import QUANTITY, SIZES, Meaning, listed, meaning, unit_of
from nummodel.records.readers import table
from nummodel.records.readers.table import Cells, is_number

__all__ = ["SIZES", "Points", "listed", "read"]

#: Throughputs of which a response time is not that of what they count.
BYTES = re.compile(r"(?i)(?:^|[^a-z])[kmgt]?i?(?:bytes?|b)(?: ?/ ?s| ?/ ?sec|ps)(?:[^a-z]|$)")
#: What stands in an empty cell.
EMPTY = {"", "-", "na", "nan", "n/a", "null", "none"}
#: From here on, numbers that may be shares or percents are percents, and hardly a few processors.
PERCENTS = 10


class Role(NamedTuple):
    """A column, what its name means, whether the user said what it holds, and whether its cells
    differ, some are numbers, and all are positive numbers.
    """

    name: str
    means: Meaning
    told: bool = False
    varies: bool = True
    numeric: bool = True
    positive: bool = True

    @property
    def free(self) -> bool:
        """Whether it may be a load or a throughput, by its cells and its unit."""
        return self.varies and self.positive and self.means.kind in ("", "rate")


#: The columns of a table by what they hold; by "" those that are not known.
Roles = dict[str, list[Role]]


class Points(NamedTuple):
    """Measurements from a table: loads, throughputs, their weights (one of `WEIGHTS` or a column),
    the names of the two columns, warnings of rows that may not belong together; where the table has
    them, which run each row is of, and `others`: Z [s], R [s], U_name [share], c_name; whether
    all times are in `seconds`, as the unit of R is known; of each quantity that is known, the
    column of the file and by what it was multiplied; and whether the loads are rates of `arrivals`.
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
    found: Mapping[str, tuple[str, float]] = {}
    arrivals: bool = False

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
    use: str | Iterable[str] = (),
    only: str | Iterable[str] = (),
) -> Points:
    """The measurements of a CSV file, or of a published table by its name; or those of the output
    of a measuring tool, or of a folder with such outputs.

    `use` says what columns hold, as in "U_disk=disk %util", "R[ms]=avg" or "X=1/seconds", and `x`
    and `y` are the columns of N and X. Other columns are known by their names, or not used. `only`
    picks rows, as in "mode=fast". `weights` is one of `WEIGHTS`, or the name of a column. Without a
    `system`, R is the only one of the `others`. If rows are to be `complete`, those without one of
    them are left out. The path "-" means standard input. Raises InputError for a file or a column
    that cannot be used.
    """
    called, path = path, _existing(path)
    cells, left_out, seconds = _cells.read(path)
    cells = _cells.picked(cells, _parted(only), called)
    own = _weights(cells, weights, path)
    given = [(letter, name) for letter, name in (("N", x), ("X", y)) if name is not None]
    roles = _roles(cells, _said(cells, [*given, *_parted(use)], called), weights)
    load, result = _load_and_throughput(roles, called)
    N, X = (table.numbers(cells, role.name, path, positive=True) for role in (load, result))
    mixed = _mixed(cells, roles, {load.name, weights}, N, called)
    wanted = _of_system(roles, load, system)
    waits = [role.name for quantity, role in wanted if quantity in ("R", "Z")]
    unfit = waits if BYTES.search(result.name) else []
    wanted = [pair for pair in wanted if pair[1].name not in unfit]
    others, used, why = _others(cells, wanted, path, complete)
    counts = f"is not used: {result.name} counts bytes, and no requests"
    why += [*(f"{name} {counts}" for name in unfit), *(_not_used(roles) if system else ())]
    timed = used.get("R", used.get("Z"))
    seconds = timed is not None and (seconds or timed.means.kind != "")
    size = result.means.size if seconds and system else 1.0
    found = {quantity: (role.name, role.means.size) for quantity, role in used.items()}
    found |= {"N": (load.name, 1.0), "X": (result.name, size)}
    if size != 1:
        times = f"multiplied by {size:g}" if size > 1 else f"divided by {1 / size:g}"
        why.append(f"{result.name} is {times} to be X_per_s, as response times are in seconds")
    y = result.name if size == 1 else "X_per_s"
    warnings, run = (*left_out, *_odd(result, weights), *mixed, *why), _run(cells, roles)
    rate = load in roles.get("lamda", ()) or load.means.quantity in ("X", "lamda")
    points = Points(N, X * size, own, load.name, y, warnings, run, others, seconds, found, rate)
    whole = np.asarray(~np.isnan([N, *others.values()]).any(axis=0))
    return points if whole.all() else points.where(whole)


def _weights(cells: Cells, weights: str, path: Path) -> str | np.ndarray:
    """One of `WEIGHTS`, or a column."""
    if weights in WEIGHTS:
        return weights
    if weights not in cells:
        expected = f"{', '.join(WEIGHTS)}, or a column of: {listing(cells)}"
        raise InputError(f"{path}: weights {weights!r}, expected {expected}")
    return table.numbers(cells, weights, path, positive=True)


def _existing(path: str | Path) -> Path:
    """The path of a file or of a published table."""
    found = data.path(path)
    close = get_close_matches(str(found), data.tables(), 1, 0.7)
    if close and not found.exists():
        raise InputError(f"{found}: no such file and no such table, did you mean {close[0]}?")
    return found


def _parted(options: str | Iterable[str]) -> list[tuple[str, str]]:
    """Options such as "R[ms]=avg", or several between commas: what stands on both sides."""
    texts = [options] if isinstance(options, str) else options
    parts = [part for text in texts for part in re.split(r",(?=[^,=]+=)", text) if part.strip()]
    return [(name.strip(), value.strip()) for name, _, value in (p.partition("=") for p in parts)]


def _said(cells: Cells, options: list[tuple[str, str]], path: str | Path) -> dict[str, Role]:
    """What the user says of columns. A column that is computed, as 1/seconds, joins the cells."""
    said: dict[str, Role] = {}
    for text, name in options:
        if not (known := QUANTITY.fullmatch(text)):
            expected = "expected N, X, R, Z, U_NAME, c_NAME or run and the name of a column"
            raise InputError(f"--use {text}={name}: {expected}, as in 'U_disk=disk %util'")
        quantity, unit = known.groups()
        if quantity in said:
            raise InputError(f"{quantity} is {said[quantity].name!r} and {name!r}, expected one")
        means = meaning(name) if name in cells else _computed(cells, name, path)
        wanted = {"X": "rate", "l": "rate", "R": "time", "Z": "time", "U": "share"}.get(quantity[0])
        if unit is not None:
            kind, size = unit_of(unit) or ("", 0.0)
            if kind != wanted:
                raise InputError(f"--use {text}={name}: no unit of {quantity}")
            means = means._replace(kind=kind, size=size)
        elif means.kind not in ("", wanted):
            means = means._replace(kind="", size=1.0)
        said[quantity] = Role(name, means, True)
    return said


def _computed(cells: Cells, name: str, path: str | Path) -> Meaning:
    """What a ratio of columns holds, or 1/NAME, or 1-NAME. Its cells join the others."""
    for sign in re.finditer("[-/]", name):
        first, second = name[: sign.start()].strip(), name[sign.end() :].strip()
        ratio = sign[0] == "/"
        if second in cells and (first == "1" or (ratio and first in cells)):
            of = meaning(second)
            values = table.numbers(cells, second, path, positive=ratio) * of.size
            work = 1.0 if first == "1" else table.numbers(cells, first, path, positive=True)
            values = work / values if ratio else 1 - values
            texts = (repr(float(value)).replace(".", cells.decimal) for value in values)
            cells[name] = dict(zip(cells[second], texts, strict=True))
            kind = "rate" if ratio and of.kind == "time" else ""
            return meaning(name)._replace(size=1.0, kind=kind)
    raise _cells.absent(cells, name, path)


def _roles(cells: Cells, said: dict[str, Role], weights: str) -> Roles:
    """All columns by what they hold: by their names, but for those that the user named."""
    roles: Roles = {}
    taken = {weights, *(role.name for role in said.values())}
    for name in cells:
        if name not in taken:
            role = Role(name, meaning(name), False, *_contents(cells, name))
            roles.setdefault(role.means.quantity, []).append(role)
    letters = {name.lower(): name for name in cells}
    if {"x", "y"} <= letters.keys() and roles.keys().isdisjoint({"N", "cores", "lamda"}):
        roles |= {q: [Role(letters[n], meaning(letters[n]))] for q, n in (("N", "x"), ("X", "y"))}
    return roles | {quantity: [role, *roles.get(quantity, ())] for quantity, role in said.items()}


def _contents(cells: Cells, name: str) -> tuple[bool, bool, bool]:
    """Whether cells differ, some are numbers, and all are positive numbers."""
    texts = {text.replace(",", ".") for text in cells[name].values()}
    positive = all(is_number(text) and float(text) > 0 for text in texts)
    return len(texts) > 1, any(map(is_number, texts)), positive


def _load_and_throughput(roles: Roles, path: str | Path) -> tuple[Role, Role]:
    """The columns of load and throughput, or InputError with the options that name them."""
    rate = any(role.told for role in roles.get("lamda", ()))
    groups = [_preferred(roles, q) for q in (["lamda"] if rate else ["N", "cores", "lamda"])]
    varying = [group for group in groups if any(role.varies for role in group)]
    loads, results = next(iter([*varying, *filter(None, groups)]), []), _preferred(roles, "X")
    if len(loads) == len(results) == 1:
        return loads[0], results[0]
    raise InputError(f"{path}: {_doubt(roles, loads, results, path)}")


def _preferred(roles: Roles, quantity: str) -> list[Role]:
    """The columns that may be N or X: what the user said, or else those that vary, and of these the
    one that is called so. But beside errors, N may be the number of runs.
    """
    some = roles.get(quantity, [])
    if some and some[0].told:
        return some[:1]
    some = [role for role in some if role.varies] or some
    called = [role for role in some if role.means.plain == quantity.lower()]
    return some if quantity == "N" and roles.keys() & {"X_se", "X_sd"} else called or some


def _doubt(roles: Roles, loads: list[Role], results: list[Role], path: str | Path) -> str:
    """What is not known, and the options that say it."""
    doubts = []
    for found, what in ((loads, "load"), (results, "throughput")):
        if len(found) != 1:
            some = f"{listing(r.name for r in found)} may be" if found else "no column is known as"
            doubts.append(f"{some} the {what}")
    if not loads:
        doubts.append("a load is a number of users or threads, or the rate that a generator set")
    load, *names = _proposed(roles, loads, results)
    options = [load, f"X={names[0]}"]
    command = " ".join(f"--use {shlex.quote(option)}" for option in options)
    report = shlex.quote(f"use={','.join(options)}")
    how = f"as in: nummodel fit {shlex.quote(str(path))} {command} (in a report: -p {report})"
    by_time = [f"X={name}" for name in names if name.startswith("1/") and not results]
    if by_time:
        how += f"; --use {shlex.quote(by_time[0])} is right if all runs did the same work"
    return f"{', '.join(doubts)}, expected what they are, {how}"


def _proposed(roles: Roles, loads: list[Role], results: list[Role]) -> list[str]:
    """The option that names the load, and columns that may be the throughput, likely ones first."""
    some = [*roles.get("", ()), *roles.get("lamda", ())]
    free, known = [role for role in some if role.free], [role.name for role in results]
    loads = loads or free[:1]
    counted = {role.name: role.means.counts for role in free if role not in loads}
    load = f"N={loads[0].name}" if loads else f"lamda={known.pop(0)}" if known else "N=COLUMN"
    counts = [name for name in counted if counted[name]]
    times = [role.name for role in roles.get("elapsed", ()) if role.positive]
    rates = [f"{work}/{time}" for time, work in product(times, counts or ["1"])]
    return [load, *known, *(rates * bool(counts)), *counted, *rates, "COLUMN"]


def _odd(result: Role, weights: str) -> list[str]:
    """Warnings of a throughput that is none by its name, and of weights that are errors."""
    warnings, holds = [], result.means.quantity
    if holds[:1] in ("R", "Z") or holds in ("elapsed", "when", "run"):
        what = "numbers the runs" if holds == "run" else "is a time"
        warnings.append(f"{result.name!r} {what} by its name, and a throughput is work over time")
    if weights not in WEIGHTS and meaning(weights).quantity[1:] in ("_se", "_sd"):
        warnings.append(
            f"weights multiply squared residuals; for a standard error s they are 1/s^2, and "
            f"{weights} is used as it is"
        )
    return warnings


def _mixed(
    cells: Cells, roles: Roles, used: set[str], N: np.ndarray, path: str | Path
) -> list[str]:
    """Raises InputError for several systems in one file: for a column of texts, or another load, in
    which several values have two loads or more. Warns of a column of numbers that is not known, if
    all its values have that, and some loads have several of its values.
    """
    rows, warnings, mixed, options = np.ones(len(N), dtype=bool), [], [], []
    loads = [*roles.get("N", ()), *roles.get("cores", ())]
    for role in [*roles.get("", ()), *loads]:
        texts = np.array([cell.strip() for cell in cells[role.name].values()])
        pairs = {*zip(texts[rows].tolist(), N[rows].tolist(), strict=True)}
        different = Counter(text for text, _ in pairs)
        several = [text for text in dict.fromkeys(texts[rows].tolist()) if different[text] > 1]
        crossed = len(several) == len(different) and len(pairs) > len({*N})
        setting = role in loads or not role.numeric
        if role.name in used or len(several) < 2 or not (setting or crossed):
            continue
        what = f"the rows have different {role.name} ({listing(several, 3)})"
        option = f"--only {shlex.quote(f'{role.name}={several[0]}')}"
        if setting:
            mixed.append(what)
            options.append(option)
            rows &= texts == several[0]
        else:
            how = "and are fitted together; if these are configurations, pick one"
            warnings.append(f"{what} {how}: {option}")
    if mixed:
        how = f"expected rows of one, as by {' '.join(options)} (in a report: -p only=...)"
        runs = "if all are runs of one, call the column a run by --use run=NAME"
        raise InputError(f"{path}: {'; '.join(mixed)}, {how}; {runs}")
    return warnings


def _of_system(roles: Roles, load: Role, system: bool) -> list[tuple[str, Role]]:
    """The quantities of a system, each with its column. Columns that the user named come first,
    then columns that have the name of the quantity. Without a `system`, response times alone.
    """
    if not system:
        return [("R", role) for role in roles.get("R", ())]
    found = []
    for quantity, columns in roles.items():
        if re.fullmatch("R|Z|[Uc]_.*|1-.*", quantity):
            some = columns[:1] if columns[0].told else columns
            found += [(quantity.removeprefix("1-"), role) for role in some]
        elif quantity == "cores" and load not in columns:
            found += [("c_cpu", role) for role in columns if not role.varies]
    return sorted(found, key=lambda pair: (not pair[1].told, pair[1].name != pair[0]))


def _others(
    cells: Cells, wanted: list[tuple[str, Role]], path: Path, complete: bool
) -> tuple[dict[str, np.ndarray], dict[str, Role], list[str]]:
    """These columns, in seconds and shares, NaN in empty cells; of each its role, with the size of
    its unit; and what is not used, and why.
    """
    found: dict[str, np.ndarray] = {}
    used: dict[str, Role] = {}
    told: list[str] = []
    for quantity, role in wanted:
        try:
            if quantity in found:
                raise InputError(f"another column is {quantity} already")
            full, empty = _filled(cells, role.name, complete)
            values = table.numbers(full, role.name, path, positive=False)
            if (values < 0).any():
                expected = "expected no negative number"
                raise InputError(f"{path}: {role.name} is {values.min():g}, {expected}")
            size, notes = _size(role, quantity, values.max())
        except InputError as error:
            told.append(f"{role.name} is not used: {error}")
            continue
        values = values * size
        if role.means.quantity == f"1-{quantity}" and not role.told:
            values = 1 - values
        by_line = dict(zip(full[role.name], values, strict=True))
        used[quantity] = role._replace(means=role.means._replace(size=size))
        found[quantity] = np.array([by_line.get(line, np.nan) for line in cells[role.name]])
        told += notes
        if empty:
            of_file = " of the file" if empty.startswith("row") else ""
            told.append(f"{empty}{of_file}: left out, as {role.name} is empty there")
    return found, used, told


def _filled(cells: Cells, name: str, complete: bool) -> tuple[Cells, str]:
    """The cells of a column that are not empty, and in words which are. InputError for too many."""
    column = cells[name]
    full = {line: text for line, text in column.items() if text.strip().lower() not in EMPTY}
    empty = [str(line) for line in column if line not in full]
    if 2 * len(empty) >= len(column):
        raise InputError(f"it is empty in {len(empty)} rows")
    row = "row" if isinstance(next(iter(column)), int) else "run"
    rows = f"{row}{'s' * (len(empty) > 1)} {', '.join(empty)}"
    if empty and not complete:
        raise InputError(f"it is empty in {rows}; --law closed uses it, and leaves out the rows")
    return cells.of({name: full}), rows if empty else ""


def _size(role: Role, quantity: str, highest: float) -> tuple[float, list[str]]:
    """The size of a column's unit, and what is said of it. InputError for what is no share."""
    name, means, size = role.name, role.means, role.means.size
    if not quantity.startswith("U_"):
        counted = quantity == "c_cpu" and means.quantity == "cores" and not role.told
        return size, [f"{name} is taken as the number of processors, c_cpu"] * counted
    notes, idle = [], means.quantity == f"1-{quantity}"
    bare = not means.kind and means.plain[:2] != "U_"
    if bare and PERCENTS < highest <= 100 * FULLEST:
        size, notes = 0.01, [f"{name} is taken as percent, as it is up to {highest:g}"]
    if highest * size > (1 if idle else FULLEST):
        how = shlex.quote(f"{quantity}[%]={name}")
        share = f"expected a share, 1 at most; if it is in percent: --use {how}"
        expected = share if size == 1 else "expected 100 % at most"
        raise InputError(f"it is up to {highest:g}, {expected}")
    if idle and not role.told:
        waits = "time in which processors wait for I/O may be in it"
        notes = [f"{quantity} is 100 % - {name}: {waits}"]
    return size, notes


def _not_used(roles: Roles) -> list[str]:
    """What is said of columns that are known and of no use to a fit, and of those that are not
    known and hold different numbers, with the option that would use one.
    """
    told = []
    known = [f"{r.name} ({q})" for q in roles for r in roles[q] if re.match("R_|X_|errors", q)]
    if known:
        told.append(f"not used: {', '.join(known)}; a fit takes means, and no errors of them")
    rest = [role for role in roles.get("", ()) if role.numeric and role.varies]
    if rest:
        likely = min(rest, key=lambda role: role.means.kind not in ("time", "share"))
        name, kind = likely.name, likely.means.kind
        what, option = "a mean response time", f"{'R' if kind == 'time' else 'R[ms]'}={name}"
        if kind == "share":
            what, option = "the use of a station", f"U_NAME={name}"
        names = listing(role.name for role in rest)
        told.append(f"not used: {names}; if {name} is {what}, --use {shlex.quote(option)}")
    return told


def _run(cells: Cells, roles: Roles) -> np.ndarray | None:
    """The number of the run of each row; None unless there are several runs of several rows."""
    for role in roles.get("run", ()):
        names, run = np.unique(list(cells[role.name].values()), return_inverse=True)
        if 1 < len(names) <= len(run) / 2:
            return run
    return None

"""Two columns of a table, a load and a throughput, which are known by what their names say."""

import re
import shlex
from collections.abc import Iterable
from difflib import get_close_matches
from functools import cache
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from nummodel.errors import InputError
from nummodel.records import data
from nummodel.records.readers import table
from nummodel.records.readers.table import Cells, is_number

UNITS = "s sec secs second seconds ms msec us µs μs usec ns nsec "  # of time
UNITS += "min mins minute minutes h hour hours"
#: What a word of a column's name says about the column. Where words disagree, the first kind wins.
WORDS = {
    "other": "error errors err sd std stddev stdev stderr spread ci util utilization utilisation "
    "pct percent idle share ratio hit hits efficiency failures failed retries timeouts",
    "time": "time times latency latencies response rt duration elapsed wall delay wait waiting "
    "runtime walltime cputime when date datetime day timestamp epoch start end makespan sojourn "
    "r w " + UNITS,
    "run": "id ids run runs rep reps repeat repetition replicate iteration iter trial seed index "
    "idx row line sample round attempt uid pid",
    "configuration": "config configuration setting settings variant version release build host "
    "machine name mode branch commit compiler kernel engine",
    "throughput": "x throughput thruput xput tps qps rps iops ops tpm tpmc tph itr bandwidth "
    "speed speedup goodput rate",
    "load": "n thread threads client clients user users vusers connection connections processor "
    "processors cpus vcpus cores worker workers process processes procs nodes servers concurrency "
    "load population customers sessions terminals streams jobs parallelism",
}
BYTES = "kb mb gb tb kib mib gib tib"
COUNTED = (
    "ops operation operations req request requests tx txn transaction transactions query queries "
    f"message messages commit commits byte bytes {BYTES}"
).split()
KINDS = {word: kind for kind, words in reversed(WORDS.items()) for word in words.split()}
NUMBER = "n num number total count completed".split()
#: The words of a column that holds how long a run took; "min" and "hour" may be something else.
TAKEN = {
    *f"time total test run wall clock duration elapsed runtime walltime makespan {UNITS}".split()
}
TAKEN -= {"min", "second", "minute", "hour"}
#: What weights can be besides a column. `nummodel.fits` says what each means.
WEIGHTS = ("absolute", "relative", "log")


class Points(NamedTuple):
    """Measurements from a table: loads, throughputs, their weights (one of `WEIGHTS` or a column),
    the names of the two columns, and warnings of rows that may not belong together.
    """

    N: np.ndarray
    X: np.ndarray
    weights: str | np.ndarray
    x: str
    y: str
    warnings: tuple[str, ...] = ()

    def where(self, keep: np.ndarray) -> "Points":
        """The measurements for which `keep` is true."""
        weights = self.weights if isinstance(self.weights, str) else self.weights[keep]
        return self._replace(N=self.N[keep], X=self.X[keep], weights=weights)


def read(
    path: str | Path, x: str | None = None, y: str | None = None, weights: str = "absolute"
) -> Points:
    """Two columns of a CSV file, or of a published table by its name, in the units printed there.

    `x` and `y` name the columns of the load and of the throughput. Without them the columns are
    known by their names, such as N and X. `weights` is one of `WEIGHTS` or names a third column.
    "-" is standard input. Raises InputError for what cannot be used.
    """
    called, path = path, data.path(path)
    close = get_close_matches(str(path), data.tables(), 1, 0.7)
    if close and not path.exists():
        raise InputError(f"{path}: no such file and no such table, did you mean {close[0]}?")
    cells = table.read(path)
    if weights not in WEIGHTS and weights not in cells:
        expected = f"{', '.join(WEIGHTS)}, or a column of: {_listed(cells)}"
        raise InputError(f"{path}: weights {weights!r}, expected {expected}")
    load, result = _choose(cells, x, y, weights, called)
    N = _numbers(cells, load, path, "" if x or kind(load) == "load" else "x")
    X = _numbers(cells, result, path, "" if y or kind(result) == "throughput" else "y")
    own = weights if weights in WEIGHTS else table.numbers(cells, weights, path, positive=True)
    return Points(N, X, own, load, result, tuple(_pooled(cells, {load, result, weights}, N, path)))


@cache
def kind(name: str) -> str:
    """What a column holds, by its name: a kind of `WORDS`, or "" where the name says nothing.

    >>> kind("X, per s"), kind("latency_avg_ms"), kind("numClients"), kind("tps_per_client")
    ('throughput', 'time', 'load', 'other')
    """
    words = _words(name)
    if not words:
        return "run"  # as the column without a name, which pandas writes for row numbers
    # "N" is the load, but "n_requests" is how many requests there were, and "r_iops" are reads.
    some = [word for word in words if word not in ("n", "x")] or words
    known = [word for word in some if word in KINDS]
    kinds = {KINDS[word] for word in known if word not in ("r", "w")} or {KINDS[w] for w in known}
    times = {word for word in some if KINDS.get(word) == "time"}
    if "other" in kinds:
        return "other"
    after = [words[i + 1] for i, word in enumerate(words[:-1]) if word == "per"]
    if after and set(after) <= set(UNITS.split()):
        return "throughput"
    if after:
        return "time" if "time" in kinds else "other"
    if re.search("[kmgt]i?b_s($|[^a-z])", name.lower()):
        return "throughput"
    if times == {"s"} and set(words) & set(COUNTED):
        return ""  # "requests_s" may be requests per second
    if set(words) & set(NUMBER) and set(words) & set(COUNTED):
        return "other"
    if any(re.fullmatch("p[0-9]+|[0-9]+th", word) for word in words):
        return "time"
    return next((k for k in WORDS if k in kinds), "")


def _choose(
    cells: Cells, x: str | None, y: str | None, weights: str, path: str | Path
) -> tuple[str, str]:
    """The columns of load and throughput: those that are given, or known by their names.

    Raises InputError, with the command that names the columns, where several may be meant, or none.
    """
    names = [c for c in cells if c not in (x, y, weights)]
    for given in (x, y):
        if given is not None and given not in cells:
            raise InputError(f"{path}: no column {given!r}, expected one of: {_listed(cells)}")
    if (x is not None and x == y) or len(cells) < 2:
        how = "" if x else " (separate the cells by commas, semicolons or tabs)"
        alone = f"only {x or next(iter(cells))!r}, expected a column for X as well"
        raise InputError(f"{path}: {alone}{how}")
    loads = [x] if x is not None else _named(cells, names, "load", "N")
    results = [y] if y is not None else _named(cells, names, "throughput", "X")
    numeric = [c for c in names if _has_numbers(cells[c].values())]
    unclear = [c for c in numeric or names if not kind(c)]
    plain = {c.lower(): c for c in names}
    if x is y is None and not loads and {"x", "y"} <= set(plain):
        return plain["x"], plain["y"]
    if not loads and not results and len(unclear) == 2:
        loads, results = unclear[:1], unclear[1:]
    loads = loads or [c for c in unclear if c not in results]
    results = results or [c for c in unclear if c not in loads]
    counted = y is None and any(set(_words(c)) <= {*COUNTED, *NUMBER} for c in results)
    timed = any(kind(c) == "time" and set(_words(c)) <= TAKEN for c in names)
    if len(loads) == len(results) == 1 and not (counted and timed):
        return loads[0], results[0]
    raise InputError(f"{path}: {_doubt(loads, results, names, path)}")


def _numbers(cells: Cells, column: str, path: Path, guessed: str) -> np.ndarray:
    """A column of positive numbers; of one that was guessed, how to name another."""
    try:
        return table.numbers(cells, column, path, positive=True)
    except InputError as error:
        how = f"no {guessed} was given: --{guessed} NAME, or in a report -p {guessed}=NAME"
        hint = f" ({how}; the columns are: {_listed(cells)})" if guessed else ""
        raise InputError(f"{error}{hint}") from None


def _pooled(cells: Cells, used: set[str], N: np.ndarray, path: str | Path) -> list[str]:
    """Warnings of several configurations in one file: columns that are neither used nor measured,
    in which several values have two different loads or more. Where the name says nothing, a column
    of numbers is a setting if all its values have that, and some loads have several of its values.
    """
    warnings = []
    for place, (name, column) in enumerate(cells.items(), 1):
        texts, what = list(column.values()), kind(name)
        setting = what in ("configuration", "load") or not _has_numbers(texts)
        if name in used or what in ("run", "time") or (what and not setting):
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
            how = f"{split} | nummodel fit -" if str(path) != "-" else ""  # it has been read
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


def _words(name: str) -> list[str]:
    """The words of a name in lower case: "numClients", "MB/s" are num, clients and mb, per, s."""
    parted = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name.replace("/", " per ")).lower()
    return re.findall(r"[^\W_]+", parted)


def _named(cells: Cells, names: list[str], wanted: str, letter: str) -> list[str]:
    """The columns of a kind: those whose first word is its capital letter; without such columns,
    those with several values; without those, all.
    """
    columns = [c for c in names if kind(c) == wanted]
    varied = [c for c in columns if len(set(cells[c].values())) > 1]
    called = [c for c in columns if c.startswith(letter) and _words(c)[0] == letter.lower()]
    return called or varied or columns


def _doubt(loads: list[str], results: list[str], names: list[str], path: str | Path) -> str:
    """What is not clear, and the command that says it."""
    what, candidates = ("load", loads) if len(loads) != 1 else ("throughput", results)
    doubt = f"{_listed(candidates)} may be the {what}"
    if len(candidates) == 1:
        doubt = f"{results[0]} may be a count, and a throughput is a rate"
    if not candidates:
        doubt = f"no column is known as the {what}"
        if what == "throughput" and (times := [c for c in names if kind(c) == "time"]):
            doubt += f" ({_listed(times)}: a time; a throughput is work over time)"
    load = (loads or [c for c in names if c not in results] or ["COLUMN"])[0]
    may = results or [c for c in names if kind(c) not in ("time", "run")]  # be a throughput
    result = ([c for c in may if c != load] or ["COLUMN"])[0]
    file, load, result = (shlex.quote(str(part)) for part in (path, load, result))
    return (
        f"{doubt}, expected one that is named, as in: nummodel fit {file} --x {load} --y {result} "
        f"(in a report: -p x={load} -p y={result})"
    )

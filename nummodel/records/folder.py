"""A folder with the outputs of several tools, side by side, as one table of measurements.

The files of one run have the same name, except for the word that names the tool:
`64th.sysbench.txt` and `64th.vmstat.txt` belong together. N, X and R come from the file of the load
generator, and utilisations from the other files.
"""

import os
import re
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

from nummodel.errors import InputError
from nummodel.records import _steady, readers
from nummodel.records.readers import Column, Reading

#: Files of a folder, at most.
MOST = 10_000
#: Words in a file's name that name a tool, or the kind of its output.
TOOLS = (
    "sysbench pgbench wrk2 wrk k6 ab hey oha vegeta autocannon bombardier locust jmeter jtl vllm "
    "sglang guidellm memtier ycsb hammerdb ghz gatling fio mpstat sar iostat vmstat sysstat cpu "
    "disk load summary out cgroup stat stdout stderr x command output log txt json csv result "
    "results progress"
).split()
#: Files of which the same is told are named up to this number.
NAMED = 5
#: What readers say of every file.
ROUTINE = re.compile("^(The first (row|report) is|Columns|Counts) left out|^read as")
#: How files of runs end that `measure` did not finish.
UNFINISHED = (".part", ".failed")
#: The name of a tool, perhaps with a number, as in vmstat8.
TOOL = re.compile(f"^({'|'.join(TOOLS)})([0-9]*)$", re.IGNORECASE)
#: A word in a file's name that numbers the repeats of one load.
REPEAT = re.compile(r"(^|[._\- ]+)(repeat|rep|run|iteration|iter|trial|r)[._\- ]?\d+", re.I)
#: The first columns of the table.
FIRST = ("N", "X", "R", "series", "run")
#: What the files of a run have in common, and files with what is told of them.
Key = tuple[tuple[str, Any], ...]
Told = list[tuple[str, str]]
#: Columns of samples that are no measurements.
NO_MEANS = {"t", "run", "N", "c_cpu"}
#: The readers of load generators.
LOADS = (
    *("sysbench", "pgbench", "wrk", "k6", "ab", "hey", "vegeta", "autocannon", "bombardier"),
    *("locust", "jmeter", "serving", "guidellm", "redis_benchmark", "memtier", "ycsb"),
    *("hammerdb", "ghz", "gatling", "fio", "table"),
)
#: If several tools report the same figure, the figure of the tool that comes first here is taken.
ORDER = (*LOADS, "vmstat", "sysstat", "iostat", "cgroup")
#: Shares and times may differ by so much between two tools before it is told.
AGREE = 0.02
#: What is told of a run, where a figure of a tool that watched it is above this share.
TAKEN = {
    "steal": (0.01, "a hypervisor took {:.1%} of the processors"),
    "throttled": (0.01, "the limit of processor time stopped the program in {:.1%} of its periods"),
}


class Output(NamedTuple):
    """A file, by its path inside the folder, the name of its reader, and what it found."""

    path: Path
    reader: str
    reading: Reading


def read(folder: str | Path, pattern: str = "") -> Reading:
    """One row for each run in a folder, subfolders included.

    Samples are averaged over the steady part; `name_se` is the standard error of the mean `name`.
    `pattern` says what the names of files tell, such as `{engine}_{N}th.{tool}.txt`: its names
    become columns, but for `tool`, and files with the same values belong together. Raises
    InputError for a folder in which no file is a run of a load generator.
    """
    import pandas as pd

    runs, told = _runs(Path(folder), pattern)
    rows: list[dict[str, Any]] = []
    columns: dict[str, Column] = {}
    for key in sorted(runs, key=_order):
        outputs = sorted(runs[key], key=lambda output: ORDER.index(output.reader))
        for row in _rows(outputs, told):
            rows.append(row.named(dict(key)))
            columns |= row.columns
    if not rows:
        expected = "expected outputs of load generators, or tables with N and X"
        why = "; ".join(_once(told))
        raise InputError(f"{folder}: no run of a load generator, {expected}; {why}")
    _add_series(rows)
    _add_processors(rows, told)
    table = pd.DataFrame(rows)
    table = table[sorted(table, key=lambda name: (*FIRST, name).index(name))]
    given = Column("-", "from the names of the files")
    left_out = {name for name, what in told if what.startswith("left out")}
    used = [o for outputs in runs.values() for o in outputs if str(o.path) not in left_out]
    told += [(str(o.path), f"read as the output of {o.reader}") for o in used]
    return Reading(table, {n: columns.get(n, given) for n in table}, _once(told))


def _runs(folder: Path, pattern: str) -> tuple[dict[Key, list[Output]], Told]:
    """The outputs of each run, and which files are left out, and why."""
    runs: dict[Key, list[Output]] = {}
    told: Told = []
    regex = _compiled(pattern) if pattern else None
    for path in _files(folder):
        short = path.relative_to(folder)
        try:
            key = _key(short, regex)
            output = Output(short, *_recognised(path, dict(key).get("N")))
        except InputError as error:
            told.append((str(short), f"left out: {error}"))
        else:
            runs.setdefault(key, []).append(output)
    return runs, told


def _recognised(path: Path, N: float | None) -> tuple[str, Reading]:
    """The reader of a file of a load test, whose name may tell the load N, and what it found.
    Raises InputError for another file.
    """
    try:
        name, reading = readers.read(path, n=N)
    except InputError as error:
        raise InputError(str(error).removeprefix(str(path))[1:].strip()) from None
    if name not in ORDER or (name == "table" and not {"N", "X"} <= set(reading.table)):
        raise InputError(f"{name} is no part of a load test")
    if name in LOADS and (wrong := unfit(reading.table)):
        raise InputError(f"{wrong}, expected a positive number")
    return name, reading


def unfit(table) -> str:
    """The first load or throughput of a table that is no positive number, in words."""
    for name in ("N", "X"):
        for value in table.get(name, ()):
            try:
                positive = 0 < float(value) < inf
            except ValueError:
                positive = False
            if not positive:
                return f"{name} is {value!r}"
    return ""


def _add_series(rows: list[dict[str, Any]]) -> None:
    """What the names of runs have in common: without the number that is the load in all names of
    the same kind, and without a number of the repeat.
    """
    kinds: dict[tuple, list[tuple[dict, list[str]]]] = {}
    for row in rows:
        if "run" in row:
            words = tuple(re.split(r"\d+", row["run"]))
            kinds.setdefault(words, []).append((row, re.split(r"(\d+)", row["run"])))
    for words, some in kinds.items():
        numbers = range(1, 2 * len(words) - 1, 2)
        loads = [i for i in numbers if all(float(parts[i]) == row["N"] for row, parts in some)]
        for row, parts in some if loads else ():
            parts[loads[-1]] = "N"
            row["series"] = REPEAT.sub("", "".join(parts))


def _add_processors(rows: list[dict[str, Any]], told: Told) -> None:
    """The number of processors, which not every tool prints, from the other runs if they agree."""
    known = {row["c_cpu"] for row in rows if "c_cpu" in row}
    for row in rows if len(known) == 1 else ():
        if "U_cpu" in row and "c_cpu" not in row:
            (row["c_cpu"],) = known
            told.append((row.get("run", f"N = {row['N']:g}"), "c_cpu is that of the other runs"))


def _once(told: Told) -> tuple[str, ...]:
    """Of sentences that differ in figures and names of files only, the first, and the names of some
    files of which the others are. What readers always leave out comes last.
    """
    alike: dict[str, list[tuple[str, str]]] = {}
    for name, what in sorted(told, key=lambda pair: ROUTINE.search(pair[1]) is not None):
        alike.setdefault(re.sub(r"[0-9.]+|\S+\.\w+$", "#", what), []).append((name, what))
    found = []
    for (name, what), *others in alike.values():
        names = ", ".join(other for other, _ in others[:NAMED])
        more = f" and {len(others) - NAMED} more" if len(others) > NAMED else ""
        found.append(f"{name}: {what}{f' (the same: {names}{more})' if others else ''}")
    return tuple(found)


def _files(folder: Path) -> list[Path]:
    """The files of a folder, in order, but for hidden ones and those of runs that failed."""
    found: list[Path] = []
    for place, inside, names in os.walk(folder):
        inside[:] = [name for name in inside if not name.startswith(".")]
        paths = [Path(place, name) for name in names if not name.startswith(".")]
        found += [p for p in paths if os.path.isfile(p) and p.suffix not in UNFINISHED]
        if len(found) > MOST:
            raise InputError(f"{folder}: more than {MOST:,} files, expected a folder of one study")
    if not found:
        raise InputError(f"{folder}: no files, expected outputs of measuring tools")
    return sorted(found)


def _key(path: Path, pattern: re.Pattern | None) -> Key:
    """What the files of one run have in common: the values in the pattern, or the name without
    the words that name a tool. Raises InputError if the pattern does not match.
    """
    if pattern is None:
        words = re.split(r"([._\- ]+)", path.name)
        kept = [TOOL.sub(r"\2", word) for word in words]
        name = re.sub(r"([._\- ])[._\- ]+", r"\1", "".join(kept)).strip("._- ")
        return (("run", str(path.parent / name)),)
    whole = "/" in pattern.pattern
    found = pattern.fullmatch(str(path) if whole else path.name)
    if not found:
        raise InputError("its name does not match the pattern")
    place = {} if whole or path.parent == Path() else {"folder": str(path.parent)}
    parts = place | {n: v for n, v in found.groupdict().items() if n != "tool"}
    return tuple((n, float(v) if n == "N" else v) for n, v in parts.items())


def _compiled(pattern: str) -> re.Pattern:
    """A pattern of names as a regular expression."""
    regex = re.sub(r"\\{(\w+)\\}", r"(?P<\1>.+?)", re.escape(pattern))
    try:
        return re.compile(regex.replace("(?P<N>.+?)", "(?P<N>[0-9]+)"))
    except re.error as error:
        raise InputError(f"pattern {pattern!r}: {error}, expected names in braces once") from None


def _order(key: Key) -> list:
    """Numbers in names in the order of numbers."""
    text = " ".join(str(v) for _, v in key)
    return [(0, float(p), "") if p.isdecimal() else (1, 0.0, p) for p in re.split(r"(\d+)", text)]


def _rows(outputs: list[Output], told: Told) -> list["Row"]:
    """The row of a run; or a row for each, if one file has several. None if no file is of a load
    generator.
    """
    main = next((o for o in outputs if o.reader in LOADS and "N" in o.reading.table), None)
    if not main:
        why = "left out: no load generator has a file of this name (--pattern says what names tell)"
        told += [(str(o.path), why) for o in outputs]
        return []
    rows = [Row(main, told, place) for place in range(len(main.reading.table))]
    others = [o for o in outputs if o is not main]
    if len(rows) > 1:
        told += [(str(o.path), f"left out, as {main.path} has several runs") for o in others]
        return rows
    rows[0].add_errors(main)
    for output in others:
        rows[0].add(output)
    return rows


class Row:
    """The figures of a run, and the meanings of its columns. What is odd is `told`."""

    def __init__(self, output: Output, told: Told, place: int = 0):
        self.name, self.told = str(output.path), told
        figures = output.reading.table.iloc[place].drop("run", errors="ignore").dropna()
        self.figures: dict[str, Any] = figures.to_dict()
        self.columns = {n: output.reading.columns[n] for n in self.figures}
        if place == 0:
            told += [(self.name, what) for what in output.reading.left_out]

    def say(self, what: str) -> None:
        """Tell something of the file of the load generator."""
        self.told.append((self.name, what))

    def named(self, key: dict[str, Any]) -> dict[str, Any]:
        """The figures with what the name of the run tells. What was taken from the run is told."""
        for name, (share, what) in TAKEN.items():
            if self.figures.get(name, 0.0) > share:
                self.say(what.format(self.figures[name]))
        N, named = self.figures["N"], key.pop("N", None)
        if named is not None and named != N:
            self.say(f"the name says N = {named:g}, and the tool {N:g}")
        return key | self.figures

    def _add(self, name: str, mean: float, error: float, column: Column) -> None:
        """A mean with its standard error."""
        self.figures |= {name: mean, f"{name}_se": error}
        self.columns |= {
            name: column,
            f"{name}_se": Column(column.unit, f"standard error of {name}"),
        }

    def add_errors(self, output: Output) -> None:
        """Standard errors of X and R from the samples of a load generator. What it prints counts
        the whole run, so that a warm-up is told.
        """
        samples = output.reading.samples
        if samples is None or "X" not in samples or len(samples) < _steady.FEWEST:
            return
        part = _steady.find(samples["X"].to_numpy())
        for name in sorted({"X", "R"} & {*samples} & {*self.figures}, reverse=True):
            mean, error = part.mean(samples[name].to_numpy())
            whole = self.figures[name]
            self._add(name, whole, error, self.columns[name])
            if abs(mean - whole) > max(AGREE * whole, 3 * error):
                steady_from = f"{mean:.5g} from t = {samples['t'].iloc[part.first]:g} s on"
                self.say(f"{name} is {whole:.5g} for the whole run, and {steady_from}")

    def add(self, output: Output) -> None:
        """Add what another output says of the run, or compare with it."""
        if output.reader in LOADS:
            self._compare(output)
        elif output.reader == "cgroup":
            self._limit(output)
        else:
            self._watch(output)

    def _compare(self, output: Output) -> None:
        """Tell where another load generator, unless it logged one thread, has another figure."""
        X = float(output.reading.table["X"].iloc[0])
        if "N" in output.reading.table and abs(X / self.figures["X"] - 1) > AGREE:
            self.say(f"X is {self.figures['X']:g}, and {X:g} in {output.path}")

    def _limit(self, output: Output) -> None:
        """Add the counts of the group, of several, that was stopped most often."""
        counts = output.reading.table.iloc[0].to_dict()
        if counts["throttled"] >= self.figures.get("throttled", 0.0):
            self.figures |= counts
            self.columns |= output.reading.columns

    def _watch(self, output: Output) -> None:
        """Add means over the samples of a tool that watched the run."""
        path, samples, columns = str(output.path), output.reading.samples, output.reading.columns
        if samples is None or not len(samples):
            self.told.append((path, "left out: no samples of the run"))
            return
        names = [n for n in samples.select_dtypes("number") if n not in NO_MEANS]
        usual = min(names, key=lambda name: name != "U_cpu")
        part = _steady.find(samples[usual].to_numpy())
        for name in names:
            mean, error = part.mean(samples[name].to_numpy())
            if name not in self.figures:
                self._add(name, mean, error, columns[name])
            elif name.startswith("U_") and abs(mean - self.figures[name]) > AGREE:
                self.say(f"{name} is {self.figures[name]:.3g}, and {mean:.3g} in {path}")
        if "c_cpu" in output.reading.table:
            self.figures.setdefault("c_cpu", output.reading.table["c_cpu"].iloc[0])
            self.columns["c_cpu"] = columns["c_cpu"]
        self.told += [(path, what) for what in output.reading.left_out]
        if part.warm:
            self.told.append((path, f"{part.first} samples of warm-up are cut"))

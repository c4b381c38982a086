"""Load generators as declarations: how a run begins, which line has which figure, what is told.

A reader declares a `Tool` and takes its `recognises` and `parse`. A run that was cut is left out
and told if others are whole.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from nummodel.records.readers._lines import figure, leaves, parts, short
from nummodel.records.readers._loads import NO_LOAD, OPEN, meanings
from nummodel.records.readers._reading import Column, Malformed, Reading

if TYPE_CHECKING:
    import pandas as pd

#: Characters of a line that patterns see, at most; those of a line with reports.
LONGEST, LONGEST_REPORT = 1000, 100_000
#: Characters at the beginning and the end of a text in which a tool is recognised.
LOOK = 20_000
#: The beginning of a line and its indent, to the last blank.
START = r"^[ \t]*(?![ \t])"
#: A pattern that no line matches.
NEVER = r"(?!)"
#: What people write above a run: the name of a machine, or a heading.
LABEL = re.compile(
    r"(?:\w[\w-]{0,40} )?(?:instance|machine|host|hardware|mode|engine|configuration|config)"
    r"(?: type| name)? ?: *(\S.{0,80})|#{1,6} +(?!of samples: )(\S.{0,80})",
    re.IGNORECASE,
)


#: Lines with their numbers.
Lines = list[tuple[int, str]]


class Field(NamedTuple):
    """Lines that a pattern matches, and the columns of its groups, each with a unit as `figure`
    takes it: "R:ms R_max:ms". The first group is the percentile if a name has {}.
    """

    names: str
    pattern: str

    def figures(self, found: re.Match, line: int) -> dict[str, Any]:
        """The columns of a line."""
        groups = [cell or "" for cell in found.groups()]
        key = short(groups.pop(0).replace("_", ".")) if "{}" in self.names else ""
        if "{}" in self.names and not re.fullmatch(r"[0-9]+(\.[0-9]+)?", key):
            return {}
        names = (name.format(key).partition(":") for name in self.names.split())
        cells = zip(names, groups, strict=False)
        row = {name: figure(cell, unit, line, name) for (name, _, unit), cell in cells}
        return {name: value for name, value in row.items() if value is not None}


@dataclass
class Run:
    """The lines of a run, its figures, its intervals, and what is said of it."""

    lines: Lines
    row: dict[str, Any] = field(default_factory=dict)
    samples: list[dict[str, Any]] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    failed: float = 0.0
    open: bool = False


@dataclass(frozen=True, kw_only=True)
class Tool:
    """A load generator. Patterns are matched at the beginning of lines without their indent.

    `begins` are alternatives for the first line of a run, the first that a text has counts; `known`
    is a pattern in a text of the tool if these are not enough, `unlike` one of another tool's. For
    JSON, `keys` are strings in the document and `each` the list of runs. `ends` is after the last
    line that counts, and `part` in each run; lines after the end are of the next if they `precede`
    it. `codes` are a kind of response with its count, which `good` matches if it is a success, and
    `lost` a count of failures beside these. `needs` are columns without which a run was cut.
    `rated` is a line that says that a rate was set, `notes` are lines with sentences. `apart` tells
    apart runs whose lines are mixed.
    """

    fields: tuple[Field, ...]
    begins: tuple[str, ...] = (NEVER,)
    known: str = ""
    unlike: str = NEVER
    keys: tuple[str, ...] = ()
    each: str = ""
    ends: str = NEVER
    part: str = ""
    precede: bool = False
    codes: str = NEVER
    good: str = "[123]"
    lost: str = NEVER
    needs: Mapping[str, str] = field(default_factory=dict)
    errors: str = NEVER
    rated: str = NEVER
    notes: tuple[tuple[str, str], ...] = ()
    own: Mapping[str, Column] = field(default_factory=dict)
    samples: Callable[[int, str], list[dict[str, Any]] | None] | None = None
    apart: Callable[[Lines], list[Lines]] | None = None
    finish: Callable[[Run], None] | None = None
    last: bool = False
    work: str = "requests"
    clients: str = "clients"
    agree: float = 0.2
    why: str = ""
    failures: str = "{:,.0f} of {:,.0f} requests failed, and are counted in X"
    no_rate: str = "this test prints no rate"

    @cached_property
    def _patterns(self) -> list[tuple[re.Pattern, Field]]:
        """The pattern of each field."""
        return [(re.compile(f.pattern), f) for f in self.fields]

    @cached_property
    def _any(self) -> re.Pattern:
        """A line that says anything at all."""
        said = [self.ends, self.errors, self.rated, f".*?(?:{self.codes})", self.lost]
        said += [pattern for pattern, _ in self.notes]
        said += [f.pattern for f in self.fields]
        return re.compile("|".join(f"(?:{pattern})" for pattern in said))

    def recognises(self, text: str) -> bool:
        """Whether a text has the head of a run, or the keys of a document."""
        if text.lstrip()[:1] == "{":
            return bool(self.keys) and all(key in text for key in self.keys)
        known = self.known or "|".join(self.begins)
        ends = text if len(text) < 2 * LOOK else f"{text[:LOOK]}\n{text[-LOOK:]}"
        found = re.search(rf"{START}(?:{known})", ends, re.MULTILINE)
        return found is not None and not re.search(rf"{START}(?:{self.unlike})", ends, re.M)

    def parse(self, text: str) -> Reading:
        """A row for each run. Raises Malformed for a text without a whole run."""
        import pandas as pd

        rows, samples, told = [], [], []
        cut: Malformed | None = None
        runs = self._runs(text)
        for number, (label, lines) in enumerate(runs, 1):
            try:
                run = self._run(lines)
            except Malformed as error:
                cut = cut or error
                where = f"line {error.line}: " if error.line else ""
                told.append((1, number, f"left out: {where}{error.wrong}"))
                continue
            rows.append(run.row | {"label": label})
            samples += [{"run": number, **report} for report in run.samples]
            told += [(0, number, what) for what in _worthless(run)]
            told += [(1, number, what) for what in run.errors]
            told += [(2, number, what) for what in dict.fromkeys(run.notes)]
        if cut and not rows:
            raise cut
        table, series = _with_series(pd.DataFrame(rows)), pd.DataFrame(samples)
        columns = meanings([*table, *series], self.own)
        said = _once(sorted(told, key=lambda one: one[:2]), len(runs))
        return Reading(table, columns, said, series if samples else None)

    def _runs(self, text: str) -> list[tuple[str, Lines]]:
        """The lines of each run, and the label above it."""
        if text.lstrip()[:1] == "{" and self.keys:
            return [("", lines) for lines in self._apart(leaves(text, self.each))]
        runs = self._labelled(text)
        if self.part:
            part = re.compile(self.part)
            runs = [run for run in runs if any(part.match(line) for _, line in run[1])] or runs
        return [(label, lines) for label, run in runs for lines in self._apart([run])]

    def _labelled(self, text: str) -> list[tuple[str, Lines]]:
        """The lines of each part that begins as a run does, and the label above it."""
        have = (b for b in self.begins if re.search(rf"{START}(?:{b})", text, re.MULTILINE))
        begins, ends = re.compile(next(have, self.begins[0])), re.compile(self.ends)
        label, runs, left = "", [], []
        for lines in parts(text, begins):
            start = _first(begins, lines, 0)
            if self.precede:
                last = 1 + _first(ends, lines, len(lines), start + 1)
                left, lines, start = lines[last:], left + lines[:last], start + len(left)
            label = self._label(lines[:start]) or label
            runs.append((label, lines))
            label = self._label(lines[start:]) or label
        return runs

    def _apart(self, runs: Iterable[Lines]) -> list[Lines]:
        """The runs whose lines are mixed, each alone."""
        return [lines for run in runs for lines in (self.apart(run) if self.apart else [run])]

    def _label(self, lines: Lines) -> str:
        """The labels in some lines, or ""."""
        found = (LABEL.fullmatch(text[:LONGEST]) for _, text in lines)
        return " ".join(one[1] or one[2] for one in found if one and not self._any.match(one[0]))

    def _run(self, lines: Lines) -> Run:
        """The figures of a run. Raises Malformed if it was cut."""
        run = Run(lines)
        for line, text in lines:
            if self.samples and (reports := self.samples(line, text[:LONGEST_REPORT])) is not None:
                run.samples += reports
                if not reports:
                    run.notes.append("reports that have no throughput are left out")
                continue
            text = text[:LONGEST]
            if not self._any.match(text):
                continue
            self._say(run, line, text)
            self._count(run, text)
            if re.match(self.ends, text):
                break
            for pattern, one in self._patterns:
                if found := pattern.match(text):
                    figures = one.figures(found, line)
                    run.row |= figures if self.last else figures | run.row
        run.row = {n: float(count) for n, count in run.counts.items()} | run.row
        if self.finish:
            self.finish(run)
        run.failed = run.failed or run.row.get("failed", 0.0)
        if not run.row.get("rate", 1):
            del run.row["rate"]
        self._check(run)
        self._tell(run)
        return run

    def _say(self, run: Run, line: int, text: str) -> None:
        """What a line says in words."""
        if re.match(self.errors, text):
            run.errors.append(f"line {line} says: {text[:200]}")
        run.open |= re.match(self.rated, text) is not None
        for pattern, sentence in self.notes:
            if found := re.match(pattern, text):
                run.notes.append(sentence.format(*(str(g)[:200] for g in found.groups())))

    def _count(self, run: Run, text: str) -> None:
        """The responses in a line by their kind, and failures that are no responses."""
        counts = [("lost", found[1]) for found in [re.match(self.lost, text)] if found]
        for found in re.finditer(self.codes, text):
            kind, count = (group for group in found.groups() if group is not None)
            counts.append(("events", count))
            counts += [("failed", count)] * (not re.match(self.good, kind))
        for name, count in counts:
            run.counts[name] = run.counts.get(name, 0) + int(count[:18])

    def _check(self, run: Run) -> None:
        """What a whole run has. Raises Malformed."""
        row, (first, _), (last, _) = run.row, run.lines[0], run.lines[-1]
        why = run.errors[-1] if run.errors else "the output was cut, or the run failed"
        if missing := [n for n in self.needs if n not in row]:
            where = f" of the run from line {first} on" if first else ""
            raise Malformed(last, f"no {self.needs[missing[0]]}{where}: {why}")
        counted = row.get("events", 0.0) / (row.get("time") or float("inf"))
        if counted and not row.get("X"):
            reason = "the rate that is printed is 0" if "X" in row else self.no_rate
            row["X"] = counted
            run.notes.append(f"X is events over total time: {reason}")
        if "X" not in row:
            raise Malformed(last, f"no throughput: {why}")
        if row.get("N", 1) < 1:
            raise Malformed(first, f"the run has no {self.clients}, expected one at least")
        if counted and not run.failed and not 0.9 < row["X"] / counted < 1.1:
            run.notes.append(f"X is {row['X']:.5g}, and events over total time is {counted:.5g}")

    def _tell(self, run: Run) -> None:
        """Whether N is a load, and what does not agree with it."""
        row = run.row
        if run.failed > 0 and self.failures:
            run.errors.append(self.failures.format(run.failed, row.get("events", 0.0)))
        if run.open:
            run.notes.append(f"{self.work} {OPEN}")
            if "N" in row:
                row["clients"] = row.pop("N")
        elif "N" in row:
            busy = row["X"] * row.get("R", 0.0)
            if busy and abs(busy / row["N"] - 1) > self.agree:
                at_once = f"X R = {busy:.3g} {self.work} are under way"
                run.notes.append(f"{at_once}, and there are {row['N']:g} {self.clients}{self.why}")
        elif "clients" not in row:
            run.notes.append(NO_LOAD)


def _first(pattern: re.Pattern, lines: Lines, none: int, start: int = 0) -> int:
    """The place of the first line that a pattern matches."""
    places = (i for i, (_, line) in enumerate(lines) if i >= start and pattern.match(line))
    return next(places, none)


def _once(told: list[tuple[int, int, str]], runs: int) -> tuple[str, ...]:
    """Sentences with the number of the run, but for those that are true of all runs."""
    often = Counter(what for _, _, what in told)
    said = (what if often[what] == runs else f"run {n}: {what}" for _, n, what in told)
    return tuple(dict.fromkeys(said))


def _with_series(table: "pd.DataFrame") -> "pd.DataFrame":
    """With one column for what differs between the runs: labels above them, and their own words."""
    words = [n for n in ("label", "series", "mode") if n in table]
    differ = [n for n in words if table[n].nunique(dropna=False) > 1]
    said = table[differ].fillna("").agg(" ".join, axis=1).str.strip()
    table = table.drop(columns=words)
    first = [n for n in ("N", "X", "R") if n in table]
    table = table[first + [n for n in table if n not in first]]
    return table.assign(series=said) if differ else table


def _worthless(run: Run) -> list[str]:
    """Whether more of a run failed than succeeded."""
    events, failed, lost = run.row.get("events", 0.0), run.failed, run.row.get("lost", 0.0)
    if not events or 2 * failed + lost <= events:
        return []
    return [
        f"{failed + lost:,.0f} failures beside {events - failed:,.0f} successes: more failed than "
        "succeeded, so these figures are not those of the work"
    ]

"""What came of runs, and the table of several: their parameters and what they recorded."""

import csv
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from io import StringIO
from typing import Any

from nummodel.errors import cell
from nummodel.records import claims, data
from nummodel.reports.files import COLUMNS
from nummodel.reports.notebook import summary
from nummodel.reports.runs import Run

#: Digits of a figure in the table. A search finds the same six or seven on any machine; claims.json
#: has all that this machine has found.
DIGITS = 6


@dataclass(frozen=True)
class Outcome:
    """What came of a run: the executed notebook; `error` is empty if it ran to its end.

    Of a run that is not done, `notebook` is the one that is to be executed.
    """

    run: Run
    notebook: Any
    seconds: float
    error: str
    kept: bool = False  # from an earlier report
    paged: bool = True  # has a page, to which the index can link
    earlier: bool = False  # by another command than the one that writes the index
    unfinished: str = ""  # "waiting" or "running", as long as the run is not done

    @cached_property
    def claims(self) -> list[dict]:
        return list(claims.collected(self.notebook))

    @property
    def checked(self) -> list[dict]:
        """The claims without what was merely recorded."""
        return [claim for claim in self.claims if claim["kind"] != "record"]

    @property
    def status(self) -> str:
        """In one word, as results.csv has it."""
        return self.unfinished or ("failed" if self.error else "executed")

    @property
    def held(self) -> bool:
        """Whether it ran to its end and every claim held."""
        return not self.error and all(claim["ok"] for claim in self.claims)

    @property
    def records(self) -> dict[str, Any]:
        """The recorded values by their names."""
        return {c["what"]: c["model"] for c in self.claims if c["kind"] == "record"}

    @property
    def title(self) -> str:
        """The question that is the notebook's title."""
        return summary(self.notebook)[0]

    @property
    def answer(self) -> str:
        """The paragraph that answers it, as markdown; empty if it is not about this run."""
        return self.about(summary(self.notebook)[1])

    @property
    def own(self) -> bool:
        """Whether it is about a file or a folder of the reader's own."""
        file = self.run.parameters.get("file", "")
        return bool(file) and file not in data.tables()

    def about(self, markdown: str) -> str:
        """Markdown without the paragraphs and list items that only hold for the notebook as it
        stands: those that have one of the words that its metadata name as `example`, where the run
        has parameters of its own.
        """
        words = self.notebook["metadata"].get("nummodel", {}).get("example") or []
        if not words or not self.run.parameters:
            return markdown
        words = [words] if isinstance(words, str) else words
        parts = re.split(r"(?=\n\n|\n- )", markdown)
        return "".join(p for p in parts if not any(word in p for word in words))

    @property
    def found(self) -> str:
        """What a run with parameters of its own recorded as its answer, or nothing."""
        return self.records.get("answer", "") if self.run.parameters else ""


def table(outcomes: list[Outcome]) -> str:
    """One line a run, as CSV: parameters, status, time, claims that hold, and what it recorded.

    An interval takes two columns, since no program reads it in one. A text that a spreadsheet
    would compute has an apostrophe before it.
    """
    parameters, records = given(outcomes), [_flat(outcome.records) for outcome in outcomes]
    recorded = _names(records)
    rows: list[list[Any]] = [[*COLUMNS, *(f"parameter {name}" for name in parameters), *recorded]]
    for outcome, values in zip(outcomes, records, strict=True):
        run, claims = outcome.run, outcome.checked
        done = [f"{outcome.seconds:.2f}", len(claims), sum(claim["ok"] for claim in claims)]
        row: list[Any] = [run.name, run.notebook.stem, outcome.status]
        row += [*(["", "", ""] if outcome.unfinished else done), outcome.error]
        row += [run.parameters.get(name) for name in parameters]
        rows.append(row + [values.get(name) for name in recorded])
    text = StringIO()
    csv.writer(text, lineterminator="\n").writerows(map(_cell, row) for row in rows)
    return text.getvalue()


def given(outcomes: list[Outcome]) -> list[str]:
    """The names of the parameters that some of the runs were given."""
    return _names(o.run.parameters for o in outcomes)


def varying(outcomes: list[Outcome]) -> list[str]:
    """The names of the recorded values that are not the same in all runs that reached them."""
    records = [outcome.records for outcome in outcomes]
    seen = {name: {repr(r[name]) for r in records if name in r} for name in _names(records)}
    return [name for name, values in seen.items() if len(values) > 1]


def _names(mappings: Iterable[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(name for mapping in mappings for name in mapping))


def _flat(records: dict[str, Any]) -> dict[str, Any]:
    """Intervals as their two ends."""
    flat: dict[str, Any] = {}
    for name, value in records.items():
        if isinstance(value, list) and len(value) == 2:
            flat |= {f"{name}, low": value[0], f"{name}, high": value[1]}
        else:
            flat[name] = value
    return flat


def _cell(value: Any) -> Any:
    """A cell; a text that begins as a formula does is marked, unless it is figures."""
    if isinstance(value, bool):
        return str(value).lower()
    if value is None or isinstance(value, int):
        return value
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    text = " ".join(map(str, value)) if isinstance(value, list) else str(value)
    return cell(re.sub("\r\n?", "\n", text))  # which csv.writer quotes in newer Pythons only

"""How far a report is: lines on stderr, and an index that is there from the beginning.

`summarise` writes index, claims and results from what is known of all runs, done or not. `Progress`
calls it while the runs are carried out.
"""

import json
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from time import perf_counter

from nummodel.errors import line, tell
from nummodel.reports import pages
from nummodel.reports.files import encoded, write
from nummodel.reports.results import Outcome, table
from nummodel.reports.runs import Run

SUMMARIES = ("claims.json", "index.html", "results.csv")
PAUSE = 1.0  # seconds between two indexes of an unfinished report, at least
SHARE = 0.05  # of the time may be spent on writing these indexes


class Progress:
    """Tells how far the runs are, and keeps their outcomes and the index up to date."""

    def __init__(self, outcomes: dict[Run, Outcome], folder: Path, jobs: int, doing: str) -> None:
        self.outcomes, self.folder, self.jobs = outcomes, folder.absolute(), jobs
        self.indexed: list[str] = []
        self.due = 0.0
        queue = self.unfinished
        notebooks = len({run.notebook for run in queue})
        what = f"{notebooks} notebook{'s' * (notebooks > 1)}"
        if len(queue) > notebooks:
            what = f"{len(queue)} runs of {what}"
        if len(queue) > 1:
            what += f", {jobs} at a time"
        index = folder / "index.html"
        tell(f"{doing} {what}; {index} shows what is done")
        from tqdm import tqdm

        # Only a terminal gets a bar; elsewhere the lines tell what is running.
        done = len(outcomes) - len(queue)
        self.bar = tqdm(total=len(outcomes), initial=done, unit="notebook", disable=None)
        running = self._running()
        if self.bar.disable:
            tell(running)

    @property
    def unfinished(self) -> list[Run]:
        return [run for run, outcome in self.outcomes.items() if outcome.unfinished]

    def show(self) -> None:
        """Renew the bar, and the index if a run has ended and the last index is old enough."""
        self.bar.refresh()
        state, start = [outcome.status for outcome in self.outcomes.values()], perf_counter()
        if state == self.indexed or start < self.due:
            return
        # Whatever fails here, the runs go on. If it fails at the end as well, that is told.
        with suppress(Exception):
            summarise(list(self.outcomes.values()), self.folder)
        end = perf_counter()
        self.indexed, self.due = state, end + max(PAUSE, (end - start) / SHARE)

    def end(self, run: Run, outcome: Outcome) -> None:
        """Take the outcome of a run, and tell it in a line."""
        self.outcomes[run] = outcome
        told = outcome.error.partition("\n")[0] or f"executed in {outcome.seconds:.1f} s"
        running, total = self._running(), len(self.outcomes)
        if self.bar.disable:
            done = f"{total - len(self.unfinished)} of {total} done"
            told += f" ({done}; {running})" if running else f" ({done})"
        with self.bar.external_write_mode():
            tell(f"{run.name}: {told}")
        self.bar.update()

    def _running(self) -> str:
        """Mark the runs that are under way, the first that are not done, and name them."""
        runs = self.unfinished[: self.jobs]
        for run in runs:
            self.outcomes[run] = replace(self.outcomes[run], unfinished="running")
        names = [run.name for run in runs[:3]] + [f"{len(runs) - 3} more"] * (len(runs) > 3)
        told = f"running: {', '.join(names)}" if names else ""
        self.bar.set_postfix_str(line(told), refresh=False)
        return told


def summarise(outcomes: list[Outcome], folder: Path) -> None:
    """Write the index, claims.json and results.csv, unless all outcomes are indexed already."""
    lines = table(outcomes)
    if all(outcome.kept for outcome in outcomes) and _is_there(lines, folder):
        return
    found = [{"run": o.run.name, **claim} for o in outcomes for claim in o.claims]
    texts = json.dumps(found, indent=1) + "\n", pages.index(outcomes), lines
    write(folder, dict(zip(SUMMARIES, texts, strict=True)))


def _is_there(lines: str, folder: Path) -> bool:
    """Whether `folder` was summarised with these very lines, which come last, and to the end."""
    if not all((folder / name).exists() for name in SUMMARIES):
        return False
    if (folder / "results.csv").read_bytes() != encoded(lines):
        return False
    return pages.RELOAD not in (folder / "index.html").read_text(encoding="utf-8")

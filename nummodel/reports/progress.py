"""How far a report is: lines on stderr, and an index that is there from the beginning.

`summarise` writes index, claims and results from what is known of all runs, done or not. `Progress`
calls it while the runs are carried out.
"""

import json
from collections.abc import Sequence
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
    """Says how far the runs are, and keeps their outcomes and the index up to date."""

    def __init__(
        self,
        outcomes: dict[Run, Outcome],
        folder: Path,
        jobs: int,
        doing: str,
        earlier: Sequence[Outcome] = (),
    ) -> None:
        from tqdm import tqdm

        self.outcomes, self.folder, self.jobs = outcomes, folder.absolute(), jobs
        self.earlier = earlier
        self.executes = doing == "executing"
        self.indexed: list[str] = []
        self.due = 0.0
        queue, total = self.unfinished, len(outcomes)
        notebooks = len({run.notebook for run in queue})
        what = f"{notebooks} notebook{'s' * (notebooks > 1)}"
        if len(queue) > notebooks:
            what = f"{len(queue)} runs of {what}"
        if len(queue) < total:
            what += f" ({total - len(queue)} of {total} runs done already)"
        if len(queue) > 1 and jobs:  # a cluster may have no worker yet
            what += f", {jobs} at a time"
        tell(f"{doing} {what}; {folder / 'index.html'} shows what is done")
        # Only a terminal gets a bar; elsewhere the lines tell what is running.
        self.bar = tqdm(total=total, initial=total - len(queue), unit="run", disable=None)
        running = self._running()
        if self.bar.disable and running:
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
        # If this fails, the runs go on. If it fails at the end as well, the command says so.
        with suppress(Exception):
            summarise([*self.outcomes.values(), *self.earlier], self.folder)
        end = perf_counter()
        self.indexed, self.due = state, end + max(PAUSE, (end - start) / SHARE)

    def end(self, run: Run, outcome: Outcome) -> None:
        """Take the outcome of a run, and say it in a line."""
        self.outcomes[run] = outcome
        done = f"executed in {outcome.seconds:.1f} s" if self.executes else "page made"
        message = outcome.error.partition("\n")[0] or done
        running, total = self._running(), len(self.outcomes)
        if self.bar.disable:
            ended = [o for o in self.outcomes.values() if not o.unfinished]
            failed = sum(bool(o.error) for o in ended)
            done = f"{len(ended) - failed} of {total} done, {failed} failed"
            if failed in (0, len(ended)):
                done = f"{len(ended)} of {total} {'failed' if failed else 'done'}"
            message += f" ({done}; {running})" if running else f" ({done})"
        with self.bar.external_write_mode():
            tell(f"{run.name}: {message}")
        self.bar.update()

    def _running(self) -> str:
        """Mark the runs that are running (the first of the unfinished ones), and name them."""
        runs = self.unfinished[: self.jobs]
        for run in runs:
            self.outcomes[run] = replace(self.outcomes[run], unfinished="running")
        names = [run.name for run in runs[:3]] + [f"{len(runs) - 3} more"] * (len(runs) > 3)
        running = f"running: {', '.join(names)}" if names else ""
        self.bar.set_postfix_str(line(running), refresh=False)
        return running


def summarise(outcomes: list[Outcome], folder: Path) -> None:
    """Write the index, claims.json and results.csv, unless all outcomes are indexed already."""
    results = table(outcomes)
    if all(outcome.kept for outcome in outcomes) and _is_there(results, folder):
        return
    claims = [{"run": o.run.name, **claim} for o in outcomes for claim in o.claims]
    texts = json.dumps(claims, indent=1) + "\n", pages.index(outcomes), results
    write(folder, dict(zip(SUMMARIES, texts, strict=True)))


def _is_there(results: str, folder: Path) -> bool:
    """Whether `folder` was summarised to the end, with these very results, which come last."""
    if not all((folder / name).exists() for name in SUMMARIES):
        return False
    if (folder / "results.csv").read_bytes() != encoded(results):
        return False
    return pages.RELOAD not in (folder / "index.html").read_text(encoding="utf-8")

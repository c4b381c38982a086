"""Runs become executed notebooks and pages, in parallel; what is there already is kept.

Every step is a plain function: `carry_out` executes one run, `execute_run` also writes its files to
a folder, and `make` does all runs and writes the index. Each file is written under another name and
then renamed, so a report that is killed leaves no broken file. The executed notebook is written
last: a run that has one is done.
"""

import json
import signal
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import replace
from errno import EISDIR
from functools import cache
from os.path import realpath
from pathlib import Path
from threading import Event, current_thread, main_thread
from time import sleep

from nummodel.errors import InputError
from nummodel.reports import files, pages
from nummodel.reports.execution import TIMEOUT, carry_out, prepare
from nummodel.reports.files import STAMP, write
from nummodel.reports.notebook import read
from nummodel.reports.progress import SUMMARIES, Progress, summarise
from nummodel.reports.results import Outcome, table
from nummodel.reports.runs import Run, refuse_missing_files

BOTH = ("html", "ipynb")


def make(
    runs: list[Run],
    folder: Path,
    jobs: int,
    execute: bool = True,
    force: bool = False,
    timeout: float = TIMEOUT,
) -> list[Outcome]:
    """Carry out `runs`, `jobs` at a time, and write pages, index and results to `folder`.

    A run that `folder` holds already, with the same notebook, parameters, package and data, is
    kept, unless `force`. With `execute=False`, the notebooks that earlier reports left in `folder`
    are made into pages again. A run that takes more than `timeout` seconds has failed. The index is
    there from the beginning, shows what earlier commands left in `folder` as well, and is renewed
    while runs finish. Raises InputError if `folder` cannot be written or a run shall read a table
    that does not exist, and OSError if the index could not be written at the end. If it is
    interrupted, it ends the kernels and indexes what is done.
    """
    for run in runs:
        if realpath(folder / f"{run.name}.ipynb") == realpath(run.notebook):
            raise InputError(f"{folder}: holds the notebook {run.name}, expected another folder")
    if execute:
        refuse_missing_files(runs)
    _refuse_unwritable(folder, SUMMARIES)
    place = folder.absolute()  # wherever notebooks may leave this process
    source = cache(read)  # many runs may be of one notebook
    outcomes = {
        run: (finished(run, place) if execute and not force else None)
        or Outcome(run, source(run.notebook), 0.0, "", paged=False, unfinished="waiting")
        for run in runs
    }
    unfinished = [run for run, outcome in outcomes.items() if outcome.unfinished]
    kinds = BOTH if execute else BOTH[:1]
    _refuse_unwritable(folder, [f"{run.name}.{kind}" for run in unfinished for kind in kinds])
    stopped, warm = Event(), len(unfinished) > jobs
    names = {run.name for run in runs}
    others = earlier(place, names)
    names |= {outcome.run.name for outcome in others}

    def work(run: Run) -> Outcome:
        if not execute:
            return reuse_run(run, place, names)
        outcome = carry_out(run, timeout, warm)
        if stopped.is_set():
            raise InterruptedError
        return keep(outcome, place, names)

    with _stopping(stopped):
        try:
            if unfinished:
                doing = "executing" if execute else "making pages of"
                progress = Progress(outcomes, folder, jobs, doing, others)
                progress.show()
                prepare(warm, execute)
                if stopped.is_set():
                    raise KeyboardInterrupt
                _all(work, progress, jobs, stopped)
        finally:
            outcomes = {run: _settled(outcome, place, names) for run, outcome in outcomes.items()}
            summarise([*outcomes.values(), *others], place)
    return list(outcomes.values())


def _all(work: Callable[[Run], Outcome], progress: Progress, jobs: int, stopped: Event) -> None:
    """Do the work of all runs that are not done. Raises KeyboardInterrupt if it is `stopped`."""
    with ThreadPoolExecutor(jobs) as pool, progress.bar:
        futures = {pool.submit(work, run): run for run in progress.unfinished}
        remaining = set(futures)
        while remaining and not stopped.is_set():
            progress.show()
            ended, remaining = wait(remaining, timeout=1.0, return_when=FIRST_COMPLETED)
            for future in ended:
                run = futures[future]
                progress.end(run, _outcome(future, progress.outcomes[run]))
        if remaining:
            from nummodel.reports import kernels

            pool.shutdown(wait=False, cancel_futures=True)
            # Again and again, since a kernel may just be starting.
            while not all(future.done() for future in futures):
                kernels.end_all()
                sleep(0.2)
            for future, run in futures.items():
                if not future.cancelled() and not future.exception():
                    progress.outcomes[run] = future.result()
            raise KeyboardInterrupt


@contextmanager
def _stopping(stopped: Event) -> Iterator[None]:
    """Within, Ctrl-C, SIGTERM and SIGHUP only set `stopped`."""
    before = {}
    if current_thread() is main_thread():  # no other may set what signals do
        for name in ("SIGINT", "SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)
            # A command that a shell put into the background, or nohup, is to go on.
            if number and signal.getsignal(number) not in (signal.SIG_IGN, None):
                before[number] = signal.signal(number, lambda *_: stopped.set())
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def execute_run(run: Run, folder: Path, timeout: float = TIMEOUT) -> Outcome:
    """Execute one notebook into `folder`, with its page; a failure is part of the outcome."""
    return keep(carry_out(run, timeout), folder, {run.name})


def keep(
    outcome: Outcome, folder: Path, names: Collection[str], kinds: Iterable[str] = BOTH
) -> Outcome:
    """Write an outcome's page, beside the pages with these `names`, and its executed notebook.
    Raises what the index would raise for it.
    """
    _indexed(outcome)
    text = json.dumps(outcome.notebook, indent=1, ensure_ascii=False) + "\n"
    texts = {"html": pages.page(outcome, names), "ipynb": text}
    write(folder, {f"{outcome.run.name}.{kind}": texts[kind] for kind in kinds})
    return outcome


def finished(run: Run, folder: Path) -> Outcome | None:
    """The outcome of this run in an earlier report, if it ran to its end and has its page."""
    if not (folder / f"{run.name}.html").exists():
        return None
    try:
        notebook = json.loads((folder / f"{run.name}.ipynb").read_text(encoding="utf-8"))
        stamp = notebook["metadata"][STAMP]
        if stamp["error"] or stamp["key"] != run.key:
            return None
        return _indexed(Outcome(run, notebook, stamp["seconds"], "", kept=True))
    except Exception:  # not a report's, of an older version, or damaged
        return None


def earlier(folder: Path, names: Collection[str]) -> list[Outcome]:
    """The outcomes that earlier commands left in a folder, without those with these `names`."""
    found = []
    for path in sorted(folder.glob("*.ipynb")):
        if path.stem in names:
            continue
        try:
            notebook = json.loads(path.read_text(encoding="utf-8"))
            stamp = notebook["metadata"][STAMP]
            run = Run(path.with_name(stamp["notebook"]), stamp["parameters"])
            paged = path.with_suffix(".html").exists()
            outcome = Outcome(run, notebook, stamp["seconds"], stamp["error"], True, paged, True)
            if run.name == path.stem:
                found.append(_indexed(outcome))
        except Exception:  # not a report's, of an older version, or damaged
            continue
    return found


def reuse_run(run: Run, folder: Path, names: Collection[str]) -> Outcome:
    """The outcome of a run in an earlier report, with a new page."""
    executed = folder / f"{run.name}.ipynb"
    notebook = read(executed if executed.exists() else run.notebook)
    stamp = notebook.metadata.get(STAMP, {}) if executed.exists() else {}
    error = stamp.get("error", "not executed")
    return keep(Outcome(run, notebook, stamp.get("seconds", 0.0), error), folder, names, BOTH[:1])


def _indexed(outcome: Outcome) -> Outcome:
    """The outcome, if it can stand in table and index; else all others would lose theirs."""
    table([outcome])
    pages.index([outcome])
    return outcome


def _outcome(future: Future, before: Outcome) -> Outcome:
    """What a worker returned; a run whose files could not be written is a failed one."""
    try:
        return future.result()
    except Exception as failure:  # of any kind: the other runs go on
        return replace(before, unfinished="", error=f"{type(failure).__name__}: {failure}")


def _settled(outcome: Outcome, folder: Path, names: Collection[str]) -> Outcome:
    """The outcome at the end; its files are written again if a notebook has removed them."""
    if outcome.unfinished:
        return replace(outcome, unfinished="", error="interrupted before it was done")
    if not outcome.paged or STAMP not in outcome.notebook["metadata"]:
        return outcome
    try:
        there = all((folder / f"{outcome.run.name}.{kind}").exists() for kind in BOTH)
        return outcome if there else keep(outcome, folder, names)
    except Exception as failure:
        return replace(outcome, paged=False, error=f"{type(failure).__name__}: {failure}")


def _refuse_unwritable(folder: Path, names: Iterable[str]) -> None:
    """Raise InputError if one of these files could not be written, or is not a report's."""
    expected = "a writable folder"
    try:
        files.prepare(folder)
        expected = "another folder"
        for name in names:
            files.refuse_foreign(folder / name)
            if name in SUMMARIES and (folder / name).is_dir():
                raise IsADirectoryError(EISDIR, f"{name} is a folder")
    except OSError as error:
        raise InputError(f"{folder}: {error.strerror}, expected {expected}") from None

"""Runs become executed notebooks and pages, in parallel; what is there already is kept.

Every step is a plain function: `carry_out` executes one run, `execute_run` also writes its files to
a folder, and `make` does all runs and writes the index. Each file is written under another name and
then renamed, so a report that is killed leaves no broken file. The executed notebook is written
last: a run that has one is done.
"""

import json
import signal
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from errno import EISDIR
from functools import cache, partial
from os.path import realpath
from pathlib import Path
from threading import BoundedSemaphore, Event, current_thread, main_thread
from time import sleep

from nummodel.cluster import Cluster, completed, why
from nummodel.errors import InputError
from nummodel.reports import files, pages, remote
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
    cluster: Cluster | None = None,
) -> list[Outcome]:
    """Carry out `runs`, `jobs` at a time, and write pages, index and results to `folder`. The
    workers of a `cluster` carry out one run each.

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
    jobs = cluster.places() if cluster else jobs
    stopped, warm = Event(), len(unfinished) > jobs
    names = {run.name for run in runs}
    others = earlier(place, names)
    names |= {outcome.run.name for outcome in others}
    at_work = BoundedSemaphore(max(jobs, 1))

    def work(run: Run) -> Outcome:
        if not execute:
            return reuse_run(run, place, names)
        with at_work:  # the next kernel is at work while the page of this one is made
            if stopped.is_set():
                raise InterruptedError
            outcome = carry_out(run, timeout, warm)
        if stopped.is_set():
            raise InterruptedError
        return keep(outcome, place, remote.texts(outcome, names))

    with _stopping(stopped):
        try:
            if unfinished:
                doing = "executing" if execute else "making pages of"
                progress = Progress(outcomes, folder, jobs, doing, others)
                progress.show()
                if cluster:
                    there = remote.Submit(cluster, names, timeout, warm)
                    received = partial(_received, place)
                    _all(there, cluster.places, received, progress, stopped, cluster)
                else:
                    prepare(warm, execute)
                    if stopped.is_set():
                        raise KeyboardInterrupt
                    with ThreadPoolExecutor(2 * jobs if execute else jobs) as pool:

                        def submit(run: Run, _: int) -> Future:
                            return pool.submit(work, run)

                        _all(submit, lambda: jobs, lambda _, done: done.result(), progress, stopped)
        finally:
            outcomes = {run: _settled(outcome, place, names) for run, outcome in outcomes.items()}
            if unfinished:  # another command may have ended meanwhile
                others = earlier(place, {run.name for run in runs})
            summarise([*outcomes.values(), *others], place)
    return list(outcomes.values())


def _received(folder: Path, run: Run, future: Future) -> Outcome:
    """The outcome of a run that a worker has carried out, with its files written."""
    outcome, files = remote.opened(run, future.result())
    return keep(outcome, folder, files)


def _all(
    submit: Callable[[Run, int], Future],
    places: Callable[[], int],
    outcome: Callable[[Run, Future], Outcome],
    progress: Progress,
    stopped: Event,
    cluster: Cluster | None = None,
) -> None:
    """Do the work of all runs that are not done. Raises KeyboardInterrupt if it is `stopped`."""
    submitted: dict[Future, Run] = {}

    def noted(run: Run, attempts: int) -> Future:
        future = submit(run, attempts)
        submitted[future] = run
        return future

    with progress.bar:
        for done in completed(noted, progress.unfinished, places, cluster):
            if done:
                run, future = done
                del submitted[future]
                progress.end(run, _outcome(outcome, run, future, progress.outcomes[run]))
            progress.show()
            if stopped.is_set():
                _end(submitted, outcome, progress)
                raise KeyboardInterrupt


def _end(submitted: dict[Future, Run], outcome: Callable, progress: Progress) -> None:
    """Cancel what has not begun, and end the kernels of what has."""
    from nummodel.reports import kernels

    for future in submitted:
        future.cancel()
    # Again and again, since a kernel may just be starting.
    while not all(future.done() for future in submitted):
        kernels.end_all()
        sleep(0.2)
    for future, run in submitted.items():
        if not future.cancelled() and not future.exception():
            progress.outcomes[run] = outcome(run, future)


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
    outcome = carry_out(run, timeout)
    return keep(outcome, folder, remote.texts(outcome, {run.name}))


def keep(outcome: Outcome, folder: Path, texts: Mapping[str, str | bytes]) -> Outcome:
    """Write the files of an outcome, by their kinds. Raises what the index would raise for it."""
    _indexed(outcome)
    write(folder, {f"{outcome.run.name}.{kind}": text for kind, text in texts.items()})
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
    outcome = Outcome(run, notebook, stamp.get("seconds", 0.0), error)
    return keep(outcome, folder, {"html": pages.page(outcome, names)})


def _indexed(outcome: Outcome) -> Outcome:
    """The outcome, if it can stand in table and index; else all others would lose theirs."""
    table([outcome])
    pages.index([outcome])
    return outcome


def _outcome(outcome: Callable, run: Run, future: Future, before: Outcome) -> Outcome:
    """What a worker returned; a run whose files could not be written is a failed one."""
    try:
        return outcome(run, future)
    except Exception as failure:  # of any kind: the other runs go on
        return replace(before, unfinished="", error=why(failure))


def _settled(outcome: Outcome, folder: Path, names: Collection[str]) -> Outcome:
    """The outcome at the end; its files are written again if a notebook has removed them."""
    if outcome.unfinished:
        return replace(outcome, unfinished="", error="interrupted before it was done")
    if not outcome.paged or STAMP not in outcome.notebook["metadata"]:
        return outcome
    try:
        there = all((folder / f"{outcome.run.name}.{kind}").exists() for kind in BOTH)
        return outcome if there else keep(outcome, folder, remote.texts(outcome, names))
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

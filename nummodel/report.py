"""Runs become executed notebooks and pages, in parallel; what is there already is kept.

Every step is a plain function: `carry_out` executes one run, `execute_run` puts what came of it
into a folder, `report` does all of them and writes the index. What a killed report leaves behind
is whole, since files appear by being renamed, and the notebook, by which a run is known to be
done, comes last.
"""

import json
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import replace
from errno import EISDIR
from functools import cache
from pathlib import Path
from threading import Event
from time import perf_counter, sleep
from typing import Any

from nummodel import pages
from nummodel.errors import InputError
from nummodel.notebook import KERNEL, papermill, read
from nummodel.progress import SUMMARIES, Progress, summarise, write
from nummodel.results import Outcome
from nummodel.runs import Run

STAMP = "nummodel_run"  # an executed notebook's metadata that tell how its run went
TIMEOUT = 600.0


def report(
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
    there from the beginning, and is renewed while runs finish. Raises InputError if `folder` cannot
    be written, and OSError if the index could not, at the end. Interrupted, it ends the kernels and
    indexes what is done.
    """
    _refuse_unwritable(folder)
    for run in runs:
        if (folder / f"{run.name}.ipynb").resolve() == run.notebook.resolve():
            raise InputError(f"{folder}: holds the notebook {run.name}, expected another folder")
    source = cache(read)  # many runs may be of one notebook
    outcomes = {
        run: (finished(run, folder) if execute and not force else None)
        or Outcome(run, source(run.notebook), 0.0, "", paged=False, unfinished="waiting")
        for run in runs
    }
    stopped = Event()

    def work(run: Run) -> Outcome:
        if not execute:
            return reuse_run(run, folder)
        outcome = carry_out(run, timeout)
        if stopped.is_set():
            raise InterruptedError
        return keep(outcome, folder)

    try:
        if any(outcome.unfinished for outcome in outcomes.values()):
            doing = "executing" if execute else "making pages of"
            _all(work, Progress(outcomes, folder, jobs, doing), jobs, stopped)
    finally:
        for run, outcome in outcomes.items():
            if outcome.unfinished:
                outcomes[run] = _failed(outcome, "interrupted before it was done")
        summarise(list(outcomes.values()), folder)
    return list(outcomes.values())


def _all(work: Callable[[Run], Outcome], progress: Progress, jobs: int, stopped: Event) -> None:
    """Do the work of all runs that are not done."""
    with ThreadPoolExecutor(jobs) as pool, progress.bar:
        futures: dict[Future, Run] = {}
        try:
            futures |= {pool.submit(work, run): run for run in progress.unfinished}
            left = set(futures)
            while left:
                progress.show()
                ended, left = wait(left, timeout=1.0, return_when=FIRST_COMPLETED)
                for future in ended:
                    run = futures[future]
                    progress.end(run, _outcome(future, progress.outcomes[run]))
        except KeyboardInterrupt:
            stopped.set()
            pool.shutdown(wait=False, cancel_futures=True)
            # Again and again, since a kernel may just be starting.
            while not all(future.done() for future in futures):
                _end_kernels()
                sleep(0.2)
            progress.outcomes.update(
                {run: f.result() for f, run in futures.items() if _went_well(f)}
            )
            raise


def execute_run(run: Run, folder: Path, timeout: float = TIMEOUT) -> Outcome:
    """Execute one notebook into `folder`, with its page; a failure is part of the outcome."""
    return keep(carry_out(run, timeout), folder)


def carry_out(run: Run, timeout: float = TIMEOUT) -> Outcome:
    """Execute one notebook, up to the cell that fails."""
    from nummodel import kernels

    kernels.prepare()  # its server imports what kernels need, while this process does
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, CellTimeoutError
    from traitlets.config import Config

    prepared = papermill().execute_notebook
    # Loopback needs no encryption; unasked, ipykernel warns of that in every notebook.
    config = Config(KernelManager={"transport_encryption": "auto"})
    start, error = perf_counter(), ""
    notebook, key = read(run.notebook), run.key  # of what is executed, should it change meanwhile
    try:
        notebook = prepared(
            notebook,
            None,
            run.parameters,
            prepare_only=True,
            kernel_name=KERNEL,
            language="python",
        )
        client = NotebookClient(
            notebook,
            config=config,
            kernel_name=KERNEL,
            timeout_func=lambda cell: max(0.1, start + timeout - perf_counter()),
            # Asked politely, a kernel that has run its last cell takes another second.
            shutdown_kernel="immediate",
        )
        _start(client)
        client.execute()
    except CellExecutionError as failure:
        error = f"{failure.ename}: {failure.evalue}"
    except CellTimeoutError:
        error = f"TimeoutError: not at its end after {timeout:g} s"
    except Exception as failure:  # a dead kernel: this run fails, the others go on
        error = f"{type(failure).__name__}: {failure}"
    seconds = perf_counter() - start
    stamp = {"seconds": seconds, "error": error, "parameters": run.parameters, "key": key}
    notebook.metadata[STAMP] = stamp
    return Outcome(run, notebook, seconds, error)


def _start(client: Any) -> None:
    """Start a kernel, up to three times: what it is told to listen on may just have been taken."""
    from nummodel import kernels

    for attempt in range(3):
        manager = client.create_kernel_manager()
        manager.provisioner = kernels.Forked(parent=manager, kernel_spec=manager.kernel_spec)
        try:
            client.start_new_kernel()
            client.start_new_kernel_client()
            return
        except RuntimeError:  # it died before it answered
            if attempt == 2:
                raise


def keep(outcome: Outcome, folder: Path) -> Outcome:
    """Write an outcome's page and executed notebook."""
    text = json.dumps(outcome.notebook, indent=1, ensure_ascii=False) + "\n"
    name = outcome.run.name
    write(folder, {f"{name}.html": pages.page(outcome), f"{name}.ipynb": text})
    return outcome


def finished(run: Run, folder: Path) -> Outcome | None:
    """What an earlier report left of this very run, if it ran to its end and has its page."""
    if not (folder / f"{run.name}.html").exists():
        return None
    try:
        notebook = json.loads((folder / f"{run.name}.ipynb").read_text(encoding="utf-8"))
        stamp = notebook["metadata"][STAMP]
        if stamp["error"] or stamp["key"] != run.key:
            return None
        return Outcome(run, notebook, stamp["seconds"], "", kept=True)
    except (OSError, ValueError, LookupError, TypeError):
        return None  # none of ours, or of an older version


def reuse_run(run: Run, folder: Path) -> Outcome:
    """The outcome of a run that an earlier report left in `folder`, with a new page."""
    executed = folder / f"{run.name}.ipynb"
    if not executed.exists():
        return _paged(Outcome(run, read(run.notebook), 0.0, "not executed"), folder)
    notebook = read(executed)
    stamp = notebook.metadata.get(STAMP, {})
    error = stamp.get("error", "not executed")
    return _paged(Outcome(run, notebook, stamp.get("seconds", 0.0), error), folder)


def _paged(outcome: Outcome, folder: Path) -> Outcome:
    write(folder, {f"{outcome.run.name}.html": pages.page(outcome)})
    return outcome


def _outcome(future: Future, before: Outcome) -> Outcome:
    """What a worker returned; a run whose files could not be written is a failed one."""
    try:
        return future.result()
    except Exception as failure:  # whatever it is, the other runs go on
        return _failed(before, f"{type(failure).__name__}: {failure}")


def _failed(before: Outcome, error: str) -> Outcome:
    """The outcome of a run that left neither page nor executed notebook."""
    return replace(before, unfinished="", error=error)


def _went_well(future: Future) -> bool:
    return not future.cancelled() and future.exception() is None


def _end_kernels() -> None:
    """Kill kernels, and the server of kernels, with what they started."""
    import psutil

    for child in psutil.Process().children():
        with suppress(psutil.NoSuchProcess):
            if {"ipykernel_launcher", "nummodel.kernelserver"} & set(child.cmdline()):
                for process in [*child.children(recursive=True), child]:
                    process.kill()


def _refuse_unwritable(folder: Path) -> None:
    probe = folder / ".part"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
        for name in SUMMARIES:
            if (folder / name).is_dir():
                raise IsADirectoryError(EISDIR, f"{name} is a folder")
    except OSError as error:
        raise InputError(f"{folder}: {error.strerror}, expected a writable folder") from None

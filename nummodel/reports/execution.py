"""One notebook, executed in a kernel of its own, with nothing lost that it displays."""

from time import perf_counter
from typing import Any

from nummodel.records import claims
from nummodel.reports.files import STAMP
from nummodel.reports.notebook import KERNEL, read
from nummodel.reports.results import Outcome
from nummodel.reports.runs import Run

TIMEOUT = 600.0


def prepare(warm: bool, execute: bool = True) -> None:
    """Import what runs need before their threads do. If two threads import modules that import each
    other, the second thread may get a module that the first has only half made. The server of
    kernels imports at the same time.
    """
    if execute:
        from nummodel.reports import kernels

        kernels.prepare(warm)
        import papermill  # noqa: F401

        from nummodel.reports import client  # noqa: F401
    import nbconvert  # noqa: F401


def carry_out(run: Run, timeout: float = TIMEOUT, warm: bool = True) -> Outcome:
    """Execute one notebook, up to the cell that fails, in at most `timeout` seconds. If many are
    executed, a `warm` server imports their libraries once for all.
    """
    prepare(warm)
    from nbclient.exceptions import CellExecutionError
    from papermill import execute_notebook

    from nummodel.reports import kernels

    start, error = perf_counter(), ""
    notebook, key = read(run.notebook), run.key  # of what is executed, should it change meanwhile
    kernel = {"kernel_name": KERNEL, "language": "python"}
    try:
        kernels.await_server(warm)
        start = perf_counter()
        notebook = execute_notebook(notebook, None, run.parameters, prepare_only=True, **kernel)
        for cell in notebook.cells:  # papermill draws a number, and no two files would be alike
            if "injected-parameters" in cell.metadata.get("tags", []):
                cell["id"] = "injected-parameters"
        _execute(notebook, start + timeout, warm)
    except CellExecutionError as failure:
        error = f"{failure.ename}: {failure.evalue}"
    except Exception as failure:  # a dead kernel: this run fails, the others go on
        error = f"{type(failure).__name__}: {failure}"
        if isinstance(failure, TimeoutError) or perf_counter() >= start + timeout:
            error = f"TimeoutError: not at its end after {timeout:g} s"
    seconds = perf_counter() - start
    stamp = {"seconds": seconds, "error": error, "parameters": run.parameters, "key": key}
    stamp["notebook"] = run.notebook.name
    notebook.metadata[STAMP] = stamp
    return Outcome(run, notebook, seconds, error)


def _execute(notebook: Any, end: float, warm: bool) -> None:
    """Execute a notebook until the time `end`, and see that its claims have arrived."""
    from nummodel.reports.client import Client

    client = Client(notebook, end, warm)
    try:
        client.start()
        made, arrived = client.run(), sum(1 for _ in claims.collected(notebook))
        if arrived < made:
            lost = f"{made - arrived} of {made} claims are not in the notebook"
            raise RuntimeError(f"{lost}, expected each to be displayed by a cell")
    finally:
        client.end()

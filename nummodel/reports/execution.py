"""One notebook, executed in a kernel of its own, with nothing lost that it displays."""

from asyncio import all_tasks, current_task, sleep
from functools import cache
from math import ceil
from time import perf_counter
from typing import Any

from nummodel.records import claims
from nummodel.reports.files import STAMP
from nummodel.reports.notebook import KERNEL, read
from nummodel.reports.results import Outcome
from nummodel.reports.runs import Run

TIMEOUT = 600.0
MADE = "len(__import__('sys').modules['nummodel.records.claims'].made)"


def carry_out(run: Run, timeout: float = TIMEOUT, warm: bool = True) -> Outcome:
    """Execute one notebook, up to the cell that fails, in at most `timeout` seconds. Where many are
    executed, a `warm` server makes their imports once.
    """
    from nummodel.reports import kernels

    kernels.prepare(warm)  # its server imports what kernels need, while this process does
    from nbclient.exceptions import CellExecutionError
    from papermill import execute_notebook

    start, error = perf_counter(), ""
    notebook, key = read(run.notebook), run.key  # of what is executed, should it change meanwhile
    try:
        kernels.await_server(warm)
        start = perf_counter()
        notebook = execute_notebook(
            notebook,
            None,
            run.parameters,
            prepare_only=True,
            kernel_name=KERNEL,
            language="python",
        )
        _execute(notebook, start + timeout, warm)
    except CellExecutionError as failure:
        error = f"{failure.ename}: {failure.evalue}"
    except Exception as failure:  # a dead kernel: this run fails, the others go on
        error = f"{type(failure).__name__}: {failure}"
        if isinstance(failure, TimeoutError) or perf_counter() >= start + timeout:
            error = f"TimeoutError: not at its end after {timeout:g} s"
    seconds = perf_counter() - start
    stamp = {"seconds": seconds, "error": error, "parameters": run.parameters, "key": key}
    notebook.metadata[STAMP] = stamp
    return Outcome(run, notebook, seconds, error)


def _execute(notebook: Any, end: float, warm: bool) -> None:
    """Execute a notebook until the time `end`, and see that its claims have arrived."""
    client = _client()(notebook, end, warm)
    try:
        client.start()
        made, arrived = client.run(), sum(1 for _ in claims.collected(notebook))
        if arrived < made:
            lost = f"{made - arrived} of {made} claims are not in the notebook"
            raise RuntimeError(f"{lost}, expected each to be displayed by a cell")
    finally:
        client.end()


@cache
def _client() -> type:
    """What executes notebooks: nbclient's client with one deadline, which waits for all output."""
    from nbclient import NotebookClient
    from nbclient.output_widget import OutputWidget
    from nbclient.util import ensure_async, run_sync
    from nbformat.v4 import new_code_cell
    from traitlets.config import Config

    from nummodel.reports import kernels

    # Loopback needs no encryption; unasked, ipykernel warns of that in every notebook.
    config = Config(KernelManager={"transport_encryption": "auto"})

    class Quiet(OutputWidget):
        """Sends nothing to the kernel: a copy of the output that only a browser needs.

        nbclient would send on the channel that it listens on, and miss the reply (nbclient #312).
        """

        def sync_state(self) -> None:
            pass

    class Client(NotebookClient):
        def __init__(self, notebook: Any, end: float, warm: bool) -> None:
            self.end_at, self.warm = end, warm
            super().__init__(
                notebook,
                config=config,
                kernel_name=KERNEL,
                timeout_func=lambda cell: self.left(),
                on_cell_start=self._await_output,
                raise_on_iopub_timeout=True,
                # Asked politely, a kernel that has run its last cell takes another second.
                shutdown_kernel="immediate",
            )
            self.widget_registry = {"@jupyter-widgets/output": {"OutputModel": Quiet}}

        def left(self) -> float:
            return max(0.1, self.end_at - perf_counter())

        def _await_output(self, **cell: Any) -> None:
            """Unasked, nbclient waits 4 s after a cell's reply for what the cell displayed, and
            begins a cell that is too late.
            """
            if perf_counter() >= self.end_at:
                raise TimeoutError
            self.iopub_timeout = ceil(self.left())

        async def async_execute_cell(self, *cell: Any, **options: Any) -> Any:
            """Where a cell does not come to its end, nbclient leaves a task behind, of which Python
            warns.
            """
            try:
                return await super().async_execute_cell(*cell, **options)
            except Exception:
                for task in all_tasks() - {current_task()}:
                    task.cancel()
                await sleep(0)
                raise

        def start(self) -> None:
            """Start a kernel, up to three times: its ports may just have been taken."""
            for attempt in range(3):
                manager = self.create_kernel_manager()
                manager.context.rcvhwm = 0  # else messages in excess of a thousand are dropped
                manager.provisioner = kernels.Forked(
                    parent=manager, kernel_spec=manager.kernel_spec
                )
                manager.provisioner.end_at, manager.provisioner.warm = self.end_at, self.warm
                self.startup_timeout = min(60, ceil(self.left()))
                try:
                    self.start_new_kernel()
                    self.start_new_kernel_client()
                    return
                except RuntimeError:  # it died before it answered
                    self.end()
                    if attempt == 2 or perf_counter() >= self.end_at:
                        raise

        async def async_run(self) -> int:
            """Execute the notebook; how many claims the kernel has made, by its own count."""
            await self.async_execute(cleanup_kc=False)
            kernel: Any = self.kc
            asked = kernel.execute("", silent=True, user_expressions={"made": MADE})
            request = await ensure_async(asked)  # jupyter_client 8.0 gives a promise
            reply: Any = await self.async_wait_for_reply(request, new_code_cell())
            told = reply["content"].get("user_expressions", {}).get("made", {})
            return int(told["data"]["text/plain"]) if told.get("status") == "ok" else 0

        run = run_sync(async_run)

        def end(self) -> None:
            """Kill the kernel and remove its connection file."""
            if self.km is not None:
                self._cleanup_kernel()

    return Client

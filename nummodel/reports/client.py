"""nbclient's client of a kernel, with one deadline for all cells, and without losing output."""

from asyncio import all_tasks, current_task, sleep
from math import ceil
from time import perf_counter
from typing import Any

from nbclient import NotebookClient
from nbclient.output_widget import OutputWidget
from nbclient.util import ensure_async, run_sync
from nbformat.v4 import new_code_cell
from traitlets.config import Config

from nummodel.reports import kernels
from nummodel.reports.notebook import KERNEL

MADE = "len(__import__('sys').modules['nummodel.records.claims'].made)"
#: Loopback needs no encryption. By default ipykernel warns in every notebook that it has none.
CONFIG = Config(KernelManager={"transport_encryption": "auto"})


class Quiet(OutputWidget):
    """Sends nothing to the kernel: a copy of the output that only a browser needs.

    nbclient would send on the channel that it listens on, and miss the reply (nbclient #312):
    half of the notebooks with `ipywidgets.interact` would never end.
    """

    def sync_state(self) -> None:
        pass


class Client(NotebookClient):
    """Executes a notebook until the time `end_at`."""

    def __init__(self, notebook: Any, end_at: float, warm: bool) -> None:
        self.end_at, self.warm = end_at, warm
        super().__init__(
            notebook,
            config=CONFIG,
            kernel_name=KERNEL,
            timeout_func=lambda cell: self.remaining(),
            on_cell_start=self._await_output,
            raise_on_iopub_timeout=True,
            # A kernel that may shut itself down takes another second after its last cell.
            shutdown_kernel="immediate",
        )
        self.widget_registry = {"@jupyter-widgets/output": {"OutputModel": Quiet}}

    def remaining(self) -> float:
        """Seconds until the end."""
        return max(0.1, self.end_at - perf_counter())

    def _await_output(self, **cell: Any) -> None:
        """Wait for what a cell displays until the end, and begin no cell after the end. By default
        nbclient waits 4 s after the cell's reply.
        """
        if perf_counter() >= self.end_at:
            raise TimeoutError
        self.iopub_timeout = ceil(self.remaining())

    async def async_execute_cell(self, *cell: Any, **options: Any) -> Any:
        """Cancel the tasks that nbclient leaves behind if a cell does not come to its end. Python
        would warn of them on stderr.
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
            provisioner = kernels.Forked(parent=manager, kernel_spec=manager.kernel_spec)
            provisioner.end_at, provisioner.warm = self.end_at, self.warm
            manager.provisioner = provisioner
            self.startup_timeout = min(60, ceil(self.remaining()))
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
        sent = kernel.execute("", silent=True, user_expressions={"made": MADE})
        request = await ensure_async(sent)  # jupyter_client 8.0 gives a promise
        reply: Any = await self.async_wait_for_reply(request, new_code_cell())
        made = reply["content"].get("user_expressions", {}).get("made", {})
        return int(made["data"]["text/plain"]) if made.get("status") == "ok" else 0

    run = run_sync(async_run)

    def end(self) -> None:
        """Kill the kernel and remove its connection file."""
        if self.km is not None:
            self._cleanup_kernel()

"""A run on a worker of a cluster: what is sent there, and the two files that come back."""

import json
import os
from collections.abc import Collection
from concurrent.futures import Future
from contextlib import chdir
from contextvars import Context
from functools import cache
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any

from nummodel.cluster import Cluster, need_space
from nummodel.records import data
from nummodel.reports import pages
from nummodel.reports.execution import carry_out
from nummodel.reports.files import STAMP, encoded
from nummodel.reports.results import Outcome
from nummodel.reports.runs import Run

#: The files of a run by their kinds, and a check sum of each.
Files = dict[str, tuple[bytes, str]]
#: Threads of a worker have one folder in common, so a worker does one run at a time.
ALONE = Lock()


def texts(outcome: Outcome, names: Collection[str]) -> dict[str, str]:
    """The page of an outcome, beside the pages with these `names`, and its executed notebook."""
    notebook = json.dumps(outcome.notebook, indent=1, ensure_ascii=False) + "\n"
    return {"html": pages.page(outcome, names), "ipynb": notebook}


class Submit:
    """Has runs carried out by the workers of a cluster."""

    def __init__(self, cluster: Cluster, names: Collection[str], timeout: float, warm: bool):
        self.cluster = cluster
        # Pages link to pages of whole notebooks only, so no other names need to travel.
        plain = sorted(name for name in names if "=" not in name)
        self.options = os.getcwd(), plain, timeout, warm
        self.source = cache(Path.read_bytes)  # many runs may be of one notebook

    def __call__(self, run: Run, attempts: int) -> Future:
        """Two callers who ask for the same run at the same time get the same."""
        key = run.key
        task = run.notebook.name, self.source(run.notebook), run.parameters, key, *self.options
        return self.cluster.submit(f"{run.name}-{key}-{attempts}", carry_out_there, *task)


def opened(run: Run, files: Files) -> tuple[Outcome, dict[str, bytes]]:
    """An outcome and its files, as they have come back. Raises ValueError if they are damaged."""
    for kind, (content, checksum) in files.items():
        if sha256(content).hexdigest() != checksum:
            raise ValueError(f"{run.name}.{kind} was damaged on its way from the worker")
    notebook = json.loads(files["ipynb"][0])
    stamp = notebook["metadata"][STAMP]
    outcome = Outcome(run, notebook, stamp["seconds"], stamp["error"])
    return outcome, {kind: content for kind, (content, _) in files.items()}


def carry_out_there(
    name: str,
    source: bytes,
    parameters: dict[str, Any],
    key: str,
    folder: str,
    names: list[str],
    timeout: float,
    warm: bool,
) -> Files:
    """Execute a notebook in this worker, in the `folder` of the caller if there is such here.

    Raises ValueError if files that the parameters name are not those of the caller, and Unfit if
    the disk is full.
    """
    _need_space()
    with ALONE, TemporaryDirectory() as own, chdir(folder if os.access(folder, os.X_OK) else own):
        path = data.HOME / "notebooks" / name
        if not path.is_file() or path.read_bytes() != source:
            path = Path(own, name)
            path.write_bytes(source)
        run = Run(path, parameters)
        if run.key != key:
            raise ValueError("the files that its parameters name are others at the worker")
        # The context of a thread of Dask is a copy of its maker's. Two threads that had the same
        # event loop from there could not both execute a notebook.
        outcome = Context().run(carry_out, run, timeout, warm)
        if outcome.error:
            _need_space()
        files = {kind: encoded(text) for kind, text in texts(outcome, names).items()}
    return {kind: (content, sha256(content).hexdigest()) for kind, content in files.items()}


def _need_space() -> None:
    """Raise Unfit if there is no space for temporary files and those of kernels. A kernel that has
    none fails in ways that do not tell why.
    """
    from jupyter_client.connect import jupyter_runtime_dir

    need_space(jupyter_runtime_dir())

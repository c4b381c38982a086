"""Tasks on the workers of dask.distributed, or on threads or processes of this machine.

A scheduler executes what it is sent. So this module connects without TLS to this machine only. It
sends tasks only to workers that have the same nummodel, tables and versions of libraries, as
`package` tells, so that a result does not depend on the worker that computed it.
"""

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from errno import EDQUOT, ENOSPC
from functools import cache, partial
from hashlib import sha256
from importlib import metadata
from importlib.util import find_spec
from ipaddress import ip_address
from itertools import islice
from pathlib import Path
from tempfile import TemporaryFile, gettempdir
from typing import Any, TypeVar
from urllib.parse import urlsplit

from nummodel import __version__
from nummodel.errors import InputError, tell
from nummodel.records import data

Item = TypeVar("Item")
#: So many workers may die of a task, or find themselves unfit for it, before it is set aside.
ATTEMPTS = 3
#: Seconds after which a scheduler is taken not to answer.
PATIENCE = 10
#: Bytes that a disk must have left, at least.
SPACE = 2**20
#: Libraries that results may depend on, those of notebooks and clusters too.
LIBRARIES = """
bokeh click cloudpickle distributed ipykernel ipython ipywidgets jinja2 jupyter-client jupyterlab
latex2mathml matplotlib nbclient nbconvert nbformat numpy pandas papermill psutil pyarrow pygments
pyyaml scipy sympy tqdm traitlets
""".split()


class Unfit(Exception):
    """A worker cannot carry out any task: its disk is full, or its nummodel is another one."""

    def __init__(self, worker: str, why: str) -> None:
        super().__init__(worker, why)
        self.worker, self.why = worker, why


class Gone(Exception):
    """The scheduler does not answer any more."""

    def __str__(self) -> str:
        return "the scheduler does not answer any more"


class Cluster:
    """The workers of a scheduler, as far as they have the nummodel of this process.

    Raises InputError if one of the workers has another, or if somebody else on the network could
    send tasks to them.
    """

    def __init__(self, client: Any) -> None:
        self.client, self.manned = client, True
        refuse_open(client.scheduler_info(n_workers=-1)["address"])
        self.places()
        self._refuse_others()
        # A task is set aside after it was on three workers that died, by default it is four.
        client.run_on_scheduler(_allow_failures, ATTEMPTS - 1)

    @contextmanager
    def _answering(self) -> Iterator[None]:
        """Raise Gone for what the client raises if its scheduler is."""
        try:
            yield
        except Exception as error:
            if isinstance(error, OSError) or self.client.status == "closed":
                raise Gone from None
            raise

    def _refuse_others(self) -> None:
        for worker, answer in self.client.run(_told, on_error="return").items():
            if answer != package():
                why = answer if isinstance(answer, ImportError) else "another nummodel"
                raise InputError(
                    f"worker {worker} has {why}, expected the same nummodel, tables and versions "
                    "of libraries as here"
                )

    def places(self) -> int:
        """How many tasks run at the same time. Raises Gone, and InputError for an open worker."""
        with self._answering():
            threads = self.client.nthreads()
        for address in threads:  # also of workers that have come since
            refuse_open(address)
        count = sum(threads.values())
        if not count and self.manned:
            tell("no worker is left; waiting for one")
        self.manned = count > 0
        return count

    def submit(self, name: str, function: Callable, *arguments: Any) -> Future:
        """Have a worker call a function; tasks of the same `name` are the same. Raises Gone."""
        with self._answering():
            there = self.client.submit(_at_worker, package(), function, *arguments, key=name)
        here: Future = Future()
        here.add_done_callback(lambda done: there.cancel() if done.cancelled() else None)
        there.add_done_callback(partial(_deliver, here))
        return here

    def retire(self, error: BaseException | None) -> bool:
        """Do without a worker that is unfit, and say so, unless it is the last. Raises Gone."""
        if not isinstance(error, Unfit):
            return False
        with self._answering():
            workers = set(self.client.nthreads())
            if workers == {error.worker}:
                return False
            if error.worker in workers:
                tell(f"worker {error.worker}: {error.why}; its tasks go to other workers")
                self.client.retire_workers([error.worker])
        return True


def _deliver(here: Future, there: Any) -> None:
    """Take over the result of a task. It is released at once: if it were still the worker's, and
    the worker died, the task would be carried out again.
    """
    if not here.set_running_or_notify_cancel():
        return
    try:
        here.set_result(there.result())
    except BaseException as error:  # a CancelledError, too, in its thread
        here.set_exception(Gone() if there.cancelled() else error)
    finally:
        there.release()


def connect(address: str, **tls: Path | None) -> Cluster:
    """The workers of the scheduler at an address such as tls://host:8786.

    `tls` has the files `tls_ca_file`, `tls_client_cert` and `tls_client_key`; those that are None
    are taken from the configuration of Dask. Raises InputError if the extra `cluster` is missing,
    if the address is open to others, and if no scheduler answers.
    """
    need_extra(f"--scheduler {address}")
    refuse_open(address)
    import logging

    from distributed import Client
    from distributed.security import Security

    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # what matters is told in a line
    given = {name: str(path) for name, path in tls.items() if path}
    try:
        security = Security(**given, require_encryption=True) if given else None
        return Cluster(Client(address, security=security, timeout=PATIENCE, set_as_default=False))
    except InputError:
        raise
    except (OSError, ValueError, TypeError, RuntimeError, Gone) as error:
        why = str(error).partition("\n")[0]
        raise InputError(f"{address}: {why}, expected the address of a scheduler") from None


def need_extra(what: str) -> None:
    """Raise InputError if the extra `cluster` is not installed."""
    for library in ("distributed", "pyarrow"):
        if not find_spec(library):
            how = "pip install 'nummodel[cluster]'"
            raise InputError(f"{what} needs {library}, which is not installed: {how}")


def refuse_open(address: str) -> None:
    """Raise InputError for an address that others on the network may reach without TLS."""
    try:
        parts = urlsplit(address if "://" in address else f"tcp://{address}")
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise InputError(f"{address}: expected an address such as tls://host:8786") from None
    if parts.scheme in ("tls", "inproc"):
        return
    if parts.scheme != "tcp" or not host or port is None:
        raise InputError(f"{address}: expected an address such as tls://host:8786")
    try:
        loopback = ip_address(host).is_loopback
    except ValueError:
        loopback = host == "localhost"
    if not loopback:
        raise InputError(
            f"{address}: without TLS anybody on the network may run programs there, expected "
            f"tls://{host}:{port}, or a scheduler and workers with --host 127.0.0.1"
        )


def completed(
    submit: Callable[[Item, int], Future],
    items: Iterable[Item],
    places: Callable[[], int],
    cluster: Cluster | None = None,
) -> Iterator[tuple[Item, Future] | None]:
    """Each item with its result as soon as this is there, and None at least once a second.

    `submit` is given the item and how often it was submitted before. Twice as many tasks as there
    are `places` are submitted at a time, so that memory is bounded, and no worker waits. A task
    that finds a worker unfit goes to another, if there is one. Raises Gone if the scheduler is.
    """
    items = iter(items)
    waiting: dict[Future, tuple[Item, int]] = {}
    while True:
        free = max(1, 2 * places()) - len(waiting)  # fewer than none after a worker has died
        for item in islice(items, max(0, free)):
            waiting[submit(item, 0)] = item, 0
        if not waiting:
            return
        ended, _ = wait(waiting, timeout=1.0, return_when=FIRST_COMPLETED)
        for future in ended:
            item, attempts = waiting.pop(future)
            error = future.exception()
            if isinstance(error, Gone):
                raise error
            if cluster and attempts + 1 < ATTEMPTS and cluster.retire(error):
                waiting[submit(item, attempts + 1)] = item, attempts + 1
            else:
                yield item, future
        yield None


def why(error: BaseException) -> str:
    """What came of a task that has failed, in a line."""
    if type(error).__name__ == "KilledWorker":
        return f"set aside: {ATTEMPTS} workers died while they carried it out"
    if isinstance(error, Unfit):
        workers = f"{ATTEMPTS} workers, or all that were left,"
        return f"set aside: {workers} could not carry it out, the last one since {error.why}"
    return f"{type(error).__name__}: {error}"


def _at_worker(expected: bytes, function: Callable, *arguments: Any) -> Any:
    """What a worker does: it calls the function, if it is fit for that."""
    if package() != expected:
        raise Unfit(_address(), "it has another nummodel, tables or versions of libraries")
    try:
        return function(*arguments)
    except OSError as error:
        if error.errno in (ENOSPC, EDQUOT):
            need_space()  # else the disk of somebody else is full
        raise


def need_space(*folders: str) -> None:
    """Raise Unfit if there is no space for temporary files of this worker, or in its `folders`."""
    try:
        for folder in (gettempdir(), *folders):
            os.makedirs(folder, exist_ok=True)
            with TemporaryFile(dir=folder) as file:
                file.write(bytes(SPACE))
    except OSError as error:
        if error.errno in (ENOSPC, EDQUOT):
            raise Unfit(_address(), f"{error.strerror}") from None
        raise


def _address() -> str:
    from distributed import get_worker

    return get_worker().address


def _told() -> bytes:
    return package()


def _allow_failures(number: int, dask_scheduler: Any = None) -> None:
    dask_scheduler.allowed_failures = number


@cache
def package() -> bytes:
    """A hash of version, sources, tables, lock file, and the versions of Python and LIBRARIES.

    Two machines with the same hash compute the same, but for the last digits of their processors.
    """
    root = Path(__file__).parent
    everything = sha256(__version__.encode())
    sources = [*root.rglob("*.py"), *root.rglob("*.j2")]
    tables = (data.HOME / "data").glob("[!.]*.*")  # not the folders that JupyterLab makes there
    for path in sorted([*sources, *tables, *data.HOME.glob("requirements.lock")]):
        everything.update(path.name.encode() + path.read_bytes())
    everything.update(json.dumps([sys.version_info[:2], *map(_version, LIBRARIES)]).encode())
    return everything.digest()


def _version(library: str) -> str:
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:  # of an extra that is not installed
        return ""

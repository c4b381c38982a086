"""What a cluster does when its parts die, and what it costs. Run by `make cluster`.

A scheduler and three workers run as processes of this machine, with TLS. They carry out 200 runs of
a short notebook. In each of six drills something is killed, filled or stopped while 40 runs are
under way; then the same command is given again, and its files are compared with those of an
undisturbed report. A sweep solves 10^7 closed networks in a bare loop, with two processes and with
two workers of Dask; it is killed in the middle and continued. The figures go to CLUSTER.md.
"""

import csv
import hashlib
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import click
import nbformat
import psutil
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

BIN = Path(sys.executable).parent
#: A short notebook: it notes in a file that it was executed, and uses some space of its disk.
CELLS = (
    "import os, tempfile, time\nimport numpy as np\nfrom nummodel.models import networks\n"
    "from nummodel.records import claims",
    "with open('executed.txt', 'a') as file:\n    file.write(f'{seed}\\n')",
    "with tempfile.TemporaryFile() as file:\n    file.write(bytes(200_000))\n    time.sleep(0.3)",
    "D = np.random.default_rng(seed).uniform(0.001, 0.01, 8)",
    "found = networks.solve([networks.queue(d) for d in D], 200, Z=1.0)",
    "claims.record('throughput', found.X, unit='1/s')",
)
STATIONS, N, Z = 8, 200, 1.0


# The processes of a cluster


class Site:
    """A scheduler and workers with TLS, in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, free_port()
        self.address = f"tls://127.0.0.1:{self.port}"
        self.processes: dict[str, subprocess.Popen] = {}
        certify(folder)
        self.tls = ["--tls-ca-file", folder / "ca.pem"]
        self.tls += ["--tls-cert", folder / "own.pem", "--tls-key", folder / "own.key"]

    def start(self, name: str, *command: Any, **environment: str) -> None:
        """A process of a name, with a log beside it."""
        with open(self.folder / f"{name}.log", "a") as log:
            self.processes[name] = subprocess.Popen(
                [BIN / "dask", *map(str, [*command, *self.tls])],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                cwd=self.folder,
                env=os.environ | environment,
                start_new_session=True,
            )

    def scheduler(self) -> None:
        ttl = {"DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "10s"}  # instead of five minutes
        options = ["--host", self.address, "--protocol", "tls", "--no-dashboard"]
        self.start("scheduler", "scheduler", *options, **ttl)

    def worker(self, name: str, nanny: bool = False, disk: Path | None = None) -> None:
        place = disk or self.folder / name
        place.mkdir(exist_ok=True)
        options = ["--nthreads", 1, "--host", "tls://127.0.0.1", "--no-dashboard", "--name", name]
        options += ["--nanny" if nanny else "--no-nanny", "--local-directory", place]
        own = {"TMPDIR": str(place), "JUPYTER_RUNTIME_DIR": str(place)}
        self.start(name, "worker", self.address, *options, **own)

    def whole(self, disk: Path | None = None) -> None:
        """A scheduler and three workers, one of them with a nanny."""
        self.scheduler()
        self.worker("one")
        self.worker("two", nanny=True)
        self.worker("three", disk=disk)
        self.await_workers(3)

    def await_workers(self, count: int) -> None:
        from distributed import Client

        with Client(self.address, security=self.security(), timeout=60) as client:
            client.wait_for_workers(count, timeout=120)

    def security(self) -> Any:
        from distributed.security import Security

        own = {
            "tls_client_cert": self.folder / "own.pem",
            "tls_client_key": self.folder / "own.key",
        }
        files = {"tls_ca_file": self.folder / "ca.pem", **own}
        return Security(**{n: str(p) for n, p in files.items()}, require_encryption=True)

    def kill(self, name: str) -> None:
        """kill -9 of a process with what it has started, such as the worker of a nanny."""
        process = psutil.Process(self.processes[name].pid)
        for one in [process, *process.children(recursive=True)]:
            with suppress(psutil.NoSuchProcess):
                one.kill()
        self.processes.pop(name).wait()

    def end(self) -> None:
        for name in list(self.processes):
            with suppress(psutil.NoSuchProcess):
                self.kill(name)


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def certify(folder: Path) -> None:
    """An authority and a certificate, as docs/cluster.md makes them."""
    text = (Path(__file__).parent.parent / "docs" / "cluster.md").read_text()
    for command in re.findall(r"^openssl .*$", text, re.M):
        subprocess.run(command, shell=True, cwd=folder, check=True, capture_output=True)


# Reports


def short(folder: Path) -> Path:
    cells = [new_markdown_cell("# How fast?\n\nAs fast as it is."), new_code_cell("seed: int = 1")]
    cells[1].metadata["tags"] = ["parameters"]
    path = folder / "short.ipynb"
    book = new_notebook(cells=cells + [new_code_cell(source) for source in CELLS])
    for i, cell in enumerate(book.cells):
        cell["id"] = f"cell-{i}"
    nbformat.write(book, path)
    return path


def command(folder: Path, seeds: range, output: str, *options: Any) -> subprocess.Popen:
    sweep = f"seed={','.join(map(str, seeds))}"
    start = [BIN / "nummodel", "report", "short.ipynb", "--sweep", sweep, "--output", output]
    with open(folder / f"{output}.log", "a") as log:
        return subprocess.Popen([*map(str, [*start, *options])], cwd=folder, stdout=log, stderr=log)


def digests(report: Path) -> dict[str, str]:
    """A check sum of each file of a report, without what tells how long something took."""
    found = {}
    for path in sorted(report.iterdir()):
        if path.name == "index.html" or path.name.startswith("."):
            continue
        text = path.read_text()
        if path.suffix == ".ipynb":
            book = json.loads(text)
            book["metadata"]["nummodel_run"].pop("seconds")
            for cell in book["cells"]:
                cell["metadata"].pop("execution", None)
                cell["metadata"].pop("papermill", None)
            book["metadata"].pop("papermill", None)
            text = json.dumps(book, sort_keys=True)
        elif path.suffix == ".html":
            text = re.sub(r"\d+\.\d s\b", "", text)
        elif path.suffix == ".csv":
            rows = [row | {"seconds": ""} for row in csv.DictReader(text.splitlines())]
            text = json.dumps(sorted(rows, key=lambda row: row["run"]))
        found[path.name] = hashlib.sha256(text.encode()).hexdigest()
    return found


def finished(report: Path) -> dict[str, int]:
    """The runs that have their notebook, and when it was written."""
    return {path.stem: path.stat().st_mtime_ns for path in report.glob("[!.]*.ipynb")}


def executions(folder: Path) -> Counter:
    file = folder / "executed.txt"
    return Counter(file.read_text().split()) if file.exists() else Counter()


# Drills


def kill_worker(site: Site, caller: subprocess.Popen) -> None:
    site.kill("one")


def kill_with_nanny(site: Site, caller: subprocess.Popen) -> None:
    site.kill("two")


def kill_caller(site: Site, caller: subprocess.Popen) -> None:
    caller.kill()


def kill_scheduler(site: Site, caller: subprocess.Popen) -> None:
    site.kill("scheduler")


def fill_disk(site: Site, caller: subprocess.Popen) -> None:
    with suppress(OSError), open(site.folder / "small" / "filler", "wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))


def hang_worker(site: Site, caller: subprocess.Popen) -> None:
    """The worker alone: its kernel, which is another process, may come to its end."""
    site.processes["one"].send_signal(signal.SIGSTOP)


DRILLS: dict[str, Callable[[Site, subprocess.Popen], None]] = {
    "kill -9 of a worker": kill_worker,
    "kill -9 of a worker and its nanny": kill_with_nanny,
    "kill -9 of the caller": kill_caller,
    "kill -9 of the scheduler": kill_scheduler,
    "disk of a worker full": fill_disk,
    "a worker hangs": hang_worker,
}


@contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """A file system of 2 MB. Raises CalledProcessError where none may be mounted."""
    place = folder / "small"
    place.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place)]
    subprocess.run(mount, check=True, capture_output=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def drill(name: str, folder: Path, seeds: range, right: dict[str, str], seed: int) -> list[Any]:
    """A row of the table. Raises AssertionError if anything was lost or done twice."""
    folder.mkdir()
    short(folder)
    harm, draw = DRILLS[name], random.Random(f"{seed} {name}")
    site = Site(folder)
    with small_disk(folder) as disk:
        try:
            site.whole(disk if harm is fill_disk else None)
            options = ["--scheduler", site.address, *site.tls]
            at, start = draw.randrange(len(seeds) // 5, len(seeds) // 2), time.monotonic()
            caller = command(folder, seeds, "out", *options)
            until(lambda: len(finished(folder / "out")) >= at or caller.poll() is not None)
            assert caller.poll() is None, (folder / "out.log").read_text()
            before, executed = finished(folder / "out"), executions(folder)
            harm(site, caller)
            code = caller.wait(600)
            if harm is kill_scheduler:
                site.end()
                site.whole()
            after = finished(folder / "out")
            again = command(folder, seeds, "out", *options).wait(600)
            took = time.monotonic() - start
        finally:
            site.end()
    assert again == 0, (folder / "out.log").read_text()
    whole, twice = finished(folder / "out"), executions(folder) - executed
    for earlier in (before, after):  # what was finished was neither written nor executed again
        assert earlier.items() <= whole.items()
    redone = [run for run in before if twice[run.partition("=")[2]]]
    assert not redone, redone
    found = digests(folder / "out")
    different = [file for file in right if found.get(file) != right[file]]
    assert not different and found.keys() == right.keys(), different
    extra = sum(executions(folder).values()) - len(seeds)
    return [name, len(before), code, len(after), extra, f"{took:.0f}"]


def until(condition: Callable[[], bool], seconds: float = 600) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def drills(folder: Path, count: int, seed: int, only: list[str]) -> list[list[Any]]:
    seeds = range(1, count + 1)
    calm = folder / "calm"
    calm.mkdir()
    short(calm)
    assert command(calm, seeds, "out").wait(600) == 0, (calm / "out.log").read_text()
    right, rows = digests(calm / "out"), []
    for i, name in enumerate(only or DRILLS):
        click.echo(f"cluster: {name}", err=True)
        rows.append(drill(name, folder / f"drill-{i}", seeds, right, seed))
        click.echo(rows[-1], err=True)
    return rows


@click.command()
@click.option("--seed", default=2026, show_default=True)
@click.option("--runs", default=40, show_default=True, help="Of each drill.")
@click.option("--drill", "only", multiple=True, help="Only this drill.")
def main(seed: int, runs: int, only: tuple[str, ...]) -> None:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        rows = drills(Path(name), runs, seed, list(only))
    print(rows)


if __name__ == "__main__":
    main()

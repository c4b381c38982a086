"""What a cluster does when its parts die, and what it costs. Run by `make cluster`.

A scheduler and three workers run as processes of this machine, with TLS. They carry out 200 runs of
a short notebook. In each of six drills something is killed, filled or stopped while 40 runs are
under way; then the same command is given again, and its files are compared with those of an
undisturbed report. A sweep solves 10^7 closed networks in a bare loop, in two bare loops at once,
with two processes and with two workers of Dask, in turn and several times; it is killed in the
middle and continued. The figures go to CLUSTER.md.
"""

import csv
import hashlib
import json
import os
import random
import re
import resource
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any

import click
import nbformat
import numpy as np
import psutil
from distributed import Client
from distributed.security import Security
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from nummodel.cluster import Cluster, completed
from nummodel.models import networks
from nummodel.sweeps import Points, sweep

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
#: Ways to sweep, and how many processors each may use.
WAYS = {"bare loop": 1, "two bare loops at once": 2, "two processes": 2, "Dask, two workers": 2}
ROUNDS = 3  # of all ways in turn: the figures are medians, since machines are noisy

NOTES = """## What was tried for the sweep

Measured on 2026-11-25, side by side. Shares are of the bare loop, a core, by wall time.

- **Longer chunks.** With chunks of 100,000, 312,500, 625,000 and 1,250,000 points, two processes
  reached 0.88, 0.89, 0.91 and 0.90, and Dask 0.68, 0.77, 0.76 and 0.79. By processor time, two
  processes reached 0.90, 0.91, 0.93 and 0.92, and Dask 0.76, 0.86, 0.85 and 0.89. A sweep had 32
  chunks or more, whoever carried them out. Since then it has 8 or more for each process or worker:
  here chunks of a second.
- **The clock.** Until 2026-11-25 the time with Dask included that the scheduler imports this
  module, which no sweep of a user does. Without it, the share is the same.
- **Where the time of Dask goes.** In a sweep whose tasks were watched, and which took 10.2 s,
  workers waited for less than 0.04 s between their tasks. A chunk of 312,500 points took 0.60 to
  0.63 s in a worker, 0.60 s in one of two processes, 0.58 s in a process alone, and 0.53 s in the
  bare loop. So nearly all of it is within the tasks: a worker has threads of its own, and
  scheduler and caller share the two processors.
- **Without the profiler of Dask's workers**
  (`DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED=False`) the sweep took 9.7 and 9.9 s instead of
  10.1 and 10.2 s. It is left on, as it is by default.
- **Other allocation of memory.** With one arena for all threads the sweep took 10.4 s instead of
  10.2 s; with a large `MALLOC_TRIM_THRESHOLD_` a chunk took 0.74 s instead of 0.59 s.
- **Parameters stored as indices of their values** took 0.57 s a chunk, as without; row groups of
  8,192 points also took 0.57 s, with files that were 14 % larger. A file without dictionaries was
  written in 20.6 ms instead of 22.5 ms, and was 2.4 times as large.
"""


# The processes of a cluster


class Site:
    """A scheduler and workers with TLS, in a folder that has the certificates."""

    def __init__(self, folder: Path, port: int = 0) -> None:
        self.folder, self.port = folder, port or free_port()
        self.address = f"tls://127.0.0.1:{self.port}"
        self.processes: dict[str, subprocess.Popen] = {}
        if not (folder / "own.pem").exists():
            certify(folder)
        self.tls = ["--tls-ca-file", folder / "ca.pem"]
        self.tls += ["--tls-cert", folder / "own.pem", "--tls-key", folder / "own.key"]

    def start(self, name: str, *command: Any, **environment: str) -> None:
        """A process of a name, with a log beside it; it can import this module."""
        paths = f"{Path(__file__).parent}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
        with open(self.folder / f"{name}.log", "a") as log:
            self.processes[name] = subprocess.Popen(
                [BIN / "dask", *map(str, [*command, *self.tls])],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                cwd=self.folder,
                env=os.environ | {"PYTHONPATH": paths} | environment,
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

    def two(self) -> None:
        """A scheduler and two workers."""
        self.scheduler()
        self.worker("one")
        self.worker("two")
        self.await_workers(2)

    def client(self) -> Client:
        own = {
            "tls_client_cert": self.folder / "own.pem",
            "tls_client_key": self.folder / "own.key",
        }
        own["tls_ca_file"] = self.folder / "ca.pem"
        security = Security(**{n: str(p) for n, p in own.items()}, require_encryption=True)
        return Client(self.address, security=security, timeout=60)

    def await_workers(self, count: int) -> None:
        with self.client() as client:
            client.wait_for_workers(count, timeout=120)

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
        time.sleep(0.01)


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


# Two hundred runs


def many(folder: Path, count: int) -> dict[str, float]:
    """Seconds of as many runs by three workers over TLS, of the same command again, and of the
    same runs without a cluster, three at a time; and the bytes that a run leaves.
    """
    folder.mkdir()
    short(folder)
    seeds, site, found = range(1, count + 1), Site(folder), {}
    ways = {"cluster": site.tls, "again": site.tls, "alone": ["--jobs", 3]}
    try:
        site.whole()
        for way, options in ways.items():
            where = [] if way == "alone" else ["--scheduler", site.address]
            output, start = "alone" if way == "alone" else "out", time.monotonic()
            assert command(folder, seeds, output, *where, *options).wait() == 0
            found[way] = time.monotonic() - start
    finally:
        site.end()
    assert digests(folder / "out") == digests(folder / "alone")
    left = [path.stat().st_size for path in (folder / "out").glob("short*")]
    return found | {"bytes": sum(left) / count}


def cost(folder: Path, count: int = 1000) -> float:
    """Seconds that an empty task costs, from its submission to its result, with two workers."""
    folder.mkdir()
    site = Site(folder)
    try:
        site.two()
        with site.client() as client:
            cluster = Cluster(client)

            def submit(i: int, attempts: int) -> Any:
                return cluster.submit(f"empty-{i}", int, i)

            start = time.monotonic()
            done = list(filter(None, completed(submit, range(count), cluster.places, cluster)))
            took = time.monotonic() - start
        assert sorted(future.result() for _, future in done) == list(range(count))
    finally:
        site.end()
    return took / count


# A sweep of closed networks


def closed(**demands: np.ndarray) -> np.ndarray:
    """Throughput with N customers, by the recursion of Reiser and Lavenberg (1980)."""
    D = np.array(list(demands.values()))
    Q, X = np.zeros_like(D), np.zeros(D.shape[1])
    for n in range(1, N + 1):
        R = D * (1 + Q)
        X = n / (Z + R.sum(axis=0))
        Q = X * R
    return X


def grid(points: int) -> dict[str, np.ndarray]:
    """Ten values of each of the first demands [s], and as many of the last as make the points."""
    names = [f"D_{k}" for k in range(STATIONS)]
    values = dict.fromkeys(names, np.array([0.005]))
    varied = round(np.log10(points))
    assert points == 10**varied and varied < STATIONS
    return values | {name: np.linspace(0.001, 0.01, 10) for name in names[:varied]}


def swept(
    points: int, folder: str, how: str, port: int = 0, certificates: str = "", chunk: int = 0
) -> None:
    """Of a process of its own: prints the points a second of a way to sweep, the points a second of
    processor time, and the memory.
    """
    if "bare" in how:
        print(json.dumps(bare(Points.of(grid(points))) | {"memory": memory(0)}))
        return
    with Site(Path(certificates), port).client() if port else nullcontext() as client:
        # Not counted: what imports libraries in the workers, once for any sweep.
        sweep(closed, grid(10**3), Path(f"{folder} first"), client=client, chunk=100)
        before = processor(client)  # first, since scheduler and workers import this module for it
        start = time.monotonic()
        found = sweep(closed, grid(points), Path(folder), 2, client, chunk)
        took, used = time.monotonic() - start, processor(client) - before
    assert found.count_rows() == points
    rates = {"rate": points / took, "processor": points / used}
    print(json.dumps(rates | {"memory": memory(0 if client else 2)}))


def bare(points: Points) -> dict[str, float]:
    """Points a second of calls with arrays, of the size that is best, for some seconds each."""
    rates: dict[str, list[float]] = {"rate": [], "processor": []}
    for together in (1024, 2048, 4096, 8192, 16384):
        last = min(len(points), 10**6 // together * together)
        start, before = time.monotonic(), processor()
        for i in range(0, last, together):
            closed(**points.part(i, min(i + together, last)))
        rates["rate"].append(last / (time.monotonic() - start))
        rates["processor"].append(last / (processor() - before))
    return {what: max(some) for what, some in rates.items()}


def processor(client: Client | None = None) -> float:
    """Seconds of processor time of this process, of those that it has waited for, and of scheduler
    and workers, if there are such.
    """
    both = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    own = sum(used.ru_utime + used.ru_stime for used in both)
    if not client:
        return own
    return own + client.run_on_scheduler(processor) + sum(client.run(processor).values())


def memory(children: int) -> float:
    """The largest memory of this process and of processes that it has waited for [MiB]."""
    own, largest = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN
    used = [resource.getrusage(who).ru_maxrss / 1024 for who in (own, largest)]
    return used[0] + children * used[1]


def sweeping(folder: Path, points: int) -> dict[str, dict[str, float]]:
    """The rates of all ways, and a sweep by processes that is killed and continued."""
    folder.mkdir()
    rounds: list[dict[str, dict[str, float]]] = []

    def start(name: str, how: str, *more: Any) -> subprocess.Popen:
        code = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import cluster"
        call = f"cluster.swept({points}, {name!r}, {how!r}, *{more!r})"
        return subprocess.Popen(
            [sys.executable, "-c", f"{code}; {call}"], cwd=folder, stdout=subprocess.PIPE, text=True
        )

    def told(*processes: subprocess.Popen) -> dict[str, float]:
        """What processes print: the rates are the sum of theirs, or the mean by processor time."""
        found = [json.loads(process.communicate()[0]) for process in processes]
        rates = {what: sum(one[what] for one in found) for what in found[0]}
        return rates | {"processor": rates["processor"] / len(found)}

    for i in range(ROUNDS):
        rounds.append({})
        for how in WAYS:
            name, count = f"{how}-{i}", 2 if "at once" in how else 1
            if "Dask" not in how:
                rounds[-1][how] = told(*[start(name, how) for _ in range(count)])
            else:
                rounds[-1][how] = by_dask(folder, lambda *at, to=(name, how): told(start(*to, *at)))
            click.echo(f"cluster: {how}: {rounds[-1][how]}", err=True)
    rows = {how: beside(rounds, how) for how in WAYS}
    stored = ("two processes", "Dask, two workers")
    compared = [folder / f"{how}-{i}" for how in stored for i in range(ROUNDS)]
    many = 0, "", points // 100  # so that a third is there long before the last
    killed = start("killed", "two processes", *many)
    until(lambda: len(parts(folder / "killed")) >= 33)
    killed.kill()
    killed.communicate()
    before = written(folder / "killed")
    told(start("killed", "two processes", *many))
    after = written(folder / "killed")
    assert before.items() <= after.items() and len(before) < len(after)
    found = value_of(compared[0])
    for other in [*compared[1:], folder / "killed"]:
        assert np.array_equal(found, value_of(other))
    for i in np.random.default_rng(1).integers(points, size=20):  # by the package's own method
        D = Points.of(grid(points)).part(int(i), int(i) + 1)
        stations = [networks.queue(float(d[0])) for d in D.values()]
        assert abs(networks.solve(stations, N, Z).X / found[i] - 1) < 1e-9
    rows["killed"] = {"kept": len(before), "chunks": len(after)}
    rows["stored"] = {"bytes": sum(path.stat().st_size for path in parts(compared[0])) / points}
    return rows


def by_dask(folder: Path, run: Callable[..., dict[str, float]]) -> dict[str, float]:
    """The rates with a scheduler and two workers, and the memory of all."""
    site = Site(folder)
    try:
        site.two()
        found = run(site.port, str(folder))
        there = [psutil.Process(site.processes[name].pid) for name in ("one", "two", "scheduler")]
        found["memory"] += sum(p.memory_info().rss for p in there) / 2**20
    finally:
        site.end()
    return found


def beside(rounds: list[dict[str, dict[str, float]]], how: str) -> dict[str, float]:
    """Medians of the figures of a way, and of what it reaches of the bare loops of its round."""
    found = {what: median(one[how][what] for one in rounds) for what in rounds[0][how]}
    for other in ("bare loop", "two bare loops at once"):
        for what, cores in (("rate", WAYS[how] / WAYS[other]), ("processor", 1.0)):
            shares = [one[how][what] / one[other][what] / cores for one in rounds]
            found[f"{what}, {other}"] = median(shares)
    return found


def parts(folder: Path) -> list[Path]:
    return sorted(folder.glob("part-*.parquet"))


def written(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in parts(folder)}


def value_of(folder: Path) -> np.ndarray:
    from pyarrow import parquet

    tables = [parquet.read_table(path, columns=["value"])["value"] for path in parts(folder)]
    return np.concatenate([table.to_numpy() for table in tables])


# What is written


def drill_lines(rows: list[list[Any]], count: int) -> list[str]:
    return [
        "## Drills",
        "",
        f"Each drill has {count} runs. After the same command was given again, all files were the "
        "same as those of an undisturbed report but for times, and no run that had been written "
        'before the harm was written or executed again. "Executed more" counts executions beyond '
        "one a run: of runs that were under way when the harm was done, or lost on their way.",
        "",
        "| harm | written before | exit code | written after it | executed more | [s] |",
        "|---|---|---|---|---|---|",
        *[f"| {' | '.join(map(str, row))} |" for row in rows],
        "",
    ]


def sweep_lines(rates: dict[str, dict[str, float]], points: int) -> list[str]:
    lines = [
        "## A sweep",
        "",
        f"{points:,} closed networks with {STATIONS} stations and {N} customers. The bare loop "
        "calls the model with arrays on one core and stores nothing; its best size of arrays "
        "counts. Two bare loops at once tell what two cores give that share memory, cache and "
        "clock. The others store Parquet files. Each way ran in a process of its own, all in turn, "
        f"{ROUNDS} times: the figures are medians, and shares are of the bare loops of the same "
        "round. The first two shares are those of a core by wall time. Processor time and memory "
        "are those of all processes, scheduler and caller included.",
        "",
        "| how | points a second | of the bare loop, a core (goal: 0.9) "
        "| of two bare loops at once, a core | of the bare loop, processor time "
        "| of two bare loops, processor time | memory [MiB] |",
        "|---|---|---|---|---|---|---|",
    ]
    for how in WAYS:
        shares = [
            f"{rates[how][f'{what}, {other}']:.2f}"
            for what in ("rate", "processor")
            for other in ("bare loop", "two bare loops at once")
        ]
        lines.append(
            f"| {how} | {rates[how]['rate']:,.0f} | {' | '.join(shares)} "
            f"| {rates[how]['memory']:.0f} |"
        )
    kept, chunks = rates["killed"]["kept"], rates["killed"]["chunks"]
    killed = f"After kill -9 with {kept} of {chunks} chunks written, the same call kept these and "
    killed += "made the others; all values of all sweeps were the same to the last bit. "
    killed += "Twenty of them agree with `networks.solve` to 9 digits."
    return [*lines, "", killed, ""]


def paper_lines(took: dict[str, float], runs: int, each: float, rates: dict) -> list[str]:
    places = 400
    dask = rates["Dask, two workers"]["rate"] / 2
    chunks, stored = 1e9 / dask, rates["stored"]["bytes"]
    run = 3 * took["cluster"] / runs  # seconds of a worker
    wide, limit = 1e4 * run / places, "is" if each * places > 1 else "is not"
    return [
        "## What a task costs, and 100 machines on paper",
        "",
        f"An empty task takes {1000 * each:.1f} ms, with scheduler, two workers and the command "
        "sharing this machine.",
        "",
        f"The following is computed for 100 machines with {places} workers in all, each as fast as "
        "one of the workers above. It was not measured.",
        "",
        f"- 10^9 points of this network are {chunks:,.0f} chunks of a second, and "
        f"{chunks / places:,.0f} s of work of {places} workers. The scheduler needs "
        f"{chunks * each:,.0f} s for as many tasks, so it {limit} the limit: it can keep about "
        f"{1 / each:,.0f} workers busy with chunks of a second. Longer chunks (`chunk=`) relieve "
        f"it. The files take {stored:.1f} GB.",
        f"- 10^4 short notebooks are {wide:,.0f} s of work of {places} workers, "
        f"{1e4 / wide:,.0f} runs a second, for which the scheduler needs {1e4 * each:,.0f} s. The "
        f"files take {took['bytes'] * 1e4 / 1e9:.1f} GB, all of which the command receives, "
        "writes, and holds in memory for the index. The memory of the command breaks first with "
        "larger notebooks or more runs, before the scheduler does.",
    ]


@click.command()
@click.option("--seed", default=2026, show_default=True)
@click.option("--runs", default=200, show_default=True, help="Of the short notebook.")
@click.option("--drill-runs", default=40, show_default=True, help="Of each drill.")
@click.option("--points", default=10**7, show_default=True, help="Of the sweep, a power of 10.")
@click.option("--drill", "only", multiple=True, help="Only this drill, and nothing else.")
def main(seed: int, runs: int, drill_runs: int, points: int, only: tuple[str, ...]) -> None:
    """Measure, try what may die, and write CLUSTER.md."""
    load = os.getloadavg()[2]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name)
        if only:
            drills(folder, drill_runs, seed, list(only))
            return
        rates = sweeping(folder / "sweep", points)
        each = cost(folder / "cost")
        took = many(folder / "many", runs)
        click.echo(f"cluster: {runs} runs: {took}, {each:.4f} s a task", err=True)
        rows = drills(folder, drill_runs, seed, [])
    lines = [
        f"# A cluster of processes: {date.today()}",
        "",
        f"Made by `make cluster SEED={seed}` on {os.cpu_count()} processors, whose load was "
        f"{load:.1f} in the 15 minutes before. A scheduler and three workers were processes of "
        "this machine, with TLS.",
        "",
        f"{runs} runs of a short notebook took {took['cluster']:.0f} s, the same command again "
        f"{took['again']:.1f} s, and the same runs without a cluster, three at a time, "
        f"{took['alone']:.0f} s. The files of both were the same but for times.",
        "",
        *drill_lines(rows, drill_runs),
        *sweep_lines(rates, points),
        *paper_lines(took, runs, each, rates),
        "",
        NOTES.strip(),
    ]
    text = "\n".join(lines) + "\n"
    (Path(__file__).parent / "CLUSTER.md").write_text(text, encoding="utf-8")
    click.echo(text)


if __name__ == "__main__":
    main()

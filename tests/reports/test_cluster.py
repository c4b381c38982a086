"""Reports by the workers of a cluster: the same files, whatever dies, and nobody else let in."""

import asyncio
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import tomllib
from contextlib import contextmanager
from contextvars import copy_context
from errno import ENOSPC
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile
from unittest.mock import Mock

import psutil
import pytest
from inprocess import nummodel
from reporting import RECORD, command, finish, notebook, wait_for

import nummodel as package
from nummodel import cluster
from nummodel.errors import InputError
from nummodel.reports import remote
from nummodel.reports.runs import Run

ROOT = Path(__file__).parent.parent.parent
DASK = Path(sys.executable).parent / "dask"


@pytest.fixture(scope="module")
def local():
    """A scheduler and two workers, as threads of this process, that listen on the loopback."""
    from distributed import Client, LocalCluster

    options = {"n_workers": 2, "threads_per_worker": 1, "processes": False, "protocol": "tcp://"}
    options |= {"host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    with LocalCluster(**options) as workers, Client(workers) as client:
        yield client


def address(client):
    return client.scheduler.address


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@contextmanager
def site(folder, scheme, workers, options=(), **environment):
    """The address of a scheduler with workers that are processes, and these processes."""
    at, started = f"{scheme}://127.0.0.1:{free_port()}", []

    def start(*arguments, **more):
        with open(folder / "dask.log", "a") as log:
            started.append(
                subprocess.Popen(
                    [DASK, *map(str, [*arguments, *options, "--no-dashboard"])],
                    cwd=folder,
                    stdout=log,
                    stderr=log,
                    env=os.environ | more,
                )
            )

    try:
        start("scheduler", "--host", at)
        for _ in range(workers):
            own = ["--nthreads", 1, "--no-nanny", "--host", f"{scheme}://127.0.0.1"]
            start("worker", at, *own, **environment)
        registered = "Registered to:"
        wait_for(lambda: (folder / "dask.log").read_text().count(registered) == workers)
        yield at, started
    finally:
        for process in started:
            process.kill()
            process.wait()


def contents(folder):
    """The files of a report, without how long anything took."""
    found = {}
    for path in folder.glob("[!.]*.*"):
        text = re.sub(r"\d+\.\d+ s\b|<td>\d+\.\d</td>|on [-\d]+ at [:\d]+", "", path.read_text())
        text = re.sub(r'"(seconds|\w+\.\w+\.?\w*)": ("20[^"]*Z"|[\d.]+)', "", text)
        found[path.name] = re.sub(r",(executed|failed),[\d.]+", r",\1", text)
    return found


@pytest.mark.slow
def test_workers_leave_the_same_files(tmp_path, local):
    """Of a notebook that reads a file beside it, too."""
    (tmp_path / "beside.txt").write_text("twelve")
    read = "assert open('beside.txt').read() == 'twelve'"
    path = notebook(tmp_path, "own", read, RECORD, "print(1 / (size - 3))")
    runs = (path, "--sweep", "size=1,2,3,4")
    code, out, err = nummodel(
        "report", *runs, "--output", "there", "--scheduler", address(local), cwd=tmp_path
    )
    assert (code, out) == (1, "there/index.html\n")
    assert "own,size=3: ZeroDivisionError" in err and "4 runs of 1 notebook, 2 at a time" in err
    assert nummodel("report", *runs, "--output", "here", cwd=tmp_path)[0] == 1
    there, here = contents(tmp_path / "there"), contents(tmp_path / "here")
    assert there == here and len(here) == 11
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "there").glob("*.ipynb")}
    code, _, err = nummodel(
        "report", *runs, "--output", "there", "--scheduler", address(local), cwd=tmp_path
    )
    assert code == 1 and "3 of 4 runs were there already" in err
    after = {path: path.stat().st_mtime_ns for path in (tmp_path / "there").glob("*.ipynb")}
    assert len(set(before.items()) & set(after.items())) == 3


@pytest.mark.slow
def test_a_collections_notebook_comes_from_the_worker(tmp_path, local):
    done = nummodel("report", "01", "--scheduler", address(local), cwd=tmp_path)
    assert done[:2] == (0, "report/index.html\n")
    assert (tmp_path / "report" / "01-scaling-laws.html").stat().st_size > 50_000


@pytest.mark.parametrize(
    "given, refused",
    [
        ("tcp://10.0.0.3:8786", "without TLS anybody on the network may run programs there"),
        ("10.0.0.3:8786", "without TLS anybody"),
        ("tcp://cluster.example:8786", "expected tls://cluster.example:8786"),
        ("ws://127.0.0.1:8786", "expected an address such as tls://host:8786"),
        ("tcp://127.0.0.1", "expected an address such as tls://host:8786"),
        ("tcp://127.0.0.1:wrong", "expected an address such as tls://host:8786"),
        ("", "expected an address such as tls://host:8786"),
        ("tcp://127.0.0.1:8786", ""),
        ("tcp://[::1]:8786", ""),
        ("localhost:8786", ""),
        ("tls://10.0.0.3:8786", ""),
    ],
)
def test_plain_tcp_is_for_this_machine_only(given, refused):
    if refused:
        with pytest.raises(InputError, match=refused):
            cluster.refuse_open(given)
    else:
        cluster.refuse_open(given)


def refused(*options, cwd):
    """The one line on stderr that refuses a report."""
    code, out, err = nummodel("report", "01", *options, cwd=cwd)
    assert (code, out) == (2, "") and len(err.splitlines()) == 1 and not list(cwd.glob("report"))
    return err


def test_what_cannot_be_used_is_refused_in_a_line(tmp_path, monkeypatch):
    at = f"tcp://127.0.0.1:{free_port()}"
    monkeypatch.setattr(cluster, "PATIENCE", 1)
    assert "expected the address of a scheduler" in refused("--scheduler", at, cwd=tmp_path)
    assert "--no-execute" in refused("--scheduler", at, "--no-execute", cwd=tmp_path)
    assert "--scheduler" in refused("--tls-ca-file", __file__, cwd=tmp_path)
    monkeypatch.setattr(cluster, "find_spec", lambda name: None)
    line = refused("--scheduler", at, cwd=tmp_path)
    assert line.endswith("not installed: pip install 'nummodel[cluster]'\n")


@pytest.mark.slow
def test_with_tls_and_without_the_right_certificate(tmp_path):
    """As docs/cluster.md makes certificates. The workers are processes of their own."""
    commands = re.findall(r"^openssl .*$", (ROOT / "docs" / "cluster.md").read_text(), re.M)
    assert commands and shutil.which("openssl")
    for line in commands:
        subprocess.run(line, shell=True, cwd=tmp_path, check=True, capture_output=True)
    tls = ["--tls-ca-file", "ca.pem", "--tls-cert", "own.pem", "--tls-key", "own.key"]
    path = notebook(tmp_path, "own", RECORD)
    with site(tmp_path, "tls", 1, tls) as (at, _):
        done = nummodel("report", path, "--scheduler", at, *tls, cwd=tmp_path)
        assert done[:2] == (0, "report/index.html\n"), done.stderr
        code, _, err = nummodel("report", path, "--scheduler", at, "--output", "x", cwd=tmp_path)
    assert code == 2 and len(err.splitlines()) == 1 and not (tmp_path / "x").exists()


@pytest.mark.slow
def test_a_worker_with_another_version_is_refused(tmp_path):
    """That of a copy in which one comment was added."""
    other = tmp_path / "other"
    shutil.copytree(Path(package.__file__).parent, other / "nummodel")
    for name in ("data", "notebooks", "requirements.lock"):
        (other / name).symlink_to(ROOT / name)
    with open(other / "nummodel" / "plot.py", "a") as file:
        file.write("# changed\n")
    with site(tmp_path, "tcp", 1, PYTHONPATH=str(other)) as (at, _):
        line = refused("--scheduler", at, cwd=tmp_path)
    assert re.match(r"nummodel: worker tcp://127\S+ has another nummodel, expected the same", line)


def one_is_full(worker_of_first):
    """Fails on one worker, as if its disk were full, and gives the address of another."""
    from distributed import get_worker

    if get_worker().address == worker_of_first:
        raise OSError(ENOSPC, os.strerror(ENOSPC))
    return get_worker().address


def all_done(workers, full, count):
    """The tasks of which one worker has a full disk."""

    def submit(i, attempts):
        return workers.submit(f"one-{full}-{i}-{attempts}", one_is_full, full)

    return list(filter(None, cluster.completed(submit, range(count), workers.places, workers)))


def full_at(worker, monkeypatch):
    """The disk of one worker is full for its temporary files, too."""

    def made(**options):
        one_is_full(worker)
        return TemporaryFile(**options)

    monkeypatch.setattr(cluster, "TemporaryFile", made)


@pytest.mark.slow
def test_a_worker_whose_disk_is_full_does_no_more(capsys, monkeypatch):
    from distributed import Client

    options = {"n_workers": 2, "threads_per_worker": 1, "processes": False}
    with Client(**options, dashboard_address="127.0.0.1:0") as client:
        workers = cluster.Cluster(client)
        full, other = client.scheduler_info()["workers"]
        full_at(full, monkeypatch)
        done = all_done(workers, full, 8)
        assert sorted(i for i, _ in done) == list(range(8))
        assert {future.result() for _, future in done} == {other}
        assert list(client.nthreads()) == [other]
        full_at(other, monkeypatch)
        (_, future), *_ = all_done(workers, other, 1)
        assert cluster.why(future.exception()).endswith("since No space left on device")
        assert list(client.nthreads()) == [other]  # the last one stays
    said = capsys.readouterr().err
    assert f"worker {full}: No space left on device; its tasks go to other workers" in said
    assert f"worker {other}" not in said


def test_a_full_disk_that_is_not_the_workers_retires_nobody(local):
    workers, both = cluster.Cluster(local), local.nthreads()
    futures = [future for _, future in all_done(workers, next(iter(both)), 8)]
    assert {type(future.exception()) for future in futures} <= {OSError, type(None)}
    assert local.nthreads() == both


@pytest.mark.parametrize("error", [OSError("lost"), TimeoutError(), ValueError("mine")])
def test_a_scheduler_that_is_lost_is_gone_and_a_later_open_worker_refused(error):
    client = Mock(**{"scheduler_info.return_value": {"address": "tcp://127.0.0.1:1"}})
    client.nthreads.return_value = {"tcp://127.0.0.1:2": 1}
    client.run.return_value = {}
    workers = cluster.Cluster(client)
    client.nthreads.return_value = {"tcp://127.0.0.1:2": 1, "tcp://10.0.0.3:2": 1}
    with pytest.raises(InputError, match="without TLS"):
        workers.places()
    client.nthreads.side_effect = client.submit.side_effect = error
    unfit = cluster.Unfit("tcp://127.0.0.1:2", "it is full")
    for ask in (
        workers.places,
        partial(workers.submit, "one", sum),
        partial(workers.retire, unfit),
    ):
        with pytest.raises(cluster.Gone if isinstance(error, OSError) else ValueError):
            ask()


def test_libraries_are_those_of_the_package_its_notebooks_and_clusters():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    needed = project["dependencies"] + extras["notebooks"] + extras["cluster"]
    assert set(cluster.LIBRARIES) == {re.split(r"[^\w-]", one)[0] for one in needed}


def test_a_run_has_its_own_event_loop_and_a_folder_that_is_there(tmp_path):
    """In a thread whose context comes from one where a loop runs, as a thread of Dask may be."""
    from jupyter_core.utils import ensure_event_loop

    path, before = notebook(tmp_path, "own", "import os; print(os.listdir())"), os.getcwd()
    task = path.name, path.read_bytes(), {}, Run(path).key, str(tmp_path / "no"), [], 60.0, False

    async def running():
        ensure_event_loop()
        there = copy_context().run, remote.carry_out_there, *task
        return await asyncio.get_running_loop().run_in_executor(None, *there)

    outcome, _ = remote.opened(Run(path), asyncio.run(running()))
    assert outcome.error == "" and "own.ipynb" in str(outcome.notebook["cells"])
    assert os.getcwd() == before


def test_a_run_whose_data_differ_at_the_worker_has_failed(tmp_path, local, monkeypatch):
    path = notebook(tmp_path, "own", RECORD)
    there = tmp_path / "there"
    there.mkdir()
    path.rename(there / path.name)
    submit = remote.Submit(cluster.Cluster(local), ["own"], 60.0, False)
    # The worker has the notebook in a folder of its own, as it would have another file.
    monkeypatch.setattr(Run, "key", property(lambda run: f"{run.notebook.parent}"))
    with pytest.raises(ValueError, match="that its parameters name are others at the worker"):
        submit(Run(there / path.name), 0).result(timeout=60)


def test_what_was_damaged_on_its_way_is_not_taken():
    files = {"ipynb": (b"{}", "0"), "html": (b"", "0")}
    with pytest.raises(ValueError, match=r"own\.ipynb was damaged on its way"):
        remote.opened(Run(Path("own.ipynb")), files)


DEADLY = """
import psutil
next(p for p in psutil.Process().parents() if "worker" in p.cmdline()).kill()
"""


@pytest.mark.slow
def test_a_run_that_kills_three_workers_is_set_aside(tmp_path):
    """And the other run is done by the worker that is left; then the scheduler goes as well."""
    deadly, fine = notebook(tmp_path, "deadly", DEADLY), notebook(tmp_path, "fine", RECORD)
    slow = notebook(tmp_path, "slow", "open('begun', 'w').close()\nimport time; time.sleep(300)")
    with site(tmp_path, "tcp", 4) as (at, started):
        code, _, err = nummodel("report", deadly, fine, "--scheduler", at, cwd=tmp_path)
        assert code == 1 and "deadly: set aside: 3 workers died while they carried it out" in err
        assert "fine: executed" in err and "Traceback" not in err
        assert sum(process.poll() is None for process in started) == 2  # scheduler and a worker
        calling = command(slow, "--scheduler", at, cwd=tmp_path)
        wait_for((tmp_path / "begun").exists)
        started[0].kill()
        code, _, err = finish(calling)
    assert code == 1 and "Traceback" not in err
    assert err.endswith(
        "the scheduler does not answer any more; the same command goes on from there\n"
    )


@pytest.mark.slow
def test_a_straggler_that_is_started_twice_writes_once(tmp_path, monkeypatch):
    """A worker stands still, and another is given its run; then the first goes on."""
    monkeypatch.setenv("DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL", "3s")
    slow = "import time\nwith open('begun', 'a') as file: file.write('x')\ntime.sleep(4)"
    path, begun = notebook(tmp_path, "slow", slow, RECORD), tmp_path / "begun"
    with site(tmp_path, "tcp", 2) as (at, started):
        calling = command(path, "--scheduler", at, cwd=tmp_path)
        wait_for(begun.exists)
        standing = next(w for w in started[1:] if psutil.Process(w.pid).children(recursive=True))
        standing.send_signal(signal.SIGSTOP)
        wait_for(lambda: begun.read_text() == "xx")
        standing.send_signal(signal.SIGCONT)
        code, _, err = finish(calling)
        page = tmp_path / "report" / "slow.html"
        written = page.stat().st_mtime_ns
        time.sleep(5)  # the first would have ended by then
    assert code == 0 and err.count("slow: executed") == 1 and "Traceback" not in err
    assert page.stat().st_mtime_ns == written and begun.read_text() == "xx"
    assert {p.stem for p in (tmp_path / "report").iterdir()} >= {"slow", "index"}
    assert not [p for p in (tmp_path / "report").rglob("*") if "tmp" in p.name]

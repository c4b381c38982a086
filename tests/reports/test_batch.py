"""Many runs at once: sweeps, lists of runs, going on where one stopped, and all that can fail."""

import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from dataclasses import replace
from io import StringIO
from pathlib import Path

import nbformat
import psutil
import pytest
from inprocess import report as run_here
from quick import one_in
from reporting import RECORD, command, finish, in_foreground, notebook, table, wait_for

from nummodel.errors import InputError
from nummodel.reports import kernels, pages, progress, report, results, runs
from nummodel.reports.runs import Run

CLAIMS = "from nummodel.records import claims\n"


def hidden(folder):
    return [path.name for path in Path(folder).iterdir() if path.name.startswith(".")]


# Names and plans


def told(planned):
    return [run.parameters for run in planned]


def test_sweeps_make_every_combination(tmp_path):
    both = notebook(tmp_path, "both", parameters="a: int = 1\nb: list = [1]")
    one = notebook(tmp_path, "one", parameters="a: int = 1")
    planned = runs.plan([str(both), str(one)], [], ["b=[1,2],[3],4", "a=5,6"])
    lists = [[1, 2], [3], [4]]
    assert told(planned[:6]) == [{"a": a, "b": b} for a in (5, 6) for b in lists]
    assert told(planned[6:]) == [{"a": 5}, {"a": 6}]
    assert planned[0].name == "both,a=5,b=1+2"
    assert len({run.name for run in planned}) == 8
    assert told(runs.plan([str(one)], [], ["a=5,6,5"])) == [{"a": 5}, {"a": 6}]


@pytest.mark.parametrize(
    "given, sweep, what",
    [
        ([], ["c=1,2"], "unknown parameter 'c'"),
        ([], ["a=1,x"], "parameter a is 'x', expected int"),
        ([], ["a=1,"], "parameter a is '', expected int"),
        ([], ["a"], "expected name=value"),
        (["a=1"], ["a=2,3"], "'a' is given twice"),
        (["a=1", "a=2"], [], "'a' is given twice"),
    ],
)
def test_sweeps_that_cannot_run_are_refused(tmp_path, given, sweep, what):
    path = notebook(tmp_path, "one", parameters="a: int = 1")
    with pytest.raises(InputError, match=what):
        runs.plan([str(path)], given, sweep)


def test_names_are_readable_and_tell_runs_apart():
    path = Path("01-laws.ipynb")
    values = [0.5, 1.0, 10, 1e22, True, "usl", [6, 12], ["a", "b"], "", "A", "a", "a/b", "a-b"]
    names = [Run(path, {"x": value}).name for value in values]
    assert names[:8] == [
        f"01-laws,x={word}" for word in ("0.5", "1", "10", "1e+22", "true", "usl", "6+12", "a+b")
    ]
    assert len({name.lower() for name in names}) == len(names)
    long = [Run(path, {"x": f"{'y' * 300}{end}"}).name for end in "ab"]
    assert long[0] != long[1] and max(map(len, long)) < 140
    assert Run(path).name == "01-laws"


def test_runs_are_listed_in_a_file(tmp_path):
    path = notebook(tmp_path, "typed", parameters="a: int = 1\nb: list = [1]\nc: str = 'x'")
    listing = tmp_path / "runs.yaml"
    listing.write_text(
        f"- notebook: {path}\n  parameters: {{a: 08, b: [6, x], c: no}}\n"
        f"- notebook: {path}\n- {{notebook: 01, parameters: {{sigma: 1e-3}}}}\n"
    )
    first, plain, law = runs.listed(listing)
    assert first.parameters == {"a": 8, "b": [6, "x"], "c": "no"}
    assert plain.parameters == {} and plain.notebook == path
    assert law.notebook.stem.startswith("01") and law.parameters == {"sigma": 0.001}


@pytest.mark.parametrize(
    "text, what",
    [
        ("- {notebook: 01\n", r"runs\.yaml:\d: not YAML"),
        ("notebook: 01\n", "no list"),
        ("", "no list"),
        ("- notebook: 01\n- notebook: 99\n", r"runs\.yaml:2: 99: no such notebook"),
        ("- 01\n", r"runs\.yaml:1: no run"),
        ("- {notebook: 01, parameter: {}}\n", "no run"),
        ("- {notebook: 01, parameters: [1]}\n", "expected name: value"),
        ("- {notebook: 01, parameters: {sigma: [0.1]}}\n", "expected float"),
        ("- {notebook: 01, parameters: {sigma: 2}}\n", "at most 1"),
        ("- {notebook: [01]}\n", "no run"),
    ],
)
def test_lists_that_cannot_run_are_refused(tmp_path, text, what):
    path = tmp_path / "runs.yaml"
    path.write_text(text)
    with pytest.raises(InputError, match=what):
        runs.listed(path)


def test_a_list_that_cannot_be_read_is_refused(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        runs.listed(tmp_path / "none.yaml")
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="UTF-8"):
        runs.listed(tmp_path / "binary.yaml")


# What is kept


def test_a_run_is_known_by_all_that_it_follows_from(tmp_path):
    path = notebook(tmp_path, "keyed", "size", parameters="size: int = 3\nfile: str = 'none.csv'")
    mine = tmp_path / "mine.csv"
    mine.write_text("1")

    def key(**parameters):
        return Run(path, parameters).key

    seen = [key(), key(size=4), key(file=str(mine)), key(file="other.csv")]
    assert len(set(seen)) == 4 and seen[0] == key()
    mine.write_text("2")
    assert key(file=str(mine)) not in seen
    notebook(tmp_path, "keyed", "size + 1")
    assert key() not in seen


@pytest.mark.slow
def test_what_is_there_is_kept_until_something_changes(tmp_path):
    path, out = notebook(tmp_path, "kept", RECORD), tmp_path / "out"
    planned = runs.plan([str(path)], [], ["size=4,5"])
    assert not any(o.kept for o in report.make(planned, out, jobs=2))
    before = {p: p.stat().st_mtime_ns for p in out.iterdir()}
    again = report.make(planned, out, jobs=2)
    assert all(o.kept for o in again) and [o.records["square"] for o in again] == [16, 25]
    assert {p: p.stat().st_mtime_ns for p in out.iterdir()} == before

    # The index that is left when a forced report is killed before its first run is done.
    waiting = [replace(o, unfinished="waiting", paged=False) for o in again]
    (out / "index.html").write_text(pages.index(waiting), encoding="utf-8")
    assert all(o.kept for o in report.make(planned, out, jobs=2))
    assert pages.RELOAD not in (out / "index.html").read_text()

    (out / f"{planned[0].name}.html").unlink()
    assert [o.kept for o in report.make(planned, out, jobs=2)] == [False, True]
    (out / f"{planned[0].name}.ipynb").write_text('{"metadata": {"nummodel_run": {}}}')
    more = runs.plan([str(path)], [], ["size=4,5,6"])
    assert [o.kept for o in report.make(more, out, jobs=2)] == [False, True, False]
    assert len(table(out)) == 3
    assert not report.make(planned[:1], out, jobs=2, force=True)[0].kept


@pytest.mark.slow
def test_results_lie_beside_each_other(tmp_path):
    path, out = notebook(tmp_path, "beside", RECORD, "claims.record('two', 2)"), tmp_path / "out"
    wide = "from nummodel.records import claims\nclaims.record('between', (1, 2.5))"
    other = notebook(tmp_path, "wide", wide, parameters="on: bool = True")
    planned = runs.plan([str(path), str(other)], ["on=false"], ["size=4,5"])
    outcomes = report.make(planned, out, jobs=2)
    first, _, last = table(out)
    assert (first["run"], first["status"], first["parameter size"]) == (
        "beside,size=4",
        "executed",
        "4",
    )
    assert (first["square"], first["two"], first["between, low"]) == ("16", "2", "")
    assert (last["parameter on"], last["between, low"], last["between, high"]) == (
        "false",
        "1",
        "2.5",
    )
    assert results.varying(outcomes[:2]) == ["square"]
    index = (out / "index.html").read_text()
    assert 'href="beside,size=4.html"' in index and ">16</td>" in index
    assert "<script>" in index and "src=" not in index


# What is shown meanwhile


@pytest.mark.slow
def test_the_index_can_be_read_while_runs_go_on(tmp_path):
    """And the lines name what is running, before the first run is done."""
    quick = notebook(tmp_path, "quick", RECORD)
    slow = notebook(
        tmp_path, "slow", "import os, time\nwhile not os.path.exists('go'): time.sleep(0.1)"
    )
    queued = notebook(tmp_path, "queued", "1 / 0")
    started = command(quick, slow, queued, "--jobs", "1", "--output", "out", cwd=tmp_path)
    first = [started.stderr.readline() for _ in range(2)]
    assert first == [
        "nummodel: executing 3 notebooks, 1 at a time; out/index.html shows what is done\n",
        "nummodel: running: quick\n",
    ]
    folder = tmp_path / "out"
    index = folder / "index.html"
    wait_for((folder / "results.csv").exists)  # which is written last
    assert all(f"Is {name} right?" in index.read_text() for name in ("quick", "slow", "queued"))
    expected = ["executed", "running", "waiting"]
    wait_for(lambda: [row["status"] for row in table(folder)] == expected)
    text = index.read_text()
    assert pages.RELOAD in text and "<strong>1 of 3 runs were done when this" in text
    assert re.findall(r'href="(\w+)\.html"', text) == ["quick"] and (folder / "quick.html").exists()
    assert [text.count(f"{n} · {s}") for n, s in (("slow", "running"), ("queued", "waiting"))] == [
        1,
        1,
    ]
    assert [(row["status"], row["square"], row["claims"]) for row in table(folder)] == [
        ("executed", "9", "0"),
        ("running", "", ""),
        ("waiting", "", ""),
    ]
    (tmp_path / "go").touch()
    code, out, err = finish(started)
    assert (code, out) == (1, "out/index.html\n")
    assert re.sub(r"\d+\.\d s", "T s", err).splitlines() == [
        "nummodel: quick: executed in T s (1 of 3 done; running: slow)",
        "nummodel: slow: executed in T s (2 of 3 done; running: queued)",
        "nummodel: queued: ZeroDivisionError: division by zero (2 of 3 done, 1 failed)",
        "nummodel: 1 of 3 runs failed",
    ]
    assert pages.RELOAD not in index.read_text() and "were done" not in index.read_text()
    assert {row["status"] for row in table(folder)} == {"executed", "failed"}


@pytest.mark.slow
def test_what_is_kept_is_counted_from_the_beginning(tmp_path):
    path = notebook(tmp_path, "one", RECORD)
    run_here(path, "-p", "size=1", "--output", "out", cwd=tmp_path)
    sweep = (path, "--sweep", "size=1,2,3,4", "--jobs", "1", "--output", "out")
    err = run_here(*sweep, cwd=tmp_path).stderr
    told = "executing 3 runs of 1 notebook (1 of 4 runs done already), 1 at a time; "
    assert f"nummodel: {told}out/index.html" in err
    assert re.findall(r"\((\d of \d) done", err) == ["2 of 4", "3 of 4", "4 of 4"]
    assert "3 executed, 1 of 4 runs were there already" in err


def test_a_sweep_is_shown_as_a_table_meanwhile(tmp_path):
    planned = runs.plan([str(notebook(tmp_path, "one", RECORD))], [], ["size=4,5,6"])
    done = report.carry_out(planned[0])
    left = [
        results.Outcome(run, done.notebook, 0.0, "", paged=False, unfinished=state)
        for run, state in zip(planned[1:], ("running", "waiting"), strict=True)
    ]
    index = pages.index([done, *left])
    rows = [
        re.findall(r"<td[^>]*>(.*?)</td>", row) for row in re.findall(r"<tr>(<td.*)</tr>", index)
    ]
    assert rows[1][:4] == ["5", "running", "", ""] and rows[2][:4] == ["6", "waiting", "", ""]
    assert rows[0][0] == '<a href="one,size=4.html">4</a>' and "1 of 3 runs were done" in index


def test_a_terminal_gets_a_bar_that_names_what_is_running(tmp_path, monkeypatch):
    class Terminal(StringIO):
        def isatty(self):
            return True

    planned = runs.plan([str(notebook(tmp_path, "one", "1"))], [], ["size=4,5,6,7,8"])
    monkeypatch.setattr(sys, "stderr", Terminal())
    report.make(planned[:1], tmp_path / "out", jobs=4, execute=False)
    outcomes = report.make(planned, tmp_path / "out", jobs=4, execute=False)
    shown = sys.stderr.getvalue()
    assert "making pages of 1 notebook; " in shown
    assert "making pages of 5 runs of 1 notebook, 4 at a time; " in shown
    names = [run.name for run in planned]
    assert f"0/5 [00:00<?, ?run/s, running: {', '.join(names[:3])}, 1 more]" in shown
    assert "nummodel: one,size=8: not executed\n" in shown and " 5/5 [" in shown
    assert [o.error for o in outcomes] == ["not executed"] * 5


@pytest.mark.slow
def test_an_index_that_cannot_be_written_meanwhile_ends_nothing(tmp_path, monkeypatch):
    def full(outcomes, folder):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(progress, "summarise", full)
    planned = [Run(notebook(tmp_path, name, "1")) for name in ("one", "other")]
    assert [o.error for o in report.make(planned, tmp_path / "out", jobs=1)] == ["", ""]
    assert len(table(tmp_path / "out")) == 2


@pytest.mark.slow
def test_the_indexes_between_take_a_small_share_of_the_time(tmp_path, monkeypatch):
    """By a clock that goes on only where it is told to. Where nothing changes, none is written."""
    clock, wrote = [0.0], []

    def slow(outcomes, folder):
        wrote.append(sum(not outcome.unfinished for outcome in outcomes))
        clock[0] += 3.0

    monkeypatch.setattr(progress, "summarise", slow)
    monkeypatch.setattr(progress, "perf_counter", lambda: clock[0])
    path = notebook(tmp_path, "one")
    empty = results.Outcome(Run(path), {"cells": []}, 0.0, "", unfinished="waiting")
    outcomes = {run: replace(empty, run=run) for run in runs.plan([str(path)], [], [MANY])}
    shown = progress.Progress(outcomes, tmp_path, 2, "executing")
    for run in list(outcomes):
        shown.show()
        clock[0] += 1.0
        shown.end(run, replace(empty, run=run, unfinished=""))
    assert len(wrote) > 10 and 3.0 * len(wrote) <= 3.0 + 0.05 * clock[0]
    clock[0] += 1000
    shown.show()
    clock[0] += 1000
    shown.show()
    assert wrote[0] == 0 and wrote.count(1000) == 1


MANY = f"size={','.join(map(str, range(1000)))}"


# What can fail


@pytest.mark.slow
def test_each_failure_is_told_and_the_others_finish(tmp_path):
    """One parameter set that fails, a syntax error, one that never ends, one whose kernel dies."""
    paths = [
        notebook(tmp_path, "dividing", "12 / (size - 4)", RECORD),
        notebook(tmp_path, "malformed", "def broken(:"),
        notebook(tmp_path, "endless", "print('begun')", "while True: pass"),
        notebook(tmp_path, "dying", "print('begun')", "import os; os._exit(3)"),
    ]
    (tmp_path / "runs.yaml").write_text(
        "".join(f"- notebook: {p}\n" for p in paths[1:])
        + "".join(f"- {{notebook: {paths[0]}, parameters: {{size: {s}}}}}\n" for s in (3, 4, 5))
    )
    code, out, err = run_here(
        "--params", "runs.yaml", "--timeout", "4", "--output", "out", cwd=tmp_path
    )
    assert (code, out) == (1, "out/index.html\n")
    causes = {
        "malformed": "SyntaxError",
        "endless": "TimeoutError: not at its end after 4 s",
        "dying": "DeadKernelError",
        "dividing,size=4": "ZeroDivisionError: division by zero",
    }
    folder = tmp_path / "out"
    rows = {row["run"]: row for row in table(folder)}
    index = (folder / "index.html").read_text()
    for name, cause in causes.items():
        assert rows[name]["status"] == "failed" and rows[name]["error"].startswith(cause)
        assert f"nummodel: {name}: {cause}" in err and cause in index
    assert {n for n, row in rows.items() if row["status"] == "executed"} == {
        "dividing,size=3",
        "dividing,size=5",
    }
    for name in ("endless", "dying"):
        assert ">begun" in (folder / f"{name}.html").read_text(), "cells up to the failure"
    assert hidden(folder) == []
    # What failed is tried again, what went well is not.
    code, _, err = run_here(
        "--params", "runs.yaml", "--timeout", "4", "--output", "out", cwd=tmp_path
    )
    assert code == 1 and "4 executed, 2 of 6 runs were there already" in err


IMPORTED = """
import sys
from pathlib import Path
from nummodel.reports import report, runs
from nummodel.reports.notebook import read
from nummodel.reports.results import Outcome

def carry_out(run, *_):
    missing = {"papermill", "nbclient", "nbconvert"} - sys.modules.keys()
    return Outcome(run, read(run.notebook), 0.0, ", ".join(missing))

report.carry_out = carry_out
print([o.error for o in report.make(runs.plan(["01", "02"]), Path(sys.argv[1]), jobs=2)])
"""


@pytest.mark.slow
def test_libraries_are_imported_before_runs_share_them(tmp_path):
    """Threads that import the same modules may get half-made ones: now and then a run failed with
    an ImportError.
    """
    done = subprocess.run(
        [sys.executable, "-c", IMPORTED, tmp_path], capture_output=True, text=True, check=True
    )
    assert done.stdout == "['', '']\n"


@pytest.mark.slow
@pytest.mark.skipif(not kernels.FORKS, reason="no kernels are forked here")
@pytest.mark.parametrize("deaths, error", [(2, ""), (3, "RuntimeError: Kernel died before")])
def test_a_kernel_that_does_not_start_gets_another_chance(tmp_path, monkeypatch, deaths, error):
    """As when another process takes its port; the third time, it is told."""
    fork, left = kernels.fork, [True] * deaths

    def short_lived(*order):
        kernel = fork(*order)
        if left:
            left.pop()
            kernel.kill()
        return kernel

    monkeypatch.setattr(kernels, "fork", short_lived)
    outcome = report.carry_out(Run(notebook(tmp_path, "one", RECORD)))
    assert outcome.error.startswith(error) and bool(outcome.error) == bool(error)
    assert not left


# Kernels that are forked


@pytest.mark.parametrize("forks", one_in(2, [True, False]))
def test_a_kernel_is_as_any_other(tmp_path, monkeypatch, forks):
    """Folder, environment, path, processes of its own, pyplot; forked or, where none is, not."""
    monkeypatch.setattr(kernels, "FORKS", forks and kernels.FORKS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TOLD", "yes")
    (tmp_path / "beside.py").write_text("def twice(x): return 2 * x")
    path = notebook(
        tmp_path,
        "any",
        "import os, subprocess, sys\nassert os.environ['TOLD'] == 'yes'",
        f"assert os.getcwd() == {str(tmp_path)!r} and sys.path.count('') == 1",
        f"assert os.getsid(0) == os.getpid() and {__file__!r} not in sys.path",
        "assert subprocess.run(['false']).returncode == 1",
        "import beside, multiprocessing\nwith multiprocessing.Pool(2) as pool:\n"
        "    assert pool.map(beside.twice, [1, 2]) == [2, 4]",
        "from matplotlib import pyplot\npyplot.plot([1, 2])\nprint('drawn')",
    )
    outcome = report.carry_out(Run(path))
    assert outcome.error == ""
    kinds = [sorted(o.get("data", {"text": ""})) for o in outcome.notebook.cells[-1].outputs]
    assert ["image/png", "text/plain"] in kinds and ["text"] in kinds


def test_runs_have_nothing_in_common(tmp_path):
    """Nor the numbers that come out of generators which nobody has seeded."""
    path = notebook(
        tmp_path,
        "alone",
        f"import os, random\nimport numpy as np\nfrom nummodel.models import scaling\n{CLAIMS}"
        "for thing in (np, scaling):\n    assert not hasattr(thing, 'left')\n    thing.left = size",
        "assert 'LEFT' not in os.environ\nos.environ['LEFT'] = 'here'",
        "claims.record('drawn', [random.random(), np.random.random()])",
    )
    first, second = (report.carry_out(Run(path, {"size": size})) for size in (1, 2))
    assert first.error == second.error == ""
    assert not set(first.records["drawn"]) & set(second.records["drawn"])


@pytest.mark.slow
@pytest.mark.skipif(not kernels.FORKS, reason="no kernels are forked here")
def test_a_server_that_has_died_is_replaced(tmp_path):
    run = Run(notebook(tmp_path, "one", RECORD))
    assert report.carry_out(run).error == ""
    process, _ = kernels.servers[True]
    process.kill()
    process.wait()
    assert report.carry_out(run).error == ""


@pytest.mark.slow
def test_a_script_may_execute_runs(tmp_path):
    """Without a guard against being imported, which processes of multiprocessing would ask for."""
    path = notebook(tmp_path, "one", RECORD)
    script = tmp_path / "script.py"
    script.write_text(
        "from pathlib import Path\nfrom nummodel.reports import report, runs\n"
        f"run = runs.Run(Path({str(path)!r}))\n"
        "print(report.execute_run(run, Path('out')).records['square'])\n"
    )
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("9\n", "")
    assert (tmp_path / "out" / "one.html").exists()


# What goes on


def files(folder, kind):
    """What runs left, without how long they took."""
    found = {}
    for path in folder.glob(f"*.{kind}"):
        executed = nbformat.read(path, as_version=4)
        found[path.stem] = [cell.get("outputs") for cell in executed.cells]
    return found


@pytest.mark.slow
def test_a_killed_report_goes_on_where_it_was(tmp_path):
    path = notebook(tmp_path, "long", "import time; time.sleep(0.5)", RECORD)
    sweep = (path, "--sweep", "size=1,2,3,4,5,6")
    killed = command(*sweep, "--output", "out", cwd=tmp_path)
    folder = tmp_path / "out"
    wait_for(lambda: len(list(folder.glob("*.ipynb"))) >= 2)
    started = psutil.Process(killed.pid).children(recursive=True)
    killed.kill()
    killed.communicate()
    index = (folder / "index.html").read_text()
    told = re.findall(r"<strong>(\d) of 6 runs were done when this page was written", index)
    linked = set(re.findall(r'<a href="(long,size=\d)\.html">', index))  # and from its records
    assert pages.RELOAD in index and told == [str(len(linked))]
    assert all((folder / f"{name}.html").exists() for name in linked)
    done = {p: p.stat().st_mtime_ns for p in folder.glob("*.ipynb") if p.name[0] != "."}
    assert 2 <= len(done) < 6
    for whole in done:
        nbformat.read(whole, as_version=4)

    code, _, err = run_here(*sweep, "--output", "out", cwd=tmp_path)
    assert code == 0 and f"{len(done)} of 6 runs were there already" in err
    assert {p: p.stat().st_mtime_ns for p in done} == done
    assert run_here(*sweep, "--output", "undisturbed", cwd=tmp_path)[0] == 0
    assert files(folder, "ipynb") == files(tmp_path / "undisturbed", "ipynb")
    claims = [
        json.loads((tmp_path / f / "claims.json").read_text()) for f in ("out", "undisturbed")
    ]
    assert claims[0] == claims[1] and hidden(folder) == []

    code, out, err = run_here(*sweep, "--output", "out", cwd=tmp_path)
    assert (code, out) == (0, "out/index.html\n")
    assert err.startswith("nummodel: nothing to do: 6 of 6 runs were there already")
    wait_for(lambda: not any(process.is_running() for process in started))


BUSY = "import re; re.match('(a+)+$', 'a' * 60 + 'b')"  # and does not let other threads run
WITH_CHILD = "import subprocess; subprocess.run(['sleep', '300'])"


@pytest.mark.slow
@pytest.mark.skipif(not kernels.FORKS, reason="no kernels are forked here")
@pytest.mark.parametrize(
    "killed, doing", [("report", BUSY), ("report", WITH_CHILD), ("server", BUSY)]
)
def test_kernels_end_with_what_they_depend_on(tmp_path, killed, doing):
    path = notebook(tmp_path, "long", "open('begun', 'w').close()", doing)
    started = command(path, "--output", "out", cwd=tmp_path)
    wait_for((tmp_path / "begun").exists)
    wait_for(lambda: doing is BUSY or "sleep" in names(started.pid))
    everyone = psutil.Process(started.pid).children(recursive=True)
    if killed == "report":
        started.kill()
        started.communicate()
    else:
        everyone[0].kill()
        code, _, err = finish(started)
        assert code == 1 and "nummodel: long: DeadKernelError" in err
    wait_for(lambda: not any(process.is_running() for process in everyone))


def names(pid):
    return [process.name() for process in psutil.Process(pid).children(recursive=True)]


@pytest.mark.slow
def test_an_interruption_is_the_kernels_alone(tmp_path):
    """Whoever calls `report` may have processes of its own."""
    path = notebook(tmp_path, "slow", "open('begun', 'w').close()", "import time; time.sleep(300)")
    script = tmp_path / "script.py"
    script.write_text(
        "import subprocess\nfrom pathlib import Path\nfrom nummodel.reports import report, runs\n"
        "own = subprocess.Popen(['sleep', '300'])\n"
        f"try:\n    report.make([runs.Run(Path({str(path)!r}))], Path('out'), 1)\n"
        "except KeyboardInterrupt:\n    print(own.poll())\nfinally:\n    own.kill()\n"
    )
    calling = subprocess.Popen(
        [sys.executable, script], cwd=tmp_path, stdout=subprocess.PIPE, text=True
    )
    wait_for((tmp_path / "begun").exists)
    calling.send_signal(signal.SIGINT)
    assert calling.communicate(timeout=60)[0] == "None\n"


@pytest.mark.slow
def test_an_interrupted_report_keeps_what_is_done(tmp_path):
    quick = notebook(tmp_path, "quick", RECORD)
    slow = notebook(tmp_path, "slow", "import time; time.sleep(300)")
    queued = notebook(tmp_path, "queued", "1")
    running = command(
        *(quick, slow, queued, "--jobs", "1", "--output", "out"),
        cwd=tmp_path,
        preexec_fn=in_foreground,
    )
    folder = tmp_path / "out"
    wait_for(lambda: (folder / "quick.ipynb").exists())
    time.sleep(1)  # into the start of the next kernel, or its long cell; any moment must do
    running.send_signal(signal.SIGINT)
    code, out, err = finish(running)
    assert (code, out) == (130, "")
    assert err.strip().endswith("goes on from there")
    status = {row["run"]: row["error"] for row in table(folder)}
    assert status == {
        "quick": "",
        "slow": "interrupted before it was done",
        "queued": "interrupted before it was done",
    }
    left = {path.name for path in folder.iterdir()}
    assert left == {"quick.ipynb", "quick.html", "index.html", "claims.json", "results.csv"}
    assert 'href="slow.html"' not in (folder / "index.html").read_text()


@pytest.fixture
def small_files():
    """No file of this process may get larger. Python ignores the signal, so that it is an error."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_a_full_disk_is_told_and_the_others_finish(tmp_path, small_files):
    """A file that may not grow further fails as one does on a full disk."""
    big = notebook(tmp_path, "big", "import random; print(random.randbytes(size).hex())")
    code, _, err = run_here(
        *(big, "--sweep", "size=10,1000000,20", "--output", "out"), cwd=tmp_path
    )
    assert code == 1 and "nummodel: big,size=1000000: OSError: [Errno 27]" in err
    folder = tmp_path / "out"
    assert [row["status"] for row in table(folder)] == ["executed", "failed", "executed"]
    assert "[Errno 27]" in (folder / "index.html").read_text()
    assert not list(folder.glob("*1000000*")) and hidden(folder) == []


@pytest.mark.slow
def test_a_small_disk_is_filled_to_the_brim(tmp_path):
    small = tmp_path / "small"
    small.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(small)]
    try:
        mounted = os.geteuid() == 0 and subprocess.run(mount, capture_output=True).returncode == 0
    except FileNotFoundError:
        mounted = False
    if not mounted:
        pytest.skip("no tmpfs may be mounted")
    try:
        big = notebook(tmp_path, "big", "print('a' * size)")
        sizes = [f"--sweep=size={','.join(str(100_000 + i) for i in range(7))}"]
        code, _, err = run_here(big, *sizes, "--output", small, cwd=tmp_path)
        assert code == 1 and "No space left on device" in err
        assert hidden(small) == []
        for path in small.glob("*.ipynb"):
            nbformat.read(path, as_version=4)
        if "not renewed" not in err:
            rows = {row["run"]: row["status"] for row in table(small)}
            assert len(rows) == 7 and set(rows.values()) == {"executed", "failed"}
            assert "No space left" in (small / "index.html").read_text()
        else:
            assert "index.html: No space left on device" in err
            index = small / "index.html"
            assert not index.exists() or pages.RELOAD in index.read_text()
    finally:
        subprocess.run(["umount", str(small)], check=True)


def test_a_folder_whose_summary_cannot_be_written_is_told(tmp_path, monkeypatch):
    """A disk that is full at the end costs the index, and no traceback."""
    path = notebook(tmp_path, "one", "1")

    def full(outcomes, folder):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(report, "summarise", full)
    with pytest.raises(OSError, match="No space left"):
        report.make([Run(path)], tmp_path / "out", jobs=1)
    assert (tmp_path / "out" / "one.ipynb").exists()


def test_a_file_in_place_of_the_folder_is_refused(tmp_path):
    path = notebook(tmp_path, "one", "1")
    (tmp_path / "out").write_text("")
    code, _, err = run_here(path, "--output", "out", cwd=tmp_path)
    assert code == 2 and err == "nummodel: out: File exists, expected a writable folder\n"


def test_a_page_that_cannot_be_written_is_a_failed_run(tmp_path):
    """A folder in place of a page: the run has failed, its neighbour has not."""
    good, blocked = notebook(tmp_path, "good", "1"), notebook(tmp_path, "blocked", "1")
    folder = tmp_path / "out"
    (folder / "blocked.html").mkdir(parents=True)
    outcomes = report.make([Run(good), Run(blocked)], folder, jobs=2)
    assert [bool(o.error) for o in outcomes] == [False, True]
    assert "IsADirectoryError" in (folder / "index.html").read_text()
    assert hidden(folder) == []

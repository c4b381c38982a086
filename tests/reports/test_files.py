"""Files of a report: whose they are, that nothing is lost, that one bad run costs no other."""

import asyncio
import csv
import json
import os
import signal
import subprocess
import sys
import time
import warnings
from io import StringIO
from pathlib import Path
from threading import Thread

import psutil
import pytest
from inprocess import report as run_here
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from reporting import RECORD, command, finish, in_foreground, notebook, table, wait_for

from nummodel.errors import InputError
from nummodel.records import claims
from nummodel.reports import files, kernels, pages, report, results, runs
from nummodel.reports.notebook import read
from nummodel.reports.runs import Run


def executed(*outputs, **metadata):
    """An outcome whose notebook displayed these outputs."""
    cell = new_code_cell("1", outputs=list(outputs))
    notebook = new_notebook(cells=[new_markdown_cell("# So?\n\nYes."), cell], metadata=metadata)
    return results.Outcome(Run(Path("made.ipynb")), notebook, 1.0, "")


# Nothing that is displayed is lost


@pytest.mark.slow
def test_claims_arrive_behind_many_displays(tmp_path, monkeypatch):
    """Also where who listens is slower than the kernel, so that output waits to be read."""
    from nbclient import NotebookClient

    process = NotebookClient.process_message
    monkeypatch.setattr(
        NotebookClient, "process_message", lambda *a: (time.sleep(0.003), process(*a))[1]
    )
    many = "from IPython.display import display\nfor i in range(4000): display(i)\n"
    path = notebook(tmp_path, "many", f"{many}{RECORD}\nclaims.record('other', 1)")
    outcome = report.carry_out(Run(path))
    assert outcome.error == "" and outcome.records == {"square": 9, "other": 1}
    assert len(outcome.notebook.cells[-1].outputs) == 4002


@pytest.mark.slow
def test_a_claim_that_does_not_arrive_is_told(tmp_path):
    silent = f"from contextlib import redirect_stdout\n{RECORD}\nfrom IPython.display import *"
    path = notebook(tmp_path, "cleared", f"{silent}\nclear_output()", "claims.record('two', 2)")
    outcome = report.carry_out(Run(path))
    assert outcome.error.startswith("RuntimeError: 1 of 2 claims are not in the notebook")
    assert outcome.records == {"two": 2}


# Whose files they are


FOREIGN = ["results.csv", "index.html", "claims.json", "one.html", "one.ipynb"]


@pytest.mark.parametrize("name", FOREIGN)
@pytest.mark.parametrize("kind", ["file", "link", "pipe"])
def test_files_of_somebody_else_are_refused(tmp_path, name, kind):
    (tmp_path / "there").mkdir()
    path, out = notebook(tmp_path / "there", "one", "1"), tmp_path / "out"
    out.mkdir()
    mine = tmp_path / "mine"
    mine.write_text('N,X\n1,10\n{"metadata": {}}\n')
    if kind == "file":
        mine = mine.rename(out / name)
    elif kind == "link":
        (out / name).symlink_to(mine)
    else:
        os.mkfifo(out / name)
    before = mine.read_bytes()
    with pytest.raises(InputError, match=rf"{name} (was not written by|is a link)"):
        report.make([Run(path)], out, jobs=1)
    assert mine.read_bytes() == before and [p.name for p in out.iterdir()] == [name]


def test_a_link_to_itself_is_no_folder(tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    run = Run(notebook(tmp_path, "a", RECORD))
    for folder in ("loop", "loop/out"):
        with pytest.raises(InputError, match=f"{folder}: .*expected a writable folder"):
            report.make([run], tmp_path / folder, 1)


def test_a_table_where_the_results_go_is_not_touched(tmp_path):
    (tmp_path / "results.csv").write_text("N,X\n1,10\n2,19\n4,34\n")
    code, out, err = run_here("21", "-p", "file=results.csv", "--output", ".", cwd=tmp_path)
    assert (code, out) == (2, "")
    told = "nummodel: .: results.csv was not written by a report, expected another folder\n"
    assert err == told and [p.name for p in tmp_path.iterdir()] == ["results.csv"]


@pytest.mark.parametrize("declared", ["file: str = 'none.csv'", "table: str = 'cisco'"])
def test_a_table_that_does_not_exist_costs_no_index(tmp_path, declared):
    """A notebook reads the tables of its `file`, or where its default is a published table."""
    name = declared.partition(":")[0]
    path, out = notebook(tmp_path, "reading", RECORD, parameters=f"size = 3\n{declared}"), "out"
    mine = tmp_path / "mine.csv"
    mine.write_text("N,X\n1,10\n")
    for known in (str(mine), "zvm-scaling"):
        report.make(runs.plan([str(path)], [f"{name}={known}"]), tmp_path / out, jobs=1)
    before = {p: p.read_bytes() for p in (tmp_path / out).iterdir()}
    empty = tmp_path / "empty"
    empty.mkdir()
    for unknown in ("nope.csv", "", str(empty)):
        planned = runs.plan([str(path)], [f"{name}={unknown}"])
        with pytest.raises(InputError, match=f"parameter {name} is .*, expected an existing file"):
            report.make(planned, tmp_path / out, jobs=1)
    assert {p: p.read_bytes() for p in (tmp_path / out).iterdir()} == before


@pytest.mark.slow
def test_a_file_that_comes_meanwhile_costs_the_run_that_it_blocks(tmp_path):
    mine = f"open({str(tmp_path / 'out/one.html')!r}, 'w').write('mine')"
    planned = [Run(notebook(tmp_path, "one", mine)), Run(notebook(tmp_path, "two", "1"))]
    outcomes = report.make(planned, tmp_path / "out", jobs=1)
    assert "one.html was not written by a report" in outcomes[0].error and not outcomes[1].error
    assert (tmp_path / "out" / "one.html").read_text() == "mine"
    assert "one.html was not written" in (tmp_path / "out" / "index.html").read_text()


def test_parts_of_others_stay_and_those_of_killed_reports_go(tmp_path):
    (tmp_path / ".index.html.part").write_text("mine")
    dead = subprocess.Popen(["true"])
    dead.wait()
    (tmp_path / f".nummodel-{dead.pid}-01234567.part").write_text("")
    (tmp_path / f".nummodel-{os.getpid()}-01234567.part").write_text("")
    files.prepare(tmp_path)
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {".index.html.part", f".nummodel-{os.getpid()}-01234567.part"}
    assert (tmp_path / ".index.html.part").read_text() == "mine"


def test_several_write_the_same_files_at_once(tmp_path):
    texts = [f'[\n {{\n  "run": "{str(i) * 10_000}"\n }}\n]\n' for i in range(4)]
    failures = []

    def writer(text):
        try:
            for _ in range(50):
                files.write(tmp_path, {"claims.json": text, "results.csv": ",".join(files.COLUMNS)})
        except OSError as error:
            failures.append(error)

    threads = [Thread(target=writer, args=(text,)) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures and (tmp_path / "claims.json").read_text() in texts
    assert {p.name for p in tmp_path.iterdir()} == {"claims.json", "results.csv"}


# One bad run costs no other


BAD = [
    "display({MIME: {'what': 'x'}}, raw=True)",
    "display({MIME: 3}, raw=True)",
    "display({MIME: GOOD | {'what': ['x']}}, raw=True)",
    "display({MIME: GOOD | {'model': {}, 'documented': 1.5, 'high': 2, 'why': 'x'}}, raw=True)",
    "display({MIME: GOOD | {'kind': {}}}, raw=True)",
    "display({MIME: GOOD | {'low': 'x', 'model': [1, 2]}}, raw=True)",
]
GOOD = {"what": "it", "kind": "fit", "model": 1.0, "documented": None, "low": None}
GOOD |= {"high": None, "hit": True, "expect": "hit", "ok": True, "why": "", "source": ""}


@pytest.mark.parametrize("source", BAD)
def test_what_only_looks_like_a_claim_fails(source):
    shown = []
    names = {"MIME": claims.MIME, "GOOD": GOOD, "display": lambda data, raw: shown.append(data)}
    exec(source, names)
    outcome = executed(*(new_output("display_data", data=data) for data in shown))
    (claim,) = outcome.claims
    assert claim["verdict"] == "FAILS" and not outcome.held
    index, table = pages.index([outcome]), results.table([outcome])
    assert "a claim that cannot be read" in index and table.count("\n") == 2
    json.dumps(outcome.claims)


def test_a_run_that_the_index_cannot_show_has_failed(tmp_path, monkeypatch):
    """Whatever the reason, which is none that is known."""
    planned = [Run(notebook(tmp_path, name, RECORD)) for name in ("good", "bad")]
    groups = pages._groups

    def picky(outcomes):
        if any(o.run.name == "bad" and o.claims for o in outcomes):
            raise ZeroDivisionError("not this one")
        return groups(outcomes)

    monkeypatch.setattr(pages, "_groups", picky)
    outcomes = report.make(planned, tmp_path / "out", jobs=1)
    assert [o.error for o in outcomes] == ["", "ZeroDivisionError: not this one"]
    assert [row["status"] for row in table(tmp_path / "out")] == ["executed", "failed"]


@pytest.mark.slow
def test_a_name_that_is_no_utf_8_costs_nobody_the_index(tmp_path):
    path = notebook(tmp_path, "plain", RECORD)
    odd = os.fsencode(tmp_path) + b"/odd\xff.ipynb"
    os.rename(path, odd)
    good = notebook(tmp_path, "good", RECORD)
    code, out, err = finish(command(os.fsdecode(odd), good, "--output", "out", cwd=tmp_path))
    assert (code, out) == (0, "out/index.html\n"), err
    index = (tmp_path / "out" / "index.html").read_text()
    assert 'href="odd%FF.html"' in index and 'href="good.html"' in index
    assert os.path.exists(os.fsencode(tmp_path) + b"/out/odd\xff.html")


@pytest.mark.slow
def test_the_path_of_the_index_is_the_folder_as_it_is_called(tmp_path):
    notebook(tmp_path, "one", RECORD)
    odd = os.fsdecode(b"odd\xff")
    done = subprocess.run(
        [sys.executable, "-m", "nummodel", "report", "one.ipynb", "--output", odd],
        cwd=tmp_path,
        capture_output=True,
    )
    assert (done.returncode, done.stdout) == (0, b"odd\xff/index.html\n")
    assert os.path.exists(os.fsencode(tmp_path) + b"/odd\xff/index.html")


@pytest.mark.parametrize("gone", ["out", "."])
@pytest.mark.slow
def test_a_notebook_that_removes_the_folder_costs_no_other_its_pages(tmp_path, gone):
    work = tmp_path / "work"
    work.mkdir()
    good = notebook(tmp_path, "good", RECORD)
    bad = notebook(tmp_path, "bad", f"import os, shutil\nshutil.rmtree({str(work / gone)!r})")
    code, out, err = run_here(good, bad, "--jobs", "1", "--output", "out", cwd=work)
    assert (code, out) == (0, "out/index.html\n"), err
    folder = work / "out"
    assert [row["status"] for row in table(folder)] == ["executed", "executed"]
    for link in ("good", "bad"):
        assert (folder / f"{link}.html").exists() and (folder / f"{link}.ipynb").exists()


def test_a_notebook_that_removes_itself_costs_nobody_the_index(tmp_path):
    gone = notebook(tmp_path, "gone", "import os\nos.remove(file)", parameters="file: str = ''")
    planned = runs.plan([str(gone)], [f"file={gone}"])
    (outcome,) = report.make(planned, tmp_path / "out", jobs=1)
    assert outcome.error == "" and "gone.ipynb" in (tmp_path / "out" / "index.html").read_text()


# What spreadsheets and terminals are given


def test_the_results_have_six_digits_which_any_machine_finds():
    """Also of large and small figures; whole numbers are complete."""
    values = {"large": 52936.39871021632, "small": 1.2345678e-7, "whole": 123456789, "exact": 0.5}
    made = [claims.Claim(what=name, kind="record", model=value) for name, value in values.items()]
    outcome = executed(*(new_output("display_data", data=c._repr_mimebundle_()) for c in made))
    (row,) = csv.DictReader(StringIO(results.table([outcome])))
    assert {name: row[name] for name in values} == {
        "large": "52936.4", "small": "1.23457e-07", "whole": "123456789", "exact": "0.5"
    }  # fmt: skip


@pytest.mark.parametrize("text", ["=1+1", "+cmd|' /C calc'!A0", "-x", "@SUM(A1)", "\t=1", "\r=1"])
def test_no_cell_of_the_results_is_a_formula(tmp_path, text):
    run = Run(Path("=made.ipynb"), {text: text, "list": [text]})
    record = claims.Claim(text, "record", text)
    outcome = executed(new_output("display_data", data=record._repr_mimebundle_()))
    outcome = results.Outcome(run, outcome.notebook, 1.0, text)
    head, line = csv.reader(StringIO(results.table([outcome]), newline=""))
    assert not [cell for cell in head + line if cell.startswith(("=", "+", "-", "@", "\t", "\r"))]
    written = f"'{text}".replace("\r", "\n")
    assert written in head and line.count(written) == 4


def test_figures_of_the_results_stay_figures():
    values = {"a": -1.5, "b": [-1, 2, 3], "c": "-3e5", "d": [-2.0, 4]}
    made = [claims.Claim(n, "record", v)._repr_mimebundle_() for n, v in values.items()]
    outcome = executed(*(new_output("display_data", data=data) for data in made))
    (line,) = csv.DictReader(StringIO(results.table([outcome])))
    found = [line[n] for n in ("a", "b", "c", "d, low", "d, high")]
    assert found == ["-1.5", "-1 2 3", "-3e5", "-2.0", "4"]


def test_only_the_path_of_the_index_is_on_stdout(tmp_path):
    path = notebook(tmp_path, "loud", "import os\nos.write(1, b'x')\nos.system('echo loud')")
    outcome = "import subprocess, sys\nsubprocess.run(['echo', 'loud'], stdout=sys.__stdout__)"
    other = notebook(
        tmp_path, "other", "import os\nos.system('echo loud >/proc/$PPID/fd/1')", outcome
    )
    _, out, err = finish(command(path, other, "--output", "out", cwd=tmp_path))
    assert out == "out/index.html\n", err


def test_odd_texts_stay_one_line_of_the_terminal(tmp_path):
    raising = "raise ValueError('\\x1b[31mred\\x07' + 100_000 * 'a')"
    path = notebook(tmp_path, "two\nlines", raising)
    code, out, err = run_here(path, "--output", "out", cwd=tmp_path)
    assert (code, out) == (1, "out/index.html\n")
    assert all(line.startswith("nummodel: ") for line in err.splitlines()), err
    assert "\x1b" not in err and "\x07" not in err and max(map(len, err.splitlines())) < 1000


@pytest.mark.slow
def test_stderr_that_is_full_stops_nothing(tmp_path):
    path = notebook(tmp_path, "one", RECORD)
    with open("/dev/full", "w") as full:
        code, out, _ = finish(command(path, "--output", "out", cwd=tmp_path, stderr=full))
    assert (code, out) == (0, "out/index.html\n")


# What is no notebook, no list, no number


def cells(*found):
    return json.dumps({"cells": found, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


CODE = {"cell_type": "code", "id": "a", "metadata": {}, "source": "", "outputs": []}
CODE |= {"execution_count": None}


@pytest.mark.parametrize("missing", ["cell_type", "metadata", "source", "outputs"])
def test_cells_that_are_none_are_refused(tmp_path, missing):
    path = tmp_path / "odd.ipynb"
    path.write_text(cells({name: value for name, value in CODE.items() if name != missing}))
    with pytest.raises(InputError, match=r"odd\.ipynb: not a notebook"):
        runs.plan([str(path)])
    with warnings.catch_warnings(record=True) as warned:
        path.write_text(cells({"cell_type": "markdown", "metadata": {}, "source": "# no id"}))
        assert read(path).cells and not warned
    path.write_text(cells(CODE | {"metadata": {"tags": 5}}))
    with pytest.raises(InputError, match=r"odd\.ipynb: not a notebook"):
        read(path)


DEEP = 100_000


@pytest.mark.parametrize(
    "source", ["a = '\\0'\0", "a = " + "(" * DEEP, "a = {[]: 1}", "a = -" * 500]
)
def test_parameters_that_python_cannot_read_are_none_or_text(tmp_path, source):
    path = notebook(tmp_path, "odd", parameters=source)
    assert set(runs.parameters(path)) <= {"a"}
    with pytest.raises(InputError, match="unknown parameter 'b'"):
        runs.plan([str(path)], ["b=1"])


@pytest.mark.parametrize(
    "text",
    [
        "- " * 5000 + "x",
        "[" * 5000,
        "- {notebook: 01, parameters: {sigma: " + "[" * 5000 + "]" * 5000 + "}}",
        "- {notebook: 01, parameters: {sigma: [[1]]}}",
        "- {notebook: 01, parameters: {sigma: {a: 1}}}",
    ],
)
@pytest.mark.slow
def test_nested_lists_are_refused(tmp_path, text):
    (tmp_path / "runs.yaml").write_text(text)
    with pytest.raises(InputError, match=r"runs\.yaml"):
        runs.listed(tmp_path / "runs.yaml")


def test_a_few_lines_that_stand_for_ever_more_are_refused(tmp_path):
    """A list of ten aliases of a list of ten aliases and so on: a thousand million words."""
    last = "&l0 x"
    for i in range(1, 10):
        last = f"&l{i} [{last}, {', '.join([f'*l{i - 1}'] * 9)}]"
    (tmp_path / "runs.yaml").write_text(f"- {{notebook: 01, parameters: {{sigma: {last}}}}}\n")
    with pytest.raises(InputError, match=r"runs\.yaml:1: parameter sigma: expected a value"):
        runs.listed(tmp_path / "runs.yaml")


@pytest.mark.parametrize("given", ["size=" + "9" * 5000, "size=" + "9" * 1000, "a" * 5000 + "=1"])
def test_long_numbers_and_names_are_refused(tmp_path, given):
    with pytest.raises(InputError):
        runs.plan([str(notebook(tmp_path, "one"))], [given])
    with pytest.raises(InputError, match="no such notebook"):
        runs.find("a" * 5000 + ".ipynb")


@pytest.mark.parametrize("timeout", ["nan", "inf", "1e300", "0", "-1"])
def test_a_timeout_is_a_number_of_seconds(tmp_path, timeout):
    notebook(tmp_path, "one")
    code, out, err = run_here("one.ipynb", "--timeout", timeout, cwd=tmp_path)
    assert (code, out, err.count("\n")) == (2, "", 1) and "--timeout" in err


@pytest.mark.slow
def test_a_timeout_ends_short_cells_as_well(tmp_path):
    """None of which takes as long."""
    path = notebook(tmp_path, "a", *100 * ["import time; time.sleep(0.04)"])
    outcome = report.carry_out(Run(path), timeout=1)
    assert outcome.error == "TimeoutError: not at its end after 1 s"
    assert outcome.notebook.cells[-1].execution_count is None


def test_a_timeout_is_told_in_a_line(tmp_path):
    notebook(tmp_path, "a", "import time; time.sleep(60)")
    code, _, err = run_here("a.ipynb", "--timeout", "2", cwd=tmp_path)
    assert code == 1 and "TimeoutError: not at its end after 2 s" in err
    assert all(line.startswith("nummodel: ") for line in err.splitlines()), err


def test_what_an_editor_leaves_beside_the_tables_changes_no_run(tmp_path, monkeypatch):
    (tmp_path / "data" / ".ipynb_checkpoints").mkdir(parents=True)
    monkeypatch.setattr(runs.data, "HOME", tmp_path)
    runs.package.cache_clear()
    try:
        assert runs.package()
    finally:
        runs.package.cache_clear()


# What must end


AWAY = "import subprocess\nsubprocess.Popen(['sleep', '1000'], start_new_session=True)"
ORPHAN = "import os\nos.system('setsid sh -c \"sleep 1000 & sleep 1000 &\" &')"


@pytest.mark.slow
@pytest.mark.skipif(not kernels.FORKS, reason="no kernels are forked here")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGKILL])
def test_a_signal_ends_all_and_leaves_an_index(tmp_path, number):
    slow = "open('begun', 'w').close()\nimport time; time.sleep(300)"
    quick, path = (
        notebook(tmp_path, "quick", RECORD),
        notebook(tmp_path, "slow", AWAY, ORPHAN, slow),
    )
    (tmp_path / "connections").mkdir()
    own = os.environ | {"TMPDIR": str(tmp_path / "connections")}
    running = command(
        *(quick, path, "--jobs", "1", "--output", "out"),
        cwd=tmp_path,
        preexec_fn=in_foreground,
        env=own,
    )
    wait_for((tmp_path / "begun").exists)

    def started():
        return psutil.Process(running.pid).children(recursive=True)

    wait_for(lambda: [process.name() for process in started()].count("sleep") == 3)
    everyone = started()
    assert list((tmp_path / "connections").iterdir())
    running.send_signal(number)
    code, out, err = finish(running)
    wait_for(lambda: not any(process.is_running() for process in everyone))
    if number != signal.SIGKILL:
        assert (code, out) == (130, "") and err.strip().endswith("goes on from there")
        assert not list((tmp_path / "connections").iterdir())
        assert [row["status"] for row in table(tmp_path / "out")] == ["executed", "failed"]


def test_no_kernel_is_interrupted_before_it_is_killed():
    """Else it may say so on stderr, of a report that went well."""
    process, forked = subprocess.Popen(["sleep", "60"]), kernels.Forked()
    forked.process = kernels.Kernel(process.pid)
    asyncio.run(forked.send_signal(signal.SIGINT))
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.2)
    asyncio.run(forked.send_signal(signal.SIGTERM))
    assert process.wait(10) == -signal.SIGTERM


@pytest.mark.skipif(not kernels.FORKS, reason="no kernels are forked here")
def test_a_kernel_may_end_while_it_is_asked_whether_it_runs(monkeypatch):
    process = subprocess.Popen(["sleep", "60"])
    kernel = kernels.Kernel(process.pid)
    assert kernel.poll() is None

    def gone():
        raise psutil.NoSuchProcess(process.pid)

    monkeypatch.setattr(kernel, "status", gone)
    assert kernel.poll() == 1
    process.kill()
    process.wait()


@pytest.mark.slow
def test_what_a_kernel_has_started_ends_with_it(tmp_path):
    path = notebook(tmp_path, "away", AWAY, ORPHAN)
    report.carry_out(Run(path))
    server = psutil.Process(kernels.servers[True][0].pid)
    sleeping = [
        process
        for process in server.children(recursive=True)
        if process.name() == "sleep" and process.status() != psutil.STATUS_ZOMBIE
    ]
    kernels._end(*kernels.servers[True])
    kernels.servers.clear()
    wait_for(lambda: not any(process.is_running() for process in sleeping))
    assert len(sleeping) <= 2  # those without a parent, whose end is that of all kernels


@pytest.mark.slow
@pytest.mark.skipif(not kernels.FORKS, reason="no kernels are forked here")
def test_a_server_that_is_stopped_goes_on(tmp_path):
    run = Run(notebook(tmp_path, "one", RECORD))
    assert report.carry_out(run).error == ""
    kernels.servers[True][0].send_signal(signal.SIGSTOP)
    assert report.carry_out(run, timeout=30).error == ""


@pytest.mark.slow
@pytest.mark.skipif(not kernels.FORKS, reason="no kernels are forked here")
def test_a_server_that_does_not_answer_is_waited_for_as_long_as_the_run_may_take(
    tmp_path, monkeypatch
):
    run = Run(notebook(tmp_path, "one", RECORD))
    assert report.carry_out(run).error == ""
    process, _ = kernels.servers[True]
    monkeypatch.setattr(process, "send_signal", lambda number: None)
    os.kill(process.pid, signal.SIGSTOP)
    try:
        outcome = report.carry_out(run, timeout=2)
    finally:
        os.kill(process.pid, signal.SIGCONT)
    assert outcome.error == "TimeoutError: not at its end after 2 s" and outcome.seconds < 30

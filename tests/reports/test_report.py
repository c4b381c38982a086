"""Reports: what is executed, what a page holds, and what happens when something fails."""

import json
import re
import signal
import time

import psutil
import pytest
from reporting import command, finish, in_foreground, notebook

from nummodel.errors import InputError
from nummodel.reports import pages, rendering, report, runs
from nummodel.reports.notebook import read
from nummodel.reports.runs import Run

OUTSIDE = re.compile(
    r"(?:src|href)\s*=\s*[\"']?(?:https?:)?//|url\(\s*[\"']?https?:|@import|<script[^>]"
)


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """A report in which one notebook is right and four are not, two at a time."""
    folder = tmp_path_factory.mktemp("mixed")
    check = 'claims.check("size", model=size, documented=(3, 4), kind="fit")'
    claim = f"from nummodel.records import claims\n{check}"
    paths = [
        notebook(folder, "good", claim, "size * 2"),
        notebook(folder, "missing", claim.replace("(3, 4)", "(5, 6)"), "'not reached'"),
        notebook(folder, "raising", "1 / 0"),
        notebook(folder, "malformed", "def broken(:"),
        notebook(folder, "dying", "import os; os._exit(3)"),
    ]
    outcomes = report.make([Run(path) for path in paths], folder / "out", jobs=2)
    return folder / "out", {o.run.name: o for o in outcomes}


def test_failures_are_told_and_the_others_finish(mixed):
    folder, outcomes = mixed
    assert list(outcomes) == ["good", "missing", "raising", "malformed", "dying"]
    assert outcomes["good"].error == ""
    assert outcomes["missing"].error.startswith("AssertionError: FAILS: size: model 3")
    assert outcomes["raising"].error == "ZeroDivisionError: division by zero"
    assert outcomes["malformed"].error.startswith("SyntaxError")
    assert "died" in outcomes["dying"].error.lower()
    index = (folder / "index.html").read_text()
    for name, outcome in outcomes.items():
        page = (folder / f"{name}.html").read_text()
        assert f"Is {name} right?" in page and f"Is {name} right?" in index
        assert ("Failed." in page) == bool(outcome.error)
    assert "division by zero" in index and "1 holds" in index and "1 FAILS" in index


def test_answers_to_exercises_are_in_the_units_of_the_run(tmp_path):
    """A range of an answer says so; an interval that is recorded as one does not. A record that
    only the exercise makes has the unit of one whose name differs in the number.
    """
    code = "from nummodel.records import claims\nclaims.record('error at 9', 0.1, '%')\n"
    code += "claims.record('gain', 0.0089, '%')\nclaims.record('peak', 35.57)\n"
    code += "claims.record('peak, interval', (32.36, 40.5))\nclaims.record('law', 'usl')"
    path = notebook(tmp_path, "one", code)
    book = json.loads(path.read_text())
    expected = {"gain": 0.0089, "peak": [35, 36], "peak, interval": [32.4, 40.5], "law": "usl"}
    expected |= {"error at 12": 0.15}
    exercise = {"question": "Where?", "parameters": {"size": 3}, "expect": expected}
    book["metadata"]["nummodel"] = {"exercises": [exercise]}
    path.write_text(json.dumps(book))
    page = pages.page(report.execute_run(Run(path), tmp_path / "out"), ())
    told = "error at 12: 15 %; gain: 0.89 %; law: usl; peak: between 35 and 36; "
    told += "peak, interval: 32.4 to 40.5."
    assert told in page


def test_a_page_links_to_the_pages_of_its_report_only(tmp_path):
    path = notebook(tmp_path, "one", "1")
    book = json.loads(path.read_text())
    text = "See [the next](two.ipynb), and [another](three.ipynb)."
    book["cells"].append({"cell_type": "markdown", "metadata": {}, "source": text})
    path.write_text(json.dumps(book))
    (outcome,) = report.make([Run(path)], tmp_path / "out", jobs=1)
    assert "See the next, and another." in (tmp_path / "out" / "one.html").read_text()
    page = pages.page(outcome, {"one", "two"})
    assert 'See <a class="page" href="two.html">the next</a>, and another.' in page


def test_a_failed_claim_is_kept_with_its_row(mixed):
    folder, _ = mixed
    got = json.loads((folder / "claims.json").read_text())
    assert [(c["run"], c["ok"]) for c in got] == [("good", True), ("missing", False)]
    executed = read(folder / "missing.ipynb")
    assert [bool(cell.outputs) for cell in executed.cells[-2:]] == [True, False]


def test_nothing_half_written_is_left(mixed):
    folder, outcomes = mixed
    expected = {f"{name}.{kind}" for name in outcomes for kind in ("html", "ipynb")}
    written = {path.name for path in folder.iterdir()}
    assert written <= expected | {"index.html", "claims.json", "results.csv"}
    assert "dying.html" in written


def test_pages_ask_for_nothing_from_outside(mixed):
    folder, _ = mixed
    for page in folder.glob("*.html"):
        assert not OUTSIDE.search(page.read_text()), page
    assert "<mfrac>" in (folder / "good.html").read_text()


def test_every_image_has_alternative_text_and_no_heading_ends_in_a_link(tmp_path):
    """Plots of pyplot come without, and what stands in an empty element, browsers put behind it."""
    path = notebook(tmp_path, "plain", "from matplotlib import pyplot\n_ = pyplot.plot([1, 2])")
    report.execute_run(Run(path), tmp_path / "out")
    page = (tmp_path / "out" / "plain.html").read_text()
    assert re.search(r'<img[^>]*alt="A figure without description"', page)
    assert page.count("<img") == 2 and not re.search(r"<a [^>]*/>", page)


def test_parameters_reach_the_notebook(tmp_path):
    path = notebook(
        tmp_path, "shaped", "from nummodel.records import claims\nclaims.record('size', size)"
    )
    planned = runs.plan([str(path)], ["size=7"])
    (outcome,) = report.make(planned, tmp_path / "out", jobs=1)
    assert [c["model"] for c in outcome.claims] == [7]
    page = (tmp_path / "out" / "shaped,size=7.html").read_text()
    told = ["<h1", "size = 7", "With the notebook's own parameters:", "Yes, by"]
    assert told == sorted(told, key=page.index) and page.count("<h1") == 1


def test_pages_are_made_again_without_executing(mixed, tmp_path, capsys):
    folder, outcomes = mixed
    before = {path.name: path.read_text() for path in folder.glob("*.html")}
    for path in folder.glob("*.html"):
        path.unlink()
    planned = [outcome.run for outcome in outcomes.values()]
    again = report.make(planned, folder, jobs=2, execute=False)
    assert {path.name for path in folder.glob("*.html")} == set(before)
    assert [bool(o.error) for o in again] == [bool(o.error) for o in outcomes.values()]
    told = capsys.readouterr().err
    assert "good: page made" in told and "executed in" not in told
    fresh = report.make(planned[:1], tmp_path / "other", jobs=1, execute=False)
    assert fresh[0].error == "not executed"


PARAMETERS = """
level: float = 0.95
name: str = "usl"
train: list = [6, 12]
fast: bool = False
"""


@pytest.mark.parametrize(
    "given, value",
    [
        ("level=0.9", 0.9),
        ("level=.5", 0.5),
        ("name=3", "3"),
        ("name=a=b", "a=b"),
        ("train=[6,18]", [6, 18]),
        ("train=6,18", [6, 18]),
        ("train=6", [6]),
        ("train=[1e-3, a]", [0.001, "a"]),
        ("level=1e-3", 0.001),
        ("fast=true", True),
    ],
)
def test_parameters_are_read_by_their_declared_type(tmp_path, given, value):
    path = notebook(tmp_path, "typed", parameters=PARAMETERS)
    (run,) = runs.plan([str(path)], [given])
    (got,) = run.parameters.values()
    assert got == value and type(got) is type(value)


@pytest.mark.parametrize(
    "given",
    [
        "level=x",
        "level=true",
        "level=nan",
        "level=1",
        "level=0",
        "fast=1",
        "train={}",
        "train=[[1]]",
    ],
)
def test_parameters_of_another_type_are_refused(tmp_path, given):
    path = notebook(tmp_path, "typed", parameters=PARAMETERS)
    with pytest.raises(InputError, match="expected"):
        runs.plan([str(path)], [given])


def test_what_is_no_notebook_is_refused(tmp_path):
    path = tmp_path / "broken.ipynb"
    path.write_text("{")
    with pytest.raises(InputError, match=r"broken\.ipynb: not a notebook"):
        runs.plan([str(path)], [])


def test_a_notebook_is_found_by_number_name_and_path():
    (first, *_) = runs.notebooks()
    for name in (first.stem[:2], first.stem, first.name, str(first)):
        assert runs.find(name) == first


def test_formulas_that_the_converter_cannot_read_stay_readable():
    assert "<mfrac>" in rendering.mathml(r"\frac{1}{2}")
    assert rendering.mathml(r"\left( <x") == r"<code>\left( &lt;x</code>"


def test_a_folder_that_cannot_be_written_is_refused_before_anything_runs(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(InputError, match="expected a writable folder"):
        report.make([Run(runs.notebooks()[0])], blocked / "out", jobs=1)


def test_a_parameter_keeps_to_the_range_of_its_quantity(tmp_path):
    path = notebook(tmp_path, "ranged", parameters="sigma: float = 0.1  # serial share")
    for given in ("sigma=2", "sigma=-0.1"):
        with pytest.raises(InputError, match="float of at least 0 and at most 1"):
            runs.plan([str(path)], [given])


def test_notebooks_that_would_overwrite_each_other_are_refused(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    one, other = (notebook(tmp_path / d, "same") for d in ("a", "b"))
    with pytest.raises(InputError, match="name of its own"):
        runs.plan([str(one), str(other)], [])
    assert len(runs.plan([str(one), str(one)], [])) == 1
    before = one.read_bytes()
    with pytest.raises(InputError, match="expected another folder"):
        report.make([Run(one)], tmp_path / "a", jobs=1)
    assert one.read_bytes() == before


@pytest.mark.slow
def test_an_interrupted_report_ends_at_once_with_its_kernels(tmp_path):
    path = notebook(tmp_path, "slow", "import os, time; print(os.getpid()); time.sleep(300)")
    queued = notebook(tmp_path, "queued", "1")
    running = command(path, queued, "--jobs", "1", cwd=tmp_path, preexec_fn=in_foreground)
    kernels = []
    while not kernels:
        time.sleep(0.1)
        kernels = psutil.Process(running.pid).children(recursive=True)
    time.sleep(3)  # into the long cell, most likely; any moment must do
    running.send_signal(signal.SIGINT)
    code, _, errors = finish(running)
    assert code == 130 and "Traceback" not in errors
    assert not any(kernel.is_running() for kernel in kernels)
    assert not (tmp_path / "report" / "queued.html").exists()

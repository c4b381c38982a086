"""Every notebook: its form, that it runs with its defaults, and that its exercises' answers hold.

`make test` runs each notebook with its defaults and with its first exercise, and `make test-all`
with all its exercises.

A run is executed by the first test that asks for its outcome, and no second time, however many
processes share the tests; executing is testing.
"""

import fcntl
import html
import json
import os
import re
import time
from base64 import b64decode
from functools import cache
from urllib.parse import unquote

import pandas as pd
import prose
import pytest
from quick import slow

from nummodel import cli
from nummodel.answers.remarks import EXTRAPOLATION
from nummodel.records import claims
from nummodel.reports import notebook, pages, report, runs
from nummodel.reports.files import STAMP
from nummodel.reports.results import Outcome
from nummodel.reports.runs import Run

PATHS = runs.notebooks()
NOTEBOOKS = {path.stem: notebook.read(path) for path in PATHS}
EXERCISES = {
    f"{path.stem} {i}": (path, exercise)
    for path in PATHS
    for i, exercise in enumerate(NOTEBOOKS[path.stem].metadata["nummodel"]["exercises"], 1)
}
HEADINGS = [
    "The measurements",
    "The model",
    "The fit",
    "Checks",
    "Where it fails",
    "Try",
    "Sources",
]
#: Systems of others, of which a page about the reader's own file says nothing.
OTHERS = r"SDM91|MySQL|MariaDB|Postgres|Cisco|SGI|[Rr]ay tracer|z/VM|AlphaServer|Itanium|semaphore"
by_name = pytest.mark.parametrize("name", NOTEBOOKS)


def code_cells(name):
    return [cell for cell in NOTEBOOKS[name].cells if cell.cell_type == "code"]


@by_name
def test_no_outputs_are_committed(name):
    for cell in code_cells(name):
        assert not cell.outputs and cell.execution_count is None
    assert "widgets" not in NOTEBOOKS[name].metadata


@by_name
def test_file_is_formatted_so_that_a_change_is_a_small_diff(name):
    text = next(path for path in PATHS if path.stem == name).read_text()
    parsed = json.loads(text)
    assert all(isinstance(cell["source"], list) for cell in parsed["cells"])  # of lines
    assert text == json.dumps(parsed, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


@by_name
def test_opening(name):
    """A question, its answer, typed parameters with a meaning, then the imports."""
    opening, parameters, imports = NOTEBOOKS[name].cells[:3]
    title, answer = notebook.summary(NOTEBOOKS[name])
    assert opening.source.startswith("# ") and title.endswith("?")
    assert re.search(r"\d", answer), "the first paragraph answers with a number"
    assert parameters.metadata["tags"] == ["parameters"]
    for line in parameters.source.splitlines():
        assert re.fullmatch(r"\w+: (int|float|str|bool|list) = .+  # .+", line), line
    assert "import" in imports.source and "import *" not in imports.source


@by_name
def test_form(name):
    tags = [tag for cell in NOTEBOOKS[name].cells for tag in cell.metadata.get("tags", [])]
    assert tags == ["parameters"]
    assert max(len(cell.source.splitlines()) for cell in code_cells(name)) <= 12
    kinds = [cell.cell_type for cell in NOTEBOOKS[name].cells]
    assert kinds[-1] == "markdown"


@by_name
def test_headings_come_in_their_order(name):
    text = "\n".join(c.source for c in NOTEBOOKS[name].cells if c.cell_type == "markdown")
    found = [heading for heading in re.findall(r"^## (.+)$", text, re.M) if heading in HEADINGS]
    required = HEADINGS if name.startswith("1") else HEADINGS[4:]
    assert found == [heading for heading in HEADINGS if heading in found]
    assert set(required) <= set(found)


@by_name
def test_exercises_are_shown_under_try(name):
    exercises = NOTEBOOKS[name].metadata["nummodel"]["exercises"]
    (shown,) = (c.source for c in NOTEBOOKS[name].cells if c.source.startswith("## Try"))
    assert len(exercises) >= 2
    known = notebook.parameters(next(path for path in PATHS if path.stem == name))
    for exercise in exercises:
        assert exercise["question"] in shown
        assert exercise["expect"] and set(exercise["parameters"]) <= set(known)


@pytest.fixture(scope="session")
def outcome_of(tmp_path_factory, request):
    """Gives outcome and folder of a run by its name: a notebook's defaults, or an exercise.

    The process that asks first executes the run. A process that would have to wait for it executes
    another run meanwhile, which some test will ask for.
    """
    wanted = {name: Run(path) for name, path in zip(NOTEBOOKS, PATHS, strict=True)}
    wanted |= {name: Run(path, e["parameters"]) for name, (path, e) in EXERCISES.items()}
    tests = [item for item in request.session.items if hasattr(item, "callspec")]
    asked = {test.callspec.params.get("name") for test in tests}
    own = tmp_path_factory.getbasetemp()
    shared = own.parent if "PYTEST_XDIST_WORKER" in os.environ else own

    def is_executed(name):
        with open(shared / f"{name}.lock", "w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            if not (shared / name).exists():
                (shared / name).mkdir()
                report.execute_run(wanted[name], shared / name)
            return True

    @cache
    def outcome_of(name):
        run, folder = wanted[name], shared / name
        while not is_executed(name):
            others = (one for one in wanted if one in asked and not (shared / one).exists())
            if not any(map(is_executed, others)):
                time.sleep(0.1)
        executed = notebook.read(folder / f"{run.name}.ipynb")
        stamp = executed.metadata[STAMP]
        return Outcome(run, executed, stamp["seconds"], stamp["error"]), folder

    return outcome_of


@by_name
def test_runs_with_its_defaults(name, outcome_of):
    outcome, _ = outcome_of(name)
    assert outcome.error == ""
    assert outcome.claims and all(claim["ok"] for claim in outcome.claims)


@pytest.mark.parametrize("name", [n if n.endswith(" 1") else slow(n) for n in EXERCISES])
def test_answers_to_exercises(name, outcome_of):
    outcome, _ = outcome_of(name)
    assert outcome.error == ""
    recorded = {claim["what"]: claim["model"] for claim in outcome.claims}
    for what, expected in EXERCISES[name][1]["expect"].items():
        assert claims.agrees(recorded[what], expected), f"{what}: {recorded[what]}"


@by_name
def test_an_exercise_changes_what_it_asks_about(name, outcome_of):
    """Else its answer would hold whatever the reader does."""
    before = {claim["what"]: claim["model"] for claim in outcome_of(name)[0].claims}
    for key, (path, exercise) in EXERCISES.items():
        if path.stem == name:
            answers = exercise["expect"].items()
            assert any(
                what not in before or not claims.agrees(before[what], expected)
                for what, expected in answers
            ), key


@by_name
def test_every_figure_is_on_the_page_with_alternative_text(name, outcome_of):
    """Kernels are known to lose figures silently; so they are counted."""
    _, folder = outcome_of(name)
    page = (folder / f"{name}.html").read_text()
    drawn = sum(
        bool(re.search(r"[Pp]icture\(|plot\.fitted\(|\bexplore\(", cell.source))
        for cell in code_cells(name)
    )
    drawn += sum(cell.source.count("](data:image") for cell in NOTEBOOKS[name].cells)
    images = re.findall(r"<img[^>]*>", page)
    assert len(images) == drawn + 1 > 1, "each once, and one in the head"
    assert page.count("data:image/svg+xml;base64,") == len(images)
    assert all(re.search(r'alt="[^"]{20,}"', image) for image in images)
    assert "No description has been provided" not in page


@by_name
def test_each_number_in_prose_is_that_of_the_record_it_names(name, outcome_of):
    outcome, _ = outcome_of(name)
    assert prose.strange(NOTEBOOKS[name], outcome.claims) == []


@pytest.mark.parametrize("name", [name for name in NOTEBOOKS if name.startswith("1")])
def test_questions_of_a_document_have_the_figures_of_its_notebook(name, outcome_of):
    """The table in docs/ has rows for each document, the notebook's own question among them."""
    rows, (title, _) = pages.questions([name]), notebook.summary(NOTEBOOKS[name])
    assert len(rows) > 5 and f"| {title} |" in rows[2]
    assert all(row.count("|") == 6 and "|  |" not in row for row in rows)
    assert {*re.findall(r"([\w-]+)\.ipynb", "\n".join(rows))} == {name}
    asked = prose.of_questions(NOTEBOOKS[name], name)
    assert prose.strange(asked, outcome_of(name)[0].claims) == []


def test_an_index_has_the_questions_that_its_runs_are_about(outcome_of):
    """With links to the pages that are there; none about a file of the reader's own."""
    linux, own = (outcome_of(name)[0] for name in ("13-linux-semaphores", "21-your-scaling-data"))
    index = pages.index([linux, own])
    first, second = (name in index for name in ("What do the load rates", "Which SEMMSL would"))
    assert second and not first
    assert 'href="13-linux-semaphores.html#growth-at-the-older-lock"' in index
    assert "measurement would settle it" not in pages.index([own])


@by_name
def test_links_on_the_page_lead_to_what_it_has(name, outcome_of):
    page = (outcome_of(name)[1] / f"{name}.html").read_text()
    assert {unquote(link) for link in re.findall(r'href="#([^"]+)"', page)} <= set(
        re.findall(r'id="([^"]+)"', page)
    )


@by_name
def test_names_of_claims_and_records_differ(name, outcome_of):
    anchors = [claims.anchor(claim["what"]) for claim in outcome_of(name)[0].claims]
    assert len(anchors) == len(set(anchors))


@by_name
def test_each_record_has_a_guard(name, outcome_of):
    """What is recorded is held against something: the text, the questions of its document, an
    exercise, or an assertion."""
    made = [claim["what"] for claim in outcome_of(name)[0].claims]
    expected = [e["expect"] for path, e in EXERCISES.values() if path.stem == name]
    asked = "\n".join(pages.questions([name]))
    linked = {what for what in made if f"#{claims.anchor(what)})" in asked}
    guarded = linked | {what for e in expected for what in e}
    assert prose.unguarded(NOTEBOOKS[name], made, guarded) == []


@by_name
def test_formulas_are_drawn_by_the_browser_itself(name, outcome_of):
    page = (outcome_of(name)[1] / f"{name}.html").read_text()
    assert "<math" in page and r"\frac" not in page and "MathJax" not in page


def test_the_curves_before_a_run_are_those_of_the_model():
    """Notebook 23 has them as a picture, which nothing else would renew: ends, and their ratio."""
    cells = NOTEBOOKS["23-what-if"].cells
    (text,) = (cell.source for cell in cells if "](data:image" in cell.source)
    svg = b64decode(re.search(r"base64,([^)]+)\)", text)[1]).decode()
    names = {}
    with pd.option_context("display.float_format", None):
        for cell in cells:
            if cell.cell_type == "code" and "explore(" not in cell.source:
                exec(cell.source, names)
    drawn = [
        [[float(v) for v in point.split(",")] for point in line.split()]
        for line in re.findall(r'points="([^"]+)"', svg)
    ]
    now, then = names["now"], names["now"] | names["together"]
    X = [names["plan"](names["threads"], **setup).X for setup in (now, then)]
    for curve, points in zip(X, drawn, strict=True):
        heights = [1 - y / 200 for _, y in points]
        assert heights == pytest.approx(list(curve / X[1].max()), abs=1e-3)


def test_what_is_said_of_twice_the_load_says_how_far_such_figures_were_off(outcome_of):
    """Once, and below the figures of that load."""
    cells = outcome_of("21-your-scaling-data")[0].notebook.cells
    said = [i for i, cell in enumerate(cells) if EXTRAPOLATION in str(cell.get("outputs"))]
    assert len(said) == 1 and "2 * points.N.max()" in cells[said[0]].source


@pytest.mark.parametrize("rows", [2, slow(3), 6])
def test_any_csv_becomes_a_report(rows, tmp_path, monkeypatch):
    """Named relative to where the command runs; however few its rows."""
    monkeypatch.chdir(tmp_path)
    table = ["threads,tps", "1,10", "2,19", "4,33", "8,52", "16,60", "32,58"][: rows + 1]
    (tmp_path / "mine.csv").write_text("\n".join(table) + "\n")
    asked = ["weights=log", "at=64,128", "known=Z=0.01", "holdout=N>16", "law=all", "level=0.9"]
    (run,) = runs.plan(["21"], ["file=mine.csv", *asked])
    outcome = report.execute_run(run, tmp_path)
    assert outcome.error == ""
    page = (tmp_path / f"{run.name}.html").read_text()
    text = " ".join(html.unescape(re.sub("<[^>]*>", " ", page)).split())
    assert all(" ".join(part.split()) in text for part in outcome.found.splitlines())
    for told in (text, pages.index([outcome])):
        assert not re.search(OTHERS, told), re.findall(OTHERS, told)


def test_the_options_of_fit_are_parameters_of_the_notebook():
    options = {option.name for option in cli.fit.params}
    known = set(notebook.parameters(runs.find("21")))
    assert options - {"plot", "as_json"} == known

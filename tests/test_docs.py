"""What README and the pages of docs/ say: commands run, programs run, numbers are computed.

Commands are run in one folder, page after page, as a reader would, those of `nummodel` in this
process; `make` is only asked what it would do. A run of a notebook that is one of its exercises is
run in test_notebooks; `make test-all` runs all exercises there.
"""

import ast
import doctest
import inspect
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest
import yaml
from inprocess import nummodel
from quick import slow

from nummodel import models
from nummodel.nomenclature import QUANTITIES
from nummodel.records.columns import listed
from nummodel.reports import notebook, runs

ROOT = Path(__file__).parent.parent
PAGES = {
    str(path.relative_to(ROOT)): path.read_text(encoding="utf-8")
    for path in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/*.md"))]
}
COURSE = PAGES["docs/course.md"]
NOTEBOOKS = {path.stem: notebook.read(path) for path in runs.notebooks()}
HERE = re.compile(r"^(make|source) .*\n", re.M)  # make is only asked, the path is set
by_page = pytest.mark.parametrize("page", PAGES)
#: Its commands start processes that go on, and are run by test_package and test_cluster.
RUN_HERE = [page for page in PAGES if page != "docs/cluster.md"]


def blocks(page, language):
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGES[page], re.S | re.M)


def without_blocks(text):
    return re.sub(r"^```.*?^```$", "", text, flags=re.S | re.M)


def spans(page, command):
    """Commands in running text, in one line or broken."""
    found = re.findall(rf"`(?:\.venv/bin/)?({command} [^`]+)`", without_blocks(PAGES[page]))
    return [" ".join(span.split()) for span in found]


def expected(command):
    """What the exercise expects that `nummodel report NN -p ...` is: nothing of the default run,
    and None if it is none of those that test_notebooks runs.
    """
    _, verb, number, *given = command.split()
    if verb != "report" or set(given[::2]) - {"-p"}:
        return None
    (run,) = runs.plan([number], given[1::2])
    exercises = NOTEBOOKS[run.notebook.stem].metadata["nummodel"]["exercises"]
    known = [(e["parameters"], e["expect"]) for e in exercises] + [({}, {})]
    return next((expect for parameters, expect in known if parameters == run.parameters), None)


@by_page
def test_every_block_is_of_a_kind_that_is_tested(page):
    fences = re.findall(r"^```(.*)$", PAGES[page], re.M)
    assert set(fences[::2]) <= {"sh", "console", "python"} and set(fences[1::2]) <= {""}


@by_page
def test_links_lead_somewhere(page):
    """Files of this checkout, and headings in them; other addresses there are none."""
    for target in re.findall(r"\]\(([^)]+)\)", PAGES[page]):
        name, _, heading = target.partition("#")
        path = (ROOT / page).parent / name
        assert path.exists(), target
        if not heading or path.suffix == ".ipynb":  # records of a notebook: test_notebooks has them
            continue
        titles = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.M)
        assert heading in [t.lower().replace(" ", "-") for t in titles], target


@by_page
def test_files_that_are_named_exist(page):
    folders = "benchmarks|data|docs|notebooks|nummodel|tests"
    named = re.findall(rf"`[^`]*?((?:{folders})/[\w./-]*)[^`]*`", without_blocks(PAGES[page]))
    for name in named:
        assert "NAME" in name or (ROOT / name).exists(), name


@pytest.mark.parametrize(
    "page", [slow(page) if page == "docs/use.md" else page for page in RUN_HERE]
)
def test_programs_run(page):
    """In their order, as one program."""
    program: dict = {}
    for block in blocks(page, "python"):
        exec(compile(block, page, "exec"), program)


def commands(block):
    """The commands of a block, each with the lines that are its input (`<<END`)."""
    return [match[0] for match in re.finditer(r"^.*<<(\w+)\n(?s:.*?)^\1\n|^.+\n", block, re.M)]


def is_plain(command):
    """Whether it is `nummodel` and nothing that a shell would have to do."""
    return command.startswith("nummodel ") and not re.search(
        r"[|&;<>$`*?~]", re.sub(r"'[^']*'| # .*", "", command)
    )


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Runs a command beside the data and the files that README writes, and gives what it prints."""
    folder = tmp_path_factory.mktemp("reader")
    for name in ("data", "tests"):
        (folder / name).symlink_to(ROOT / name)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path}

    def run(command):
        if is_plain(command):
            done = nummodel(*shlex.split(command, comments=True)[1:], cwd=folder)
        else:
            bash = ["bash", "-ec", command]
            done = subprocess.run(bash, cwd=folder, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, f"{command}\n{done.stderr}"
        return done

    for block in blocks("README.md", "sh"):
        for command in commands(HERE.sub("", block)):
            if not is_plain(command):
                run(command)
    return run


@pytest.mark.parametrize("page", [page if page == "README.md" else slow(page) for page in RUN_HERE])
def test_commands_run(page, run):
    for block in blocks(page, "sh"):
        for command in commands(HERE.sub("", block)):
            run(command)
    for session in blocks(page, "console"):
        for command, printed in re.findall(r"^\$ (.*\n)((?:[^$\n].*\n|\n)*)", session, re.M):
            done = run(command)
            messages = re.findall(r"^nummodel: .*\n", printed, re.M)  # some of those on stderr
            assert set(messages) <= set(done.stderr.splitlines(keepends=True)), done.stderr
            results = re.sub(r"^nummodel: .*\n", "", printed, flags=re.M)
            like = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
            assert doctest.OutputChecker().check_output(results, done.stdout, like), done.stdout
    for span in spans(page, "nummodel"):
        if expected(span) is None:
            run(span)


def test_a_command_that_needs_a_shell_gets_one():
    block = "nummodel list\ncat > a <<END\n1\nnummodel 2\nEND\nnummodel fit a -x 'N > 2'\n"
    found = commands(block)
    assert "".join(found) == block and len(found) == 3
    assert [is_plain(command) for command in found] == [True, False, True]
    assert is_plain("nummodel list  # a | b") and not is_plain("nummodel list | head")


@by_page
def test_make_has_the_targets(page):
    text = "\n".join([*spans(page, "make"), *blocks(page, "sh")])
    for target in re.findall(r"^make ([a-z-]+)", text, re.M):
        asked = subprocess.run(
            ["make", "-n", target], cwd=ROOT, capture_output=True, text=True, timeout=30
        )
        assert asked.returncode == 0, asked.stderr


def test_contributing_lists_all_make_targets():
    phony = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.M)[1].split()
    listed = re.findall(r"^\| `make ([a-z-]+)`", PAGES["CONTRIBUTING.md"], re.M)
    assert {*listed, "help"} == set(phony)


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_every_notebook_has_a_row_with_its_question(name):
    title, _ = notebook.summary(NOTEBOOKS[name])
    assert f"| [{name}](notebooks/{name}.ipynb) | {title} |" in PAGES["README.md"]


@pytest.mark.parametrize("name", re.findall(r"^- \[(.*?)\]", COURSE, re.M))
def test_the_course_names_headings_and_exercises_that_exist(name):
    item = re.search(rf"^- \[{name}\].*?(?=^- |\n\n)", COURSE, re.S | re.M)[0]
    text = "\n".join(c.source for c in NOTEBOOKS[name].cells if c.cell_type == "markdown")
    headings = re.findall(r"^##+ (.+)$", text, re.M)
    named = [" ".join(h.split()) for h in re.findall(r"\*([^*]+)\*", item)]
    assert named and set(named) <= set(headings), set(named) - set(headings)
    numbers = [int(n) for n in re.findall(r"\d+", item.rpartition("exercise")[2])]
    assert max(numbers) <= len(NOTEBOOKS[name].metadata["nummodel"]["exercises"])


@pytest.mark.parametrize("session", re.findall(r"\*\*Assess\.\*\*.*?\n\n", COURSE, re.S))
def test_an_exercise_knows_the_answer_to_each_assessment(session):
    (command,) = re.findall(r"`(nummodel report [^`]+)`", session)
    expect = expected(command)
    answers = re.findall(r"\*([^*]+)\*:\s+(\"[^\"]*\"|null|-?\d+(?:\.\d+)?)", session)
    assert answers
    for what, answer in answers:
        assert json.loads(answer) == expect[" ".join(what.split())], what


def test_the_course_has_an_assessment_in_each_session():
    assert COURSE.count("**Assess.**") == COURSE.count("\n## Session ") == 6


SECTIONS = re.split(r"^## ", PAGES["docs/misconceptions.md"], flags=re.M)[1:]


@pytest.mark.parametrize("section", SECTIONS, ids=[s.partition("\n")[0] for s in SECTIONS])
def test_every_number_on_misconceptions_is_asserted_under_its_heading(section):
    """As a literal that something computed has to equal; `test_programs_run` runs the asserts."""
    program = "\n".join(re.findall(r"^```python\n(.*?)^```$", section, re.S | re.M))
    asserted = {
        float(literal.value)
        for node in ast.walk(ast.parse(program))
        if isinstance(node, ast.Compare)
        and any(isinstance(n, ast.Name) for n in ast.walk(node.left))
        for right in node.comparators
        for literal in ast.walk(right)
        if isinstance(literal, ast.Constant) and isinstance(literal.value, (int, float))
    }
    names = r"`[^`]*`|z/VM 5\.3|\d+(?:(?:, | to | and )\d+)*-way"
    prose = re.sub(names, " ", without_blocks(section))
    printed = re.findall(r"(?<![\w.])\d[\d,]*(?:\.\d+)?", prose)
    strange = [n for n in printed if float(n.rstrip(",").replace(",", "")) not in asserted]
    assert printed and not strange


def test_our_side_of_the_names_exists():
    """Backticked first cells: a quantity, or something of a module."""
    rows = re.findall(r"^\| (.*?) \|", PAGES["docs/names.md"], re.M)
    names = [n for row in rows for n in re.findall(r"`([\w.]+)`", row)]
    assert len(names) > 30
    for name in set(names) - set(QUANTITIES) - {"weights"}:
        room, _, rest = name.partition(".")
        found = import_module("nummodel." + "models." * (room in dir(models)) + room)
        for part in rest.split("."):
            found = inspect.getattr_static(found, part)


def test_citation_agrees_with_the_project():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert citation["cff-version"] == "1.2.0" and citation["message"] and citation["title"]
    assert citation["version"] == project["version"] and citation["license"] == project["license"]
    assert citation["authors"] == [{"name": f"{project['name']} developers"}]
    assert f"{project['name']} {project['version']}" in PAGES["README.md"]


def test_the_names_of_columns_are_those_of_the_list():
    """docs/use.md has the list as a table."""
    assert "docs/use.md#names-of-columns" in PAGES["README.md"]
    section = PAGES["docs/use.md"].partition("\n## Names of columns\n")[2].partition("\n## ")[0]
    rows = ["| " + " | ".join(row) + " |" for row in listed()]
    assert re.findall(r"^\|.*\|$", section, re.M)[2:] == rows

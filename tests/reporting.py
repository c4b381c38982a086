"""Small notebooks, and reports of them by a command in a process of its own."""

import csv
import signal
import subprocess
import sys
import time

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

RECORD = "from nummodel.records import claims\nclaims.record('square', size**2)"
ANSWER = "Yes, by $\\frac{1}{2}$."


def notebook(folder, name, *sources, parameters="size: int = 3  # of the thing"):
    """Write NAME.ipynb: title and answer, a cell of parameters, and a cell for each source."""
    cells = [new_markdown_cell(f"# Is {name} right?\n\n{ANSWER}"), new_code_cell(parameters)]
    cells[1].metadata["tags"] = ["parameters"]
    path = folder / f"{name}.ipynb"
    nbformat.write(new_notebook(cells=cells + [new_code_cell(s) for s in sources]), path)
    return path


def command(*arguments, cwd, **options):
    """Start `nummodel report` in the folder `cwd`."""
    start = [sys.executable, "-m", "nummodel", "report", *map(str, arguments)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(start, cwd=cwd, **pipes | options)


def finish(started):
    """Exit code, stdout and stderr of what `command` has started."""
    out, err = started.communicate(timeout=100)
    assert "cli.py" not in (err or ""), err  # a kernel may show a traceback of its own
    return started.returncode, out, err


def in_foreground():
    """For `preexec_fn`: what a shell runs in the background ignores these signals, with all that
    it starts.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def table(folder):
    """The rows of results.csv."""
    with open(folder / "results.csv", newline="") as file:
        return list(csv.DictReader(file))


def wait_for(condition, seconds=60):
    """Return when the condition holds; fail if it never does."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)

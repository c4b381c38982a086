"""One real browser for all tests in this folder. `make test-ui` runs them, `make test` does not."""

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from playwright.sync_api import sync_playwright

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
BIN = Path(sys.executable).parent
OWN = "threads,tps\n1,10.4\n2,19.1\n4,34.2\n8,52.9\n16,65.0\n32,58.7\n"
OWN_PAGE = "21-your-scaling-data,file=own.csv,at=48"

# The browser must not look for updates or test its connection: that would only slow it down, and
# the machine may have no network. It has no sandbox in a container, where everybody is root.
OPTIONS = """--no-sandbox --disable-gpu --disable-quic --no-first-run
    --disable-background-networking --disable-component-update --disable-sync"""


class Report(NamedTuple):
    folder: Path
    said: str  # by the second command, about the reader's own file


def pytest_generate_tests(metafunc):
    """A test that takes `notebook` runs once for every notebook of the collection; one that takes
    `name` once for every page.
    """
    notebooks = sorted(path.stem for path in NOTEBOOKS.glob("[0-9]*.ipynb"))
    if "notebook" in metafunc.fixturenames:
        metafunc.parametrize("notebook", notebooks)
    if "name" in metafunc.fixturenames:
        metafunc.parametrize("name", [*notebooks, OWN_PAGE, "index"])


@pytest.fixture(scope="session")
def browser():
    # Debian's chromium, since playwright's own would be one more download.
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=OPTIONS.split()
        )
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """All notebooks, and by another command a file of the reader's own, printed as well."""
    home = tmp_path_factory.mktemp("made")
    (home / "own.csv").write_text(OWN)
    command = [BIN / "nummodel", "report", "--output", "report"]
    subprocess.run(command, cwd=home, check=True, timeout=600)
    command += ["21", "-p", "file=own.csv", "-p", "at=48", "--pdf"]
    said = subprocess.check_output(command, cwd=home, timeout=600, text=True)
    return Report(home / "report", said)


@pytest.fixture(scope="session")
def report(made):
    """The folder of the report."""
    return made.folder

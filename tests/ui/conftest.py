"""One real browser for all tests in this folder. `make test-ui` runs them, `make test` does not."""

import subprocess
import sys
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
NUMMODEL = Path(sys.executable).parent / "nummodel"

# The browser must not look for updates or test its connection: that would only slow it down, and
# the machine may have no network. It has no sandbox in a container, where everybody is root.
OPTIONS = """--no-sandbox --disable-gpu --disable-quic --no-first-run
    --disable-background-networking --disable-component-update --disable-sync"""


def pytest_generate_tests(metafunc):
    """A test that takes `notebook` runs once for every notebook of the collection."""
    if "notebook" in metafunc.fixturenames:
        names = sorted(path.stem for path in NOTEBOOKS.glob("[0-9]*.ipynb"))
        metafunc.parametrize("notebook", names)


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
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    subprocess.run([NUMMODEL, "report", "--output", folder], check=True, timeout=600)
    return folder

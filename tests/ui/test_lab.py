"""The notebooks in a real JupyterLab, which a real browser shows and runs."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.request import urlopen

import pytest
from playwright.sync_api import TimeoutError

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"

# Cells out of view would not be drawn, and news would have to be fetched.
SETTINGS = {
    "@jupyterlab/notebook-extension:tracker": {"windowingMode": "none"},
    "@jupyterlab/apputils-extension:notification": {
        "fetchNews": "false",
        "checkForUpdates": False,
    },
}

# The tab has to be the one that was asked for: JupyterLab may show another one before.
READY = """path => {
    const tab = window.jupyterapp?.shell.currentWidget;
    const session = tab?.sessionContext;
    return tab?.context?.path === path && session.isReady
        && session.session?.kernel?.status === 'idle';
}"""

# By command, since clicks on a menu get lost while JupyterLab is still moving things about.
RUN_ALL = """() => {
    window.finished = false;
    jupyterapp.commands.execute('notebook:run-all-cells').finally(() => window.finished = true);
}"""

CELLS = """() => jupyterapp.shell.currentWidget.content.widgets
    .map(cell => cell.model.sharedModel)
    .filter(cell => cell.cell_type === 'code' && cell.source.trim())
    .map(cell => ({
        source: cell.source,
        count: cell.execution_count,
        state: cell.executionState,
        errors: cell.outputs.filter(o => o.output_type === 'error').map(o => o.evalue),
    }))"""

# JupyterLab draws pictures without their alternative text, but keeps it as the output's plain text.
PICTURE = """() => {
    const all = widget => [widget, ...[...widget.children()].flatMap(all)];
    const area = all(jupyterapp.shell.currentWidget)
        .find(widget => widget.node.matches('.widget-output > .jp-OutputArea'));
    const image = area?.node.querySelector('img');
    return {
        text: area?.model.get(0)?.data['text/plain'],
        src: image?.naturalWidth > 0 ? image.src : null,
    };
}"""


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """The address of a JupyterLab on a copy of the notebooks, with no settings but ours."""
    home = tmp_path_factory.mktemp("lab")
    shutil.copytree(NOTEBOOKS, home / "notebooks")
    (home / "app").mkdir()
    (home / "app" / "overrides.json").write_text(json.dumps(SETTINGS), encoding="utf-8")
    own = {
        "JUPYTER_CONFIG_DIR": home / "config",
        "JUPYTER_DATA_DIR": home / "data",
        "JUPYTER_RUNTIME_DIR": home / "runtime",
        "JUPYTERLAB_SETTINGS_DIR": home / "settings",
        "JUPYTERLAB_WORKSPACES_DIR": home / "workspaces",
        "IPYTHONDIR": home / "ipython",
    }
    port = free_port()
    command = [
        *(sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root"),
        "--ServerApp.ip=127.0.0.1",
        f"--ServerApp.port={port}",
        "--ServerApp.port_retries=0",
        "--IdentityProvider.token=",
        f"--ServerApp.root_dir={home / 'notebooks'}",
        f"--LabApp.app_settings_dir={home / 'app'}",
        "--LabApp.expose_app_in_browser=True",
    ]
    environment = os.environ | {name: str(path) for name, path in own.items()}
    server = subprocess.Popen(command, env=environment, cwd=home)
    try:
        wait_for_server(server, f"http://127.0.0.1:{port}/api", seconds=60)
        yield f"http://127.0.0.1:{port}/lab"
    finally:
        server.terminate()  # which ends the kernels too
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            server.kill()


@pytest.fixture
def page(browser):
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    yield page
    page.close()


def test_notebook_runs(page, lab, notebook):
    cells = run_all(page, lab, notebook)
    assert cells, "no code cells"
    assert [c for c in cells if c["errors"]] == []
    assert [c for c in cells if c["count"] is None or c["state"] != "idle"] == []


def test_slider_redraws_its_picture(page, lab):
    run_all(page, lab, "01-scaling-laws")
    before = picture_of_slider(page)

    page.locator(".noUi-handle").press("ArrowRight")
    after = picture_of_slider(page, other_than=before)
    assert after["src"] != before["src"]

    # The same value again gives the same picture, so it is the slider that it depends on.
    page.locator(".noUi-handle").press("ArrowLeft")
    assert picture_of_slider(page, other_than=after) == before


def run_all(page, lab, notebook):
    """Open a notebook, run it, and return its code cells."""
    # A workspace of its own: the default one would open the notebooks of earlier tests again.
    page.goto(f"{lab}/workspaces/{notebook}/tree/{notebook}.ipynb", timeout=60_000)
    wait(page, READY, "no kernel", f"{notebook}.ipynb")
    page.evaluate(RUN_ALL)
    wait(page, "window.finished", "cells still running", seconds=300)
    return page.evaluate(CELLS)


def picture_of_slider(page, other_than=None, seconds=30):
    """The slider's picture, as soon as it is the one for the value beside the slider."""
    readout = page.locator(".widget-readout")
    readout.scroll_into_view_if_needed(timeout=seconds * 1000)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        value, picture = readout.inner_text(), page.evaluate(PICTURE)
        if picture["src"] and value in picture["text"] and picture != other_than:
            return picture
        page.wait_for_timeout(100)
    pytest.fail(f"the slider is at {value}, its picture after {seconds} s: {picture['text']}")


def wait(page, condition, failure, argument=None, seconds=60):
    try:
        page.wait_for_function(condition, arg=argument, timeout=seconds * 1000)
    except TimeoutError:
        pytest.fail(f"{page.url}: {failure} after {seconds} s")


def wait_for_server(server, address, seconds):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and server.poll() is None:
        try:
            return urlopen(address, timeout=5)
        except OSError:
            time.sleep(0.2)
    pytest.fail(f"JupyterLab does not answer after {seconds} s, exit code {server.poll()}")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]

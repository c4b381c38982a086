"""The notebooks in a real JupyterLab, which a real browser shows and runs."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple
from urllib.request import urlopen

import nbformat
import numpy as np
import pytest
from playwright.sync_api import TimeoutError

from nummodel.nomenclature import show

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

# MathJax lays a second formula over each, which nobody sees, for readers aloud. It is wider than
# the one that is seen, and comes with each drawing, so it is taken away at the moment of measuring.
CUT = """all => {
    document.querySelectorAll('mjx-assistive-mml').forEach(e => e.remove());
    return all.filter(e => e.scrollWidth > e.clientWidth || e.scrollHeight > e.clientHeight)
        .map(e => [e.innerText, e.clientWidth, e.scrollWidth, e.clientHeight, e.scrollHeight]);
}"""


class Lab(NamedTuple):
    address: str
    home: Path


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """A JupyterLab on a copy of the notebooks, with no settings but ours."""
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
        yield Lab(f"http://127.0.0.1:{port}/lab", home)
    finally:
        server.terminate()  # which ends the kernels too
        try:
            server.wait(20)
        except subprocess.TimeoutExpired:
            server.kill()


@pytest.fixture
def page(browser):
    page = browser.new_page(viewport={"width": 1366, "height": 768})
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


EXPLORED = {
    "law": "explore(scaling.usl_throughput, sigma=(0, 0.2, 0.05))",
    "lock": "explore(ticket, N=(1, 40), h_waiter=(0, 0.4, 0.2), Z=9.0)",
    "network": "explore(lock_and_disk, N=(1, 30), D_lock=(0, 0.4, 0.2))",
}
MODELS = """
from nummodel.models import locks, networks, scaling
from nummodel.widgets import explore

def ticket(N, h_waiter, Z, S):
    return locks.solve(lambda n: locks.ticket_grant(n, S=S, h_waiter=h_waiter), N, Z)

def lock_and_disk(N, D_lock, D_disk):
    return networks.solve([networks.queue(D_lock), networks.queue(D_disk)], N.astype(int))
"""


@pytest.mark.parametrize("kind", EXPLORED)
def test_explored_models_follow_their_sliders(page, lab, kind):
    """Which slider, and what X is at the end of the axis, by the models themselves."""
    names: dict = {}
    exec(MODELS, names)
    which, at = {
        "law": (1, lambda v: names["scaling"].usl_throughput(64.0, 1.0, v, 1e-3)),
        "lock": (0, lambda v: names["ticket"](40, v, 9.0, 1.0).X),
        "network": (0, lambda v: names["lock_and_disk"](np.array([30]), v, 1.0).X[0]),
    }[kind]
    write_notebook(lab.home / "notebooks" / f"{kind}.ipynb", [MODELS, EXPLORED[kind]])
    run_all(page, lab, kind)
    assert_labels_fit(page)
    for value, said in moved(page, which):
        assert said == show(float(at(value)))


def test_planner_follows_its_sliders(page, lab):
    cells = json.loads((NOTEBOOKS / "23-what-if.ipynb").read_text())["cells"]
    source = ["".join(c["source"]) for c in cells if c["cell_type"] == "code"]
    names: dict = {}
    for cell in source[: 1 + next(i for i, text in enumerate(source) if "changes =" in text)]:
        exec(cell, names)
    run_all(page, lab, "23-what-if")
    assert_labels_fit(page)
    for value, said in moved(page, 0):
        assert said == show(float(names["plan"](4 * names["N"], **names["now"] | {"c": value}).X))


def assert_labels_fit(page):
    typeset = "[...document.querySelectorAll('.widget-label')].every(e => !/\\$/.test(e.innerText))"
    page.wait_for_function(typeset)
    labels = page.locator(".widget-label, .widget-readout")
    assert labels.count() > 4 and labels.evaluate_all(CUT) == []


def moved(page, which, seconds=30):
    """Values of a slider and X in the readout: as it stands, and after a step to the right."""
    text = page.locator(".widget-output p").last
    text.scroll_into_view_if_needed(timeout=seconds * 1000)
    found = []
    for step in ("", "ArrowRight"):
        before, picture = text.inner_text(), page.locator(".widget-output img").last
        drawn = picture.get_attribute("src")
        if step:
            page.locator(".noUi-handle").nth(which).press(step)
            deadline = time.monotonic() + seconds
            while text.inner_text() == before and time.monotonic() < deadline:
                page.wait_for_timeout(100)
            assert page.locator(".widget-output img").last.get_attribute("src") != drawn
        value = float(page.locator(".widget-readout").nth(which).inner_text())
        found.append((value, text.inner_text().partition(" at ")[0].removeprefix("X = ")))
    assert found[0] != found[1]
    return found


def write_notebook(path, sources):
    notebook = nbformat.v4.new_notebook()
    notebook.cells = [nbformat.v4.new_code_cell(source) for source in sources]
    notebook.metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    nbformat.write(notebook, path)


def run_all(page, lab, notebook):
    """Open a notebook, run it, and return its code cells."""
    # A workspace of its own: the default one would open the notebooks of earlier tests again.
    page.goto(f"{lab.address}/workspaces/{notebook}/tree/{notebook}.ipynb", timeout=60_000)
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

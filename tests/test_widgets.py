"""Sliders over models: what they show is what the model gives."""

import subprocess
import sys

import ipywidgets
import numpy as np
import pytest
from nbclient import NotebookClient
from nbclient.output_widget import OutputWidget
from nbformat.v4 import new_code_cell, new_notebook
from quick import one_in

from nummodel import plot
from nummodel.fits import fit
from nummodel.models import locks, networks, queueing, scaling
from nummodel.nomenclature import label, quantity, show
from nummodel.records import data
from nummodel.widgets import explore, interact


def ticket(N, Z, S, h_waiter):
    return locks.solve(lambda n: locks.ticket_grant(n, S=S, h_waiter=h_waiter), N, Z)


def lock_and_disk(N, D_lock, D_disk, Z=0.5):
    return networks.solve([networks.queue(D_lock), networks.queue(D_disk)], N.astype(int), Z)


MODELS = {
    "law": (scaling.usl_throughput, {"X1": 10.0}),
    "station": (queueing.mmc_waiting, {"lamda": (0, 39), "S": 0.1, "c": 4}),
    "lock": (ticket, {"N": 40, "Z": 9.0, "h_waiter": (0, 0.5)}),
    "network": (lock_and_disk, {"N": (1, 30), "D_lock": (0, 1), "D_disk": (0, 2, 0.5)}),
}


@pytest.mark.parametrize("kind", MODELS)
def test_any_model_shows_what_it_gives_where_the_sliders_are(kind):
    model, ranges = MODELS[kind]
    shown = explore(model, **ranges)
    name, slider = next(iter(shown.sliders.items()))
    for value in (slider.min + 0.5 * (slider.max - slider.min), slider.max):
        slider.value = value
        values = {n: s.value for n, s in shown.sliders.items()}
        choice = shown.choice.value
        assert values[name] == slider.value
        here = model(shown.axis[-1:], **values)
        here = getattr(here, choice, here)
        text = shown.readout(choice, **values)
        end = f"{choice} = {show(here[0])} at {shown.load} = {show(shown.axis[-1])}"
        assert text.splitlines()[0] == end


def test_sliders_are_labelled_and_bounded_by_the_nomenclature():
    shown = explore(scaling.usl_throughput, kappa=(0, 0.01, 0.002))
    assert shown.sliders["sigma"].description == label("sigma")
    assert (shown.sliders["sigma"].min, shown.sliders["sigma"].max) == quantity("sigma")[3:]
    assert shown.sliders["kappa"].value == 0.002
    assert isinstance(explore(*MODELS["station"][:1]).sliders["c"], ipywidgets.IntSlider)
    assert explore(lock_and_disk).sliders["Z"].value == 0.5
    named = explore(lock_and_disk, labels={"D_disk": "the disk"}).sliders
    assert named["D_disk"].description == "the disk" != named["D_lock"].description
    assert "D_disk" in explore(lock_and_disk).sliders["D_disk"].description


def test_reset():
    shown = explore(scaling.usl_throughput, sigma=0.1)
    shown.sliders["sigma"].value = 0.7
    shown.children[-2].children[-1].click()
    assert shown.sliders["sigma"].value == 0.1


def test_peak_and_ceiling_are_those_of_the_law():
    shown = explore(scaling.usl_throughput)
    text = shown.readout("X", X1=1.0, sigma=0.05, kappa=0.001)
    peak = np.sqrt(0.95 / 0.001)
    assert f"peak at N = {peak:.4g}" in text
    assert f"ceiling = {scaling.usl_throughput(peak, 1.0, 0.05, 0.001):.4g}" in text
    assert "ceiling = 20" in explore(scaling.amdahl_throughput).readout("X", X1=1.0, sigma=0.05)


def test_a_fit_starts_at_its_estimates_with_its_measurements():
    runs = data.load("specsdm91")
    result = fit(scaling.usl_throughput, {"N": runs["N"], "X": runs["X"]})
    shown = explore(result, X1=(0, 1))
    assert {n: s.value for n, s in shown.sliders.items()} == pytest.approx(result.estimate)
    assert shown.axis[-1] > runs["N"].max()


def test_several_results_are_offered():
    assert explore(lock_and_disk).choice.options == ("X", "R")
    shown = explore(*MODELS["lock"][:1])
    assert shown.choice.options == ("X", "Q", "share")
    shown.choice.value = "share"
    assert shown.readout("share", Z=9.0, S=1.0, h_waiter=0.0).startswith("share = 0.8")


@pytest.mark.parametrize(
    "call, told",
    [
        (lambda: explore(lambda N, colour: N), "colour is unknown"),
        (lambda: explore(scaling.usl_throughput, sgima=0.1), "sgima is unknown, expected one of N"),
        (lambda: explore(scaling.usl_throughput, sigma=(0, 0.5, 0.9)), "sigma starts at 0.9"),
        (lambda: explore(lambda N, S: 3.0), "gives nothing along N"),
    ],
)
def test_what_cannot_be_explored_is_told(call, told):
    with pytest.raises(ValueError, match=told):
        call()


@pytest.mark.parametrize("call", one_in(2, ["interact(draw, kappa=slider)", "explore(usl)"]))
def test_programs_that_execute_notebooks_are_told_only_at_the_end_of_a_cell(tmp_path, call):
    """A capturing widget is answered meanwhile, and nbclient's answer costs it the cell's end."""
    source = (
        "import ipywidgets\nfrom nummodel import plot\n"
        "from nummodel.widgets import explore, interact\n"
        "from nummodel.models.scaling import usl_throughput as usl\n"
        "slider = ipywidgets.FloatSlider(0.5)\n"
        f"draw = lambda kappa: plot.Picture(f'kappa = {{kappa}}')\n{call}"
    )
    notebook = new_notebook(cells=[new_code_cell(source)])
    sent = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(OutputWidget, "sync_state", lambda self: sent.append(self.comm_id))
        NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    assert sent == []
    (view,) = notebook.cells[0].outputs
    assert "application/vnd.jupyter.widget-view+json" in view.data
    models = notebook.metadata.widgets["application/vnd.jupyter.widget-state+json"]["state"]
    drawn = [o for model in models.values() for o in model["state"].get("outputs", [])]
    assert [o for o in drawn if "image/png" in o["data"]]


def test_a_picture_follows_its_slider():
    slider = ipywidgets.FloatSlider(0.5, max=2)
    shown = interact(lambda kappa: plot.Picture(f"kappa = {kappa}"), kappa=slider)
    assert shown.children[-1].outputs[0]["data"]["text/plain"] == "kappa = 0.5"
    slider.value = 1.5
    (output,) = shown.children[-1].outputs
    assert output["data"]["text/plain"] == "kappa = 1.5" and output["metadata"]["image/png"]["alt"]


@pytest.mark.slow
def test_plain_papermill_gets_past_a_slider(tmp_path):
    """Without what `nummodel report` does for notebooks that capture."""
    (path,) = (data.HOME / "notebooks").glob("01-*.ipynb")
    command = [sys.executable, "-m", "papermill", path, tmp_path / "out.ipynb"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr

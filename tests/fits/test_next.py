"""Which load to measure next, against formulas and against fits with one more measurement."""

import numpy as np
import pytest
from scipy import stats

from nummodel.answers.remarks import advice
from nummodel.fits import fit, next_load
from nummodel.fits.closed import fit_closed
from nummodel.models import systems
from nummodel.models.scaling import LAWS

#: Ten errors of one size, in units of it, whose squares have a mean of nearly one.
ERRORS = stats.norm.ppf((np.arange(10) + 0.5) / 10)


def test_of_a_line_through_zero_by_its_formula():
    """The error of the slope is s/sqrt(sum N^2), so the longest lever narrows it most."""
    N = np.array([1.0, 2, 4, 8])
    found = next_load(fit(LAWS["linear"], {"N": N, "X": [10, 21, 39, 81]}))
    ratio = np.sqrt(85 / (85 + 16**2)) * stats.t.ppf(0.975, 4) / stats.t.ppf(0.975, 3)
    assert found == (16.0, "X", pytest.approx(1 - ratio))


@pytest.mark.slow
@pytest.mark.parametrize("weights", ["log", "absolute"])
def test_of_a_peak_by_fits_with_one_more_measurement(weights):
    """Measurements are simulated at each candidate, and intervals are those of new fits. A new
    measurement is off by its own error and by that of the curve, as its prediction interval says.
    """
    N, law = np.array([4.0, 8, 16, 24, 32, 64]), LAWS["usl"]
    noise = 0.004 * np.random.default_rng(7).standard_normal(6)
    X = law(N, 100.0, 0.05, 1e-3) * (1 + noise)
    before = fit(law, {"N": N, "X": X}, weights)
    width = {}
    for n in (1, 6, 20, 45, 64, 128):
        low, high = before.predict([n])[["low", "high"]].to_numpy()[0]
        share = 0.5 + ERRORS / 2 / stats.t.ppf(0.975, 3)
        new = low * (high / low) ** share if weights == "log" else low + (high - low) * share
        fits = [
            fit(law, {"N": np.append(N, n), "X": np.append(X, x)}, weights, start=before.estimate)
            for x in new
        ]
        width[n] = np.mean([np.diff(f.interval("N_opt")) for f in fits])
    found = next_load(before)
    assert (found.N, found.what) == (min(width, key=width.get), "N_opt")
    narrower = 1 - width[found.N] / np.diff(before.interval("N_opt"))
    assert found.narrower == pytest.approx(float(narrower[0]), abs=0.05)


@pytest.mark.slow
def test_of_a_closed_system_by_fits_with_one_more_load():
    """Whoever measures one more load measures R there, too. Only full processors tell D_cpu: few
    loads keep them full, and a repeated one narrows as much as any beyond.
    """
    N, laws = np.array([10.0, 20, 40, 80, 160]), systems.closed(cpu=4, lock=1)
    truth = {"D_cpu": 0.03, "D_lock": 0.005, "Z": 1.0}
    random = np.random.default_rng(8)

    def measured(n):
        return [
            laws[r](N=n, **truth) * np.exp(0.01 * random.standard_normal(np.shape(n))) for r in "XR"
        ]

    X, R = measured(N)
    before = fit_closed(N, X, {"R": R}, c_cpu=4)
    found = next_load(before)

    def width(fit):
        return float((fit.curve([320]).high - fit.curve([320]).low).iloc[0])

    def after(n):
        new = [laws[r](N=n, **before.estimate) for r in "XR"]
        data = [np.append(a, b) for a, b in zip((N, X, R), (n, *new), strict=True)]
        return width(fit_closed(data[0], data[1], {"R": data[2]}, c_cpu=4))

    assert found.what == "X" and found.N >= 160
    assert after(found.N) < min(after(10.0), after(40.0), after(80.0)) < width(before)


def test_without_an_interval_there_is_no_advice():
    N, X = np.array([1.0, 2, 4, 8]), np.array([10.0, 19, 33, 50])
    for none in (
        fit(LAWS["usl"], {"N": N[:3], "X": X[:3]}),
        fit(LAWS["usl"], {"N": N, "X": X}, [1, 1, 1, 2.0]),
    ):
        assert next_load(none) is None and advice(none) == ""


def test_loads_that_are_no_whole_numbers_have_candidates_that_are_none():
    N = np.array([0.25, 0.5, 0.75])
    found = next_load(fit(LAWS["linear"], {"N": N, "X": [1, 2.1, 2.9]}))
    assert found.N == 1.5
    assert advice(fit(LAWS["linear"], {"N": N, "X": [1, 2.1, 2.9]}), "rate").startswith(
        "To know the law's curve at rate = 1.5 better, measure at rate = 1.5: its interval would "
        "become"
    )

"""Forecasts that follow a closed system, against the system that made the measurements."""

import numpy as np
import pytest

from nummodel.fits import forecast
from nummodel.fits._followed import NARROW, Followed, follow
from nummodel.fits._forecast import Outlook, outlook
from nummodel.fits._trend import trend
from nummodel.models import networks

N = np.array([10.0, 20, 40, 80, 160, 300])
STATIONS = [networks.queue(0.03, 4), networks.queue(0.005)]


def made(noise, seed=1):
    """Four processors of 30 ms, a lock of 5 ms, and users who think for a second."""
    solved = networks.solve(STATIONS, N.astype(int), 1.0)
    scatter = np.exp(noise * np.random.default_rng(seed).standard_normal((2, len(N))))
    return {"N": N, "X": solved.X * scatter[0], "R": solved.R * scatter[1]}


def test_a_system_that_is_closed_is_forecast_by_its_law():
    """Of 600 and 1,200 users the processors allow 4/0.03 requests a second."""
    measured = made(0.01)
    table = forecast(measured, [600, 1200], c_cpu=4)
    truth = networks.solve(STATIONS, np.array([600, 1200]), 1.0).X
    assert table.X.to_numpy() == pytest.approx(truth, rel=0.02)
    alone = np.exp(trend(N, measured["X"]).middle(np.array([600.0, 1200.0])))
    assert (abs(table.X / truth - 1) < abs(alone / truth - 1)).all()
    assert (table.low < truth).all() and (truth < table.high).all()


def test_nothing_is_followed_if_the_measurements_would_have_to_tell_the_servers():
    measured = made(0.01)
    assert outlook(measured).followed is None
    assert outlook({"N": N, "X": measured["X"]}, c_cpu=4).followed is not None


def test_a_throughput_that_falls_is_not_that_of_a_closed_system():
    measured = made(0.01)
    X = measured["X"] * np.array([1, 1, 1, 1, 0.7, 0.5])
    assert follow(N, measured["X"], {"R": measured["R"]}, c_cpu=4) is not None
    assert follow(N, X, {"R": N / X - 1.0}, c_cpu=4) is None


def test_a_system_that_a_test_rejects_is_not_followed():
    """Response times that stay the same until throughput stops at once: no queue does this."""
    loads = np.array([10.0, 20, 40, 60, 80, 90, 100, 110, 120, 140, 160, 200, 240, 300])
    X = np.minimum(loads, 100.0)
    assert follow(loads, X, {"R": loads / X - 0.5}, c_cpu=1) is None


def test_two_unknown_numbers_of_servers_are_no_system():
    X = made(0.01)["X"]
    assert follow(N, X, {"U_cpu": X / 140, "U_disk": X / 200}, c_net=1) is None


def test_less_is_followed_where_the_interval_is_wider():
    """All at one doubling where it is narrow, half where it is half as wide again, then none."""
    found = Followed(face=None, last=100.0, widths=np.array([1.0, 1.5, 2.0]) * NARROW)
    at = 100 * np.array([1.0, 2.0**0.5, 2.0, 4.0, 16.0, 64.0])
    assert found.share(at) == pytest.approx([0, 0.5, 1, 0.5, 0, 0])


def test_a_forecast_begins_at_the_last_point_whatever_it_follows():
    measured = made(0.03)
    seen = outlook(measured, c_cpu=4)
    assert seen.followed is not None
    near = np.array([300 * (1 + 1e-9)])
    assert np.exp(seen.middle(near)) == pytest.approx(measured["X"][-1])
    alone = Outlook(seen.trend)
    assert alone.middle(near) == pytest.approx(seen.middle(near))

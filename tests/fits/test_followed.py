"""Forecasts that follow a closed system, against the system that made the measurements."""

import numpy as np
import pytest

from nummodel.fits import forecast, largest_load
from nummodel.fits._forecast import AVERAGE, WORST, outlook, width
from nummodel.models import networks
from nummodel.records import data

N = np.array([10.0, 20, 40, 80, 160, 300])
STATIONS = [networks.queue(0.03, 4), networks.queue(0.005)]


def made(noise=0.01, seed=1):
    """Four processors of 30 ms, a lock of 5 ms, and users who think for a second."""
    solved = networks.solve(STATIONS, N.astype(int), 1.0)
    scatter = np.exp(noise * np.random.default_rng(seed).standard_normal((2, len(N))))
    return {"N": N, "X": solved.X * scatter[0], "R": solved.R * scatter[1]}


def follows(columns, **known):
    return outlook(columns, known).followed is not None


def test_a_closed_system_is_forecast_by_its_law():
    at = np.array([310, 600, 1200])
    truth = networks.solve(STATIONS, at, 1.0)
    table, alone = forecast(made(), at, c_cpu=4), forecast(made(), at)
    assert table.X.to_numpy() == pytest.approx(truth.X, rel=0.01)
    assert table.R.to_numpy() == pytest.approx(truth.R, rel=0.02)
    assert (abs(table.X / truth.X - 1) < abs(alone.X / truth.X - 1)).all()
    assert (table.low < truth.X).all() and (truth.X < table.high).all()
    most = np.arange(300, 1200)[networks.solve(STATIONS, np.arange(300, 1200), 1.0).R <= 3][-1]
    assert largest_load(made(), R=3.0, c_cpu=4)[0] == pytest.approx(most, rel=0.01)


def test_the_width_remains_that_of_forecasts_that_followed_no_law():
    """Below the middle; above it, bounds on X cut more or less off."""
    table, alone = forecast(made(), [600], c_cpu=4), forecast(made(), [600])
    assert table.low[0] / table.X[0] == pytest.approx(alone.low[0] / alone.X[0])


def test_throughput_rises_as_that_of_the_system_and_never_faster_than_in_proportion():
    loads = np.geomspace(301, 4800, 200)
    every = [outlook(made(0.05, seed), {"c_cpu": 4}) for seed in range(6)]
    some = [forecast(seen, loads).X.to_numpy() for seen in every if seen.followed]
    assert len(some) > 3
    for X in some:
        assert (np.diff(X) > -1e-9 * X[1:]).all() and (np.diff(X / loads) < 0).all()


@pytest.mark.parametrize(
    ("known", "columns"),
    [
        ({}, {}),
        ({"Z": 1.0}, {}),
        ({"c_lock": 1}, {}),
        ({"c_db": 4}, {}),
        ({"c_disk": 1}, {"U_cpu": N / 1000, "U_disk": N / 1000}),
        ({"c_cpu": 4}, {"R": np.where(N < 20, np.nan, made()["R"])}),
    ],
)
def test_nothing_is_followed_unless_all_stations_are_known(known, columns):
    assert not follows(made() | columns, **known)


@pytest.mark.slow
def test_what_is_known_is_followed_with_each_selection_of_columns():
    solved = networks.solve(STATIONS, N.astype(int), 1.0)
    measured = made()
    X, R, U = {"N": N, "X": measured["X"]}, {"R": measured["R"]}, {"U_cpu": solved.rho[0]}
    device = {"U_disk": solved.rho[1]}  # which has one server
    for columns in (X, X | R, X | U, X | R | U, X | R | device):
        assert follows(columns, c_cpu=4)


@pytest.mark.parametrize("last", [(0.93, 0.93), (1.08, 1.08), (1.0, 0.8)])
def test_a_system_that_misses_the_last_throughputs_is_not_followed(last):
    """Without R, so that think time and demands remain free to meet the first loads."""
    measured = made(0.002)
    X = measured["X"] * np.array([1, 1, 1, 1, *last])
    fitted = outlook({"N": N, "X": measured["X"]}, {"c_cpu": 4}).followed
    off = np.log(X / fitted.at(N))[4:]
    assert abs(off.mean()) > AVERAGE or abs(off).max() > WORST
    assert outlook({"N": N, "X": X}, {"c_cpu": 4}, fitted).followed is None


def test_a_system_that_a_test_rejects_is_not_followed():
    """Response times that stay the same until throughput stops at once: no queue does this."""
    loads = np.array([10.0, 20, 40, 60, 80, 90, 100, 110, 120, 140, 160, 200, 240, 300])
    X = np.minimum(loads, 100.0)
    assert not follows({"N": loads, "X": X, "R": loads / X - 0.5}, c_cpu=1)


def test_few_loads_are_met_by_any_system():
    few = {name: values[[0, 2, 4, 5]] for name, values in made().items()}
    assert not follows(few, c_cpu=4)
    five = {name: values[[0, 2, 3, 4, 5]] for name, values in made().items()}
    assert follows(five, c_cpu=4)


def test_a_ceiling_that_is_not_in_sight_is_not_followed():
    """Ten users of 37 ms each second keep no station busy: any demand at the lock may be true."""
    loads = np.array([1.0, 2, 4, 6, 8, 10])
    rng = np.random.default_rng(0)
    X = networks.solve(STATIONS, loads.astype(int), 1.0).X * np.exp(0.03 * rng.standard_normal(6))
    assert not follows({"N": loads, "X": X}, c_cpu=4)


def test_the_width_of_the_curve_is_that_of_its_interval():
    """Where errors are small, slopes give what a profile gives."""
    measured, at = made(1e-3), np.array([600.0])
    found = outlook({"N": N, "X": measured["X"]}, {"c_cpu": 4}).followed
    curve = found.curve(at)
    assert width(found, at) == pytest.approx(np.log(curve.high / curve.low), rel=0.1)


def test_where_a_fall_is_seen_no_system_is_followed():
    """The queries of MySQL fell over the last five loads, by 10 %, and no closed system falls."""
    rows = data.load("mysql56")
    columns = {"N": rows.N.to_numpy(float), "X": rows.X.to_numpy(float)}
    assert not follows(columns, c_cpu=4)
    before = {name: values[:5] for name, values in columns.items()}
    assert follows(before, c_cpu=4)

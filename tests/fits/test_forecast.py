"""Forecasts beyond the last load, against algebra and against curves that went on."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nummodel.errors import InputError
from nummodel.fits import chance, forecast, largest_load
from nummodel.fits._forecast import SPREAD, trend
from nummodel.records import data

N = np.array([1.0, 2, 4, 8, 16])
RISING = {"N": N, "X": np.array([100.0, 195, 370, 650, 900])}


def middle(columns, at):
    return forecast(columns, at).X.to_numpy()


def test_the_middle_leaves_the_last_point_with_its_slope_and_bends_to_a_ceiling():
    """X = a N / (1 + (N/b)^3)^(1/3) has the ceiling a b, and the slope 1/(1 + (N/b)^3)."""
    slope = np.log(900 / 650) / np.log(2)
    near = 16 * (1 + 1e-6)
    rise = np.log(middle(RISING, [near])[0] / 900) / np.log(near / 16)
    assert rise == pytest.approx(slope, rel=1e-4)
    b = 16 * (slope / (1 - slope)) ** (1 / 3)
    ceiling = 900 / 16 * (1 + (16 / b) ** 3) ** (1 / 3) * b
    assert middle(RISING, [1e6])[0] == pytest.approx(ceiling, rel=1e-6)


def test_a_fall_goes_on_for_as_long_again():
    """Each doubling takes half as much of ln X as the one before: half of the last fall at first,
    and all of it in the end.
    """
    falling = {"N": N, "X": np.array([100.0, 195, 370, 650, 520])}
    fall = 520 / 650
    expected = [520 * fall**share for share in (0.5, 0.75, 1.0)]
    assert middle(falling, [32, 64, 16 * 2.0**50]) == pytest.approx(expected)


@given(st.lists(st.floats(1, 1000), min_size=2, max_size=7), st.floats(1.01, 100))
def test_intervals_are_in_order_wherever_points_lie(X, further):
    columns = {"N": 2.0 ** np.arange(len(X)), "X": X}
    at = [columns["N"][-1] * further]
    wide, narrow = forecast(columns, at).iloc[0], forecast(columns, at, 0.8).iloc[0]
    assert 0 < wide.low <= narrow.low <= narrow.X <= narrow.high <= wide.high
    assert wide.high <= at[0] * max(X / columns["N"]) * (1 + 1e-9)


def test_intervals_grow_with_the_distance():
    table = forecast(RISING, [17, 32, 64, 128])
    assert (np.diff(table.high / table.low) > 0).all() and table.high[0] / table.low[0] < 1.4


def test_a_level_beyond_the_calibrated_ones_is_wider():
    tables = [forecast(RISING, [64], level) for level in (0.5, 0.8, 0.95, 0.99, 0.999)]
    assert (np.diff([t.high[0] / t.low[0] for t in tables]) > 0).all()


def test_points_that_lie_close_together_share_a_slope():
    """The last doubling makes the slope, and not the noise of its last two points."""
    dense = np.arange(1.0, 17)
    noisy = dense**0.7 * np.exp(0.01 * (-1) ** np.arange(16))
    assert trend(dense, noisy).slope == pytest.approx(0.7, abs=0.02)
    assert trend(dense, noisy).before == pytest.approx(0.7, abs=0.05)


def test_repeated_runs_are_one_point_by_their_geometric_mean():
    twice = {"N": np.tile(N, 2), "X": np.concatenate([RISING["X"] / 1.2, RISING["X"] * 1.2])}
    assert forecast(twice, [64]).to_numpy() == pytest.approx(forecast(RISING, [64]).to_numpy())


def test_busy_processors_leave_little_room():
    idle = forecast(RISING, [64]).high[0]
    busy = forecast(RISING | {"U_cpu": [0.1, 0.2, 0.4, 0.6, 0.9]}, [64]).high[0]
    assert busy == pytest.approx(900 / 0.9 * 1.06) and idle > busy


def test_response_times_follow_from_the_number_of_users():
    R = N / RISING["X"] - 0.004
    table = forecast(RISING | {"R": R}, [32, 64])
    for time, X in (("R", "X"), ("R_low", "high"), ("R_high", "low")):
        assert table[time].to_numpy() == pytest.approx((table.N / table[X] - 0.004).to_numpy())
    known = forecast(RISING, [32, 64], Z=0.004)
    assert known.to_numpy() == pytest.approx(table.to_numpy())
    assert [*forecast(RISING, [32])] == ["N", "X", "low", "high"]


def test_a_chance_is_the_level_that_ends_at_the_target():
    for level in (0.5, 0.8, 0.95):
        row = forecast(RISING, [64], level, Z=0.0).iloc[0]
        for side, target in (((1 + level) / 2, row.low), ((1 - level) / 2, row.high)):
            assert chance(RISING, [64], X=target) == pytest.approx([side], abs=2e-3)
        assert chance(RISING, [64], R=row.R_high, Z=0.0) == pytest.approx(
            [(1 + level) / 2], abs=2e-3
        )
    assert chance(RISING, [64], X=1.0) == 1 and chance(RISING, [64], X=1e9) == 0


def test_the_largest_load_meets_the_target():
    load, low, high = largest_load(RISING, R=0.1, Z=0.0)
    assert 16 < low < load < high
    assert forecast(RISING, [load], Z=0.0).R[0] == pytest.approx(0.1)
    assert forecast(RISING, [low], Z=0.0).R_high[0] == pytest.approx(0.1)
    assert forecast(RISING, [high], Z=0.0).R_low[0] == pytest.approx(0.1)
    assert largest_load(RISING, R=0.001, Z=0.0) == (16.0, 16.0, 16.0)


@pytest.mark.parametrize(
    "columns, at, more, message",
    [
        (RISING, [8], {}, "beyond the last one, 16"),
        (RISING, [32], {"c_cpu": 4, "S": 1.0}, "takes no S"),
        ({"N": [4, 4], "X": [1, 2]}, [8], {}, "two loads at least"),
        ({"N": [1, 2], "X": [1, 0]}, [8], {}, "positive throughputs"),
        ({"N": [1, 2], "X": [1, 2, 3]}, [8], {}, "as many values"),
        ({"N": [1, 2]}, [8], {}, "columns N and X"),
    ],
)
def test_what_cannot_be_forecast_is_refused(columns, at, more, message):
    with pytest.raises(InputError, match=message):
        forecast(columns, at, **more)


def test_what_is_not_known_of_response_times_is_refused():
    with pytest.raises(InputError, match="expected a column R"):
        largest_load(RISING, R=0.1)
    with pytest.raises(InputError, match="expected a column R"):
        chance(RISING, [32], R=0.1)
    with pytest.raises(ValueError, match="either X or R"):
        chance(RISING, [32])
    with pytest.raises(ValueError, match="level is 95"):
        forecast(RISING, [32], 95)


def test_as_many_measurements_lie_below_each_quantile_as_it_says():
    """On the curves that calibrated them, this is what quantiles are. Cut after 60 % only, they
    need not be exact.
    """
    rows, shares = data.load("scaling-curves"), {0.8: [], 0.95: []}
    for _, of_source in rows.groupby(rows.source.str.partition("@")[0]):
        for level, held in shares.items():
            inside = []
            for _, curve in of_source.groupby("curve"):
                at = curve.groupby("N").X.apply(lambda X: np.exp(np.log(X).mean()))
                used = max(3, round(0.6 * len(at)))
                first, later = at.iloc[:used], at.iloc[used:]
                if len(later):
                    table = forecast({"N": first.index, "X": first}, later.index, level)
                    inside.append(
                        np.mean((table.low <= later.values) & (later.values <= table.high))
                    )
            held.append(np.mean(inside))
    assert np.mean(shares[0.8]) == pytest.approx(0.8, abs=0.08)
    assert np.mean(shares[0.95]) == pytest.approx(0.95, abs=0.04)
    assert np.shape(SPREAD) == (8, 5)

"""Forecasts beyond the last load, against algebra and against curves that went on."""

import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nummodel.answers.ahead import CHECKED, FELL
from nummodel.errors import InputError
from nummodel.fits import chance, forecast, largest_load, smallest_load
from nummodel.fits._forecast import SPREAD, trend
from nummodel.records import data

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
import forecast as contest

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


@given(st.lists(st.floats(1, 1000), min_size=3, max_size=7), st.floats(1.01, 100))
def test_intervals_are_in_order_wherever_points_lie(X, further):
    columns = {"N": 2.0 ** np.arange(len(X)), "X": X}
    at = [columns["N"][-1] * further]
    wide, narrow = forecast(columns, at).iloc[0], forecast(columns, at, 0.8).iloc[0]
    assert 0 < wide.low <= narrow.low <= narrow.X <= narrow.high <= wide.high
    assert wide.high <= at[0] * max(X / columns["N"]) * (1 + 1e-9)


def test_intervals_grow_with_the_distance():
    table = forecast(RISING, [17, 32, 64, 128])
    assert (np.diff(table.high / table.low) > 0).all()


def test_even_at_the_last_load_there_are_the_errors_of_two_measurements():
    """Without a bound nearby, the width there is as that of 0.15 doublings, and not none."""
    falling = {"N": N, "X": np.array([100.0, 195, 370, 650, 300])}
    last, double = (np.log(r.high / r.low) for r in forecast(falling, [16.0001, 32]).itertuples())
    assert last / double == pytest.approx(np.sqrt(0.15 / 1.15), rel=5e-3)


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
    """Nine tenths busy at 900 leave room for 1,000, and for 6 % more, as they have errors."""
    busy = RISING | {"U_cpu": [0.1, 0.2, 0.4, 0.6, 0.9]}
    table, free = forecast(busy, [64]).iloc[0], forecast(RISING, [64]).iloc[0]
    assert free.X > 1000 and table.X == pytest.approx(1000) and 1001 < table.high < 1060
    assert table.low / table.X == pytest.approx(free.low / free.X)
    assert chance(busy, [64], X=1000) == pytest.approx(0.5, abs=0.003)
    assert chance(busy, [64], X=1060) < 0.001 and chance(busy, [64], X=1060.1) == 0
    more = forecast(busy, [64], 0.5).high[0], table.high
    levels = chance(busy, [64], X=more[0])[0], chance(busy, [64], X=more[1])[0]
    assert levels == pytest.approx((0.25, 0.025), abs=0.003)


@pytest.mark.parametrize("X", [100 * N, [100.0, 195, 370, 650, 900], [100.0, 195, 370, 650, 520]])
@pytest.mark.parametrize("U", [{}, {"U_cpu": [0.1, 0.2, 0.4, 0.7, 0.99]}])
def test_a_forecast_begins_at_the_last_point(X, U):
    """Bounds do not tear it away, and what rises is not told to fall."""
    columns = {"N": N, "X": X} | U
    near, *later = middle(columns, [16 * (1 + 1e-9), 20, 64])
    assert near == pytest.approx(X[-1])
    assert X[-1] < X[-2] or later == sorted([near, *later])[1:]


def test_utilisation_never_rules_out_what_was_measured():
    fell = {"N": N, "X": [100, 200, 400, 900, 520], "U_cpu": [0.1, 0.2, 0.4, 0.9, 0.95]}
    assert trend(N, np.array(fell["X"]), np.array(fell["U_cpu"])).room == pytest.approx(900)
    full = forecast(RISING | {"U_cpu": [0.1, 0.2, 0.4, 0.6, 1.02]}, [64])
    assert full.high[0] <= 900 * 1.06
    missing = forecast(RISING | {"U_cpu": [0.1, np.nan, np.nan, np.nan, np.nan]}, [64])
    assert missing.equals(forecast(RISING, [64]))


def test_the_smaller_of_two_slopes_goes_on():
    bent = {"N": N, "X": 100 * np.array([1, 2, 4, 5, 9.0])}
    straight = {
        "N": N,
        "X": 900 / 9 * np.array([1, 2, 4, 5, 9.0])[-1] * (N / 16) ** (np.log2(5 / 4)),
    }
    assert middle(bent, [64])[0] == pytest.approx(middle(straight, [64])[0])


def test_a_steep_fall_is_less_sure_than_a_plateau():
    flat, falling = (
        forecast({"N": N, "X": [100.0, 200, 300, 300, last]}, [32]).iloc[0] for last in (300, 200)
    )
    assert np.log(falling.high / falling.low) > 1.2 * np.log(flat.high / flat.low)


def test_two_loads_that_nearly_agree_make_no_slope():
    """A dip of 1 % between two loads that lie close together is noise."""
    dip = {"N": [*N, 16.2], "X": [*RISING["X"], 891]}
    assert middle(dip, [64])[0] == pytest.approx(middle(RISING, [64])[0], rel=0.1)


def test_response_times_follow_from_the_number_of_users():
    R = N / RISING["X"] - 0.004
    table = forecast(RISING | {"R": R}, [32, 64])
    for time, X in (("R", "X"), ("R_low", "high"), ("R_high", "low")):
        assert table[time].to_numpy() == pytest.approx((table.N / table[X] - 0.004).to_numpy())
    partly = forecast(RISING | {"R": np.where(N < 4, np.nan, R)}, [32, 64])
    assert partly.to_numpy() == pytest.approx(table.to_numpy())
    odd = forecast(RISING | {"R": R + np.array([0, 0, 0, 0, 0.001])}, [32, 64])
    assert odd.to_numpy() == pytest.approx(table.to_numpy())  # the median does not mind one point
    assert (forecast(RISING | {"R": N / RISING["X"] + 0.001}, [32]).R > 0).all()
    known = forecast(RISING, [32, 64], Z=0.004)
    assert known.to_numpy() == pytest.approx(table.to_numpy())
    none = RISING | {"R": np.full(5, np.nan)}
    assert [*forecast(RISING, [32])] == [*forecast(none, [32])] == ["N", "X", "low", "high"]


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
    load, low, high = largest_load(RISING, R=0.05, Z=0.0)
    assert 16 < low < load < high
    assert forecast(RISING, [load], Z=0.0).R[0] == pytest.approx(0.05)
    assert forecast(RISING, [low], Z=0.0).R_high[0] == pytest.approx(0.05)
    assert forecast(RISING, [high], Z=0.0).R_low[0] == pytest.approx(0.05)
    narrow = largest_load(RISING, R=0.05, level=0.5, Z=0.0)
    assert low < narrow[1] < load < narrow[2] < high
    assert largest_load(RISING, R=1e6, Z=0.0) == (np.inf, np.inf, np.inf)
    near = largest_load(RISING, R=0.018, Z=0.0)  # just above the last one, 16/900
    assert 16 <= near[1] < 16.1 and near[1] < near[0] < near[2] and near[2] > 20
    with pytest.raises(InputError, match=r"R = N/X - Z is 0\.01778 at the last load, 16, expected"):
        largest_load(RISING, R=0.0177, Z=0.0)


@pytest.mark.parametrize(
    "columns, at, more, message",
    [
        (RISING, [8], {}, "beyond the last one, 16"),
        (RISING, [32], {"c_cpu": 4, "S": 1.0}, "takes no S"),
        (
            {"N": [2, 4, 4], "X": [1, 2, 2]},
            [8],
            {},
            "three different loads at least, and there are 2",
        ),
        ({"N": [1, 2, 4], "X": [1, 2, 0]}, [8], {}, "cannot use X, expected a column of positive"),
        ({"N": [0, 2, 4], "X": [1, 2, 3]}, [8], {}, "cannot use N"),
        ({"N": [1, 2, 4], "X": [1, 2, np.nan]}, [8], {}, "cannot use X"),
        ({"N": [1, 2], "X": [1, 2, 3]}, [8], {}, "as many values"),
        ({"N": [1, 2]}, [8], {}, "columns N and X"),
        (RISING, [np.inf], {}, "cannot use at"),
        (RISING, [[32]], {}, "cannot use at"),
        (RISING, [32], {"Z": -1.0}, "cannot use Z"),
        (RISING, [32], {"Z": "1"}, "Z is '1', expected a number"),
        (RISING | {"U_cpu": [10, 20, 40, 60, 90]}, [32], {}, "U_cpu is 90, expected a share"),
        (RISING | {"R": 20 * N / RISING["X"]}, [32], {}, "X R is larger than N"),
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
    with pytest.raises(ValueError, match="one X or one R"):
        chance(RISING, [32])
    with pytest.raises(InputError, match="expected a larger R"):
        largest_load(RISING, R=np.nan, Z=0.0)
    with pytest.raises(ValueError, match="level is 95"):
        forecast(RISING, [32], 95)


def test_intervals_hold_as_many_later_measurements_as_they_say():
    """On the curves that calibrated them, cut after 60 % of the loads: of each source and side."""
    rows, found = data.load("scaling-curves"), []
    for _, of_source in rows.groupby(rows.source.str.partition("@")[0]):
        outside = []
        for _, curve in of_source.groupby("curve"):
            at = curve.groupby("N").X.apply(lambda X: np.exp(np.log(X).mean()))
            used = max(3, round(0.6 * len(at)))
            first, later = at.iloc[:used], at.iloc[used:]
            for level in (0.95, 0.8) if len(later) else ():
                table = forecast({"N": first.index, "X": first}, later.index, level)
                below, above = later.values < table.low, later.values > table.high
                outside.append([level, below.mean(), above.mean()])
        found += [
            np.mean([o[1:] for o in outside if o[0] == level], axis=0) for level in (0.95, 0.8)
        ]
    below, above = np.array(found).reshape(-1, 2, 2).mean(axis=0).T
    assert below == pytest.approx([0.025, 0.1], abs=0.03) and max(below[0], above[0]) < 0.05
    assert above == pytest.approx([0.025, 0.1], abs=0.06)


def test_what_forecasts_were_checked_on_is_counted():
    """The servers of one machine are two programs on another machine."""
    many, servers = data.load("scaling-curves"), contest.servers()
    curves = many["curve"].nunique() + len(servers)
    programs = many["program"].nunique() + len({curve.family for curve in servers})
    machines = many["machine"].nunique() + 1
    counted = f"{curves} curves of {programs} programs on {machines} machines"
    assert CHECKED.startswith(f"Checked on {counted};")


def test_how_many_curves_fell_to_less_than_half_is_counted():
    """From their third load on, and as far as loads are printed in whole numbers. A curve had
    been flat if its throughput was within 10 % of that at the load before.
    """
    every = [(c.N, c.X) for c in contest.many() + contest.servers()]
    fell, flat, both = set(), set(), set()
    for which, (N, X) in enumerate(every):
        for i in range(2, len(N)):
            later = [X[j] for j in range(i + 1, len(N)) if N[j] <= 2.05 * N[i]]
            same = abs(X[i] / X[i - 1] - 1) < 0.1
            flat |= {which} if later and same else set()
            if later and min(later) < X[i] / 2:
                fell.add(which)
                both |= {which} if same else set()
    told = f"on {len(fell)} of {len(every)} curves throughput fell to less than half within one"
    assert told in FELL
    assert f"of the {len(flat)} curves that had been flat before, {len(both)} fell so" in FELL


@pytest.mark.slow
def test_the_constants_are_what_the_curves_say():
    """The quantile regression of `benchmarks/forecast.py`, run again."""
    found = contest.calibrate(
        contest.cuts(contest.many(), contest.everywhere)
        + contest.cuts(contest.servers(), contest.everywhere)
    )
    assert np.allclose(found, SPREAD, atol=6e-4)


def test_the_smallest_load_meets_the_target():
    """Each end of its interval is the first load at which an end of the forecast reaches it."""
    load, low, high = smallest_load(RISING, X=1060, level=0.5)
    assert 16 < low < load < high
    assert middle(RISING, [load])[0] == pytest.approx(1060)
    assert forecast(RISING, [low], 0.5).high[0] == pytest.approx(1060)
    assert np.isinf(high) and (forecast(RISING, [32, 64, 256], 0.5).low < 1060).all()
    assert smallest_load(RISING, X=901)[1] == 16
    assert np.isinf(smallest_load(RISING, X=1e5)).all()
    for reached in (900.0, 100.0, np.inf, np.nan):
        with pytest.raises(InputError, match="X is 900 at the last load, 16, expected a larger X"):
            smallest_load(RISING, X=reached)


def test_a_think_time_that_leaves_no_time_is_refused():
    """16 users with 900 transactions a second think for 16/900 = 0.01778 s at most."""
    assert forecast(RISING, [32], Z=0.008).R[0] > 0
    with pytest.raises(InputError, match=r"Z is 0\.02, but N/X is as short as 0\.01, expected"):
        forecast(RISING, [32], Z=0.02)


@pytest.mark.parametrize("X", [[100, 195, 370, 650, 900], [100, 195, 370, 650, 520]])
def test_the_end_is_what_the_middle_comes_to(X):
    found = trend(N, np.array(X, float))
    assert np.exp(found.middle(np.array([1e30])))[0] == pytest.approx(found.end, rel=1e-6)

"""Admissible sets: areas and ends known by geometry, measurements counted one by one."""

import numpy as np
import pandas as pd
import pytest

from nummodel import admissible

SQUARE = {"x": (0.0, 1.0), "y": (0.0, 1.0)}


def test_a_share_of_the_points_as_large_as_the_set():
    """A quarter of a disc: pi/4 of the square."""
    members = admissible.sample(SQUARE, lambda p: p["x"] ** 2 + p["y"] ** 2 < 1, size=100_000)
    assert len(members) == pytest.approx(np.pi / 4 * admissible.BATCH, rel=1e-3)
    assert members["x"].mean() == pytest.approx(4 / (3 * np.pi), abs=1e-3)


def test_reach_finds_the_corners():
    def half(p):
        return p["x"] + p["y"] < 0.5

    members = admissible.sample(SQUARE, half)
    for quantity, ends in (
        (lambda p: p["x"], (0, 0.5)),
        (lambda p: p["x"] - p["y"], (-0.5, 0.5)),
        (lambda p: p["x"] * p["y"], (0, 1 / 16)),
    ):
        assert admissible.reach(quantity, members, SQUARE, half) == pytest.approx(ends, abs=1e-3)


@pytest.mark.parametrize("unknowns", [3, 6, 9])
def test_reach_in_a_thin_set_of_many_unknowns(unknowns):
    """Shares of a whole, known to a percent: each may be all of it; even ones have most product."""
    ranges = {f"x{i}": (0.0, 1.0) for i in range(unknowns)}

    def whole(p):
        return abs(sum(p[name] for name in ranges) - 1) < 0.01

    def product(p):
        return np.prod([p[name] for name in ranges], axis=0)

    members = admissible.sample(ranges, whole, size=20)
    low, high = admissible.reach(lambda p: p["x0"], members, ranges, whole)
    assert low == 0 and high == pytest.approx(1, abs=0.005)  # 1.01 is beyond the range
    most = admissible.reach(product, members, ranges, whole)[1]
    assert most == pytest.approx((1.01 / unknowns) ** unknowns, rel=0.01)


def test_every_member_meets_the_condition_and_a_seed_gives_the_same_ones():
    def thin(p):
        return abs(p["x"] - p["y"]) < 1e-3

    one, again = (admissible.sample(SQUARE, thin, size=500) for _ in range(2))
    assert len(one) >= 500 and thin(one).all() and one.equals(again)


def test_left_by_counting():
    values = np.random.default_rng(1).normal(size=300)
    near = np.abs(values[:, None] - values) <= 0.2
    assert admissible.left(values, 0.2) == pytest.approx(near.mean())


def test_what_measurements_leave():
    values = np.linspace(0, 1, 1001)
    assert admissible.left(values, 0.0) == pytest.approx(1 / 1001)
    assert admissible.left(values, 1.0) == 1.0
    assert admissible.left(np.full(10, 3.0), 0.0) == 1.0
    # Uniform on (0, 1): 2h, less what the ends cut off, h^2.
    assert admissible.left(values, 0.1) == pytest.approx(0.2 - 0.01, abs=2e-3)


def test_narrowed_by_counting():
    rng = np.random.default_rng(4)
    values, answer = rng.normal(size=200), rng.normal(size=200)
    near = np.abs(values[:, None] - values) <= 0.3
    widths = [np.ptp(answer[row]) for row in near]
    assert admissible.narrowed(values, 0.3, answer) == pytest.approx(
        np.mean(widths) / np.ptp(answer)
    )
    assert admissible.narrowed(answer, 0.0, answer) == 0


@pytest.mark.parametrize(
    "call, named",
    [
        (lambda: admissible.sample({"x": (1, 0)}, lambda p: p["x"] > 0), "ranges is"),
        (lambda: admissible.sample({"x": (0, np.inf)}, lambda p: p["x"] > 0), "ranges is"),
        (lambda: admissible.narrowed([1.0], -1.0, [1.0]), "half is -1"),
        (lambda: admissible.reach(len, pd.DataFrame({"x": []}), SQUARE, len), "members are none"),
        (lambda: admissible.left([], 0.1), "values"),
        (lambda: admissible.left([np.nan], 0.1), "values"),
        (lambda: admissible.left([1.0], np.nan), "half is nan"),
        (lambda: admissible.left([1.0], -1.0), "half is -1"),
    ],
)
def test_bad_input_is_named(call, named):
    with pytest.raises(ValueError, match=named):
        call()


def test_a_contradiction_is_told(monkeypatch):
    monkeypatch.setattr(admissible, "MOST", 2 * admissible.BATCH)
    with pytest.raises(ValueError, match="none of"):
        admissible.sample(SQUARE, lambda p: p["x"] > 2)

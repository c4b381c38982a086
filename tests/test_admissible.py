"""Admissible sets: areas and ends known by geometry, measurements counted one by one."""

import numpy as np
import pytest

from nummodel import admissible

SQUARE = {"x": (0.0, 1.0), "y": (0.0, 1.0)}


def test_a_share_of_the_points_as_large_as_the_set():
    """A quarter of a disc: pi/4 of the square."""
    members = admissible.sample(SQUARE, lambda p: p["x"] ** 2 + p["y"] ** 2 < 1, size=100_000)
    assert len(members) == pytest.approx(np.pi / 4 * admissible.BATCH, rel=1e-3)
    assert members["x"].mean() == pytest.approx(4 / (3 * np.pi), abs=1e-3)


def test_ends_come_from_inside_and_close():
    members = admissible.sample(SQUARE, lambda p: p["x"] + p["y"] < 0.5)
    for name in SQUARE:
        low, high = admissible.interval(members[name])
        assert 0 <= low < 0.001 and 0.495 < high < 0.5
    low, high = admissible.interval(members["x"] - members["y"])
    assert -0.5 < low < -0.49 and 0.49 < high < 0.5


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


@pytest.mark.parametrize(
    "call, named",
    [
        (lambda: admissible.sample({"x": (1, 0)}, lambda p: p["x"] > 0), "ranges is"),
        (lambda: admissible.sample({"x": (0, np.inf)}, lambda p: p["x"] > 0), "ranges is"),
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

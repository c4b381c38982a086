"""Admissible sets: areas, ends and widths known by geometry; measurements counted one by one."""

import numpy as np
import pandas as pd
import pytest

from nummodel.fits import admissible

SQUARE = {"x": (0.0, 1.0), "y": (0.0, 1.0)}
ROUND = {"x": (-1.0, 1.0), "y": (-1.0, 1.0)}


def x(p):
    return p["x"]


def y(p):
    return p["y"]


def anywhere(p):
    return p["x"] >= 0


def half(p):
    return p["x"] + p["y"] < 0.5


def disc(p):
    return p["x"] ** 2 + p["y"] ** 2 <= 1


def test_a_share_of_the_points_as_large_as_the_set():
    """A quarter of a disc: pi/4 of the square, to four standard deviations."""
    members, points = admissible.sample(SQUARE, disc, size=100_000), 4 * admissible.BATCH
    assert len(members) == pytest.approx(np.pi / 4 * points, rel=4 * 0.52 / points**0.5)
    assert members["x"].mean() == pytest.approx(4 / (3 * np.pi), abs=4 * 0.27 / points**0.5)


def test_a_sample_has_its_size_and_ends_with_a_batch():
    one, many = (len(admissible.sample(SQUARE, anywhere, size)) for size in (1, 100_000))
    assert one == admissible.BATCH and many == 100_000 // one * one + one


def test_reach_finds_the_corners():
    members = admissible.sample(SQUARE, half)
    for quantity, ends in (
        (x, (0, 0.5)),
        (lambda p: p["x"] - p["y"], (-0.5, 0.5)),
        (lambda p: p["x"] * p["y"], (0, 1 / 16)),
    ):
        assert admissible.reach(quantity, members, SQUARE, half) == pytest.approx(ends, abs=1e-3)


def test_several_quantities_at_once():
    members = admissible.sample(ROUND, disc)
    low, high = admissible.reach(
        lambda p: np.column_stack([p["x"], p["x"] + p["y"], p["y"] ** 2]), members, ROUND, disc
    )
    assert low == pytest.approx([-1, -(2**0.5), 0], abs=1e-3)
    assert high == pytest.approx([1, 2**0.5, 1], abs=1e-3)


def test_an_unknown_may_be_known():
    ranges = SQUARE | {"y": (0.25, 0.25)}
    members = admissible.sample(ranges, half)
    assert (members["y"] == 0.25).all()
    assert admissible.reach(x, members, ranges, half) == pytest.approx((0, 0.25), abs=1e-3)
    assert admissible.reach(y, members, ranges, half) == (0.25, 0.25)


def test_reach_begins_with_one_member():
    members = admissible.sample(SQUARE, half).head(1)
    assert admissible.reach(x, members, SQUARE, half) == pytest.approx((0, 0.5), abs=1e-3)


@pytest.mark.parametrize("unknowns", [3, 6, 9])
def test_reach_in_a_thin_set_of_many_unknowns(unknowns):
    """Shares of a whole, known to a percent: each may be all of it; even ones have most product."""
    ranges = {f"x{i}": (0.0, 1.0) for i in range(unknowns)}

    def whole(p):
        return abs(sum(p[name] for name in ranges) - 1) < 0.01

    def product(p):
        return np.prod([p[name] for name in ranges], axis=0)

    members = pd.DataFrame(np.full((1, unknowns), 1 / unknowns), columns=list(ranges))
    members = (
        pd.concat([members, admissible.sample(ranges, whole, 20)]) if unknowns < 9 else members
    )
    low, high = admissible.reach(lambda p: p["x0"], members, ranges, whole)
    assert low == 0 and high == pytest.approx(1, abs=0.005)  # 1.01 is beyond the range
    most = admissible.reach(product, members, ranges, whole)[1]
    assert most == pytest.approx((1.01 / unknowns) ** unknowns, rel=0.01)


def test_every_member_meets_the_condition_and_a_seed_gives_the_same_ones():
    def thin(p):
        return abs(p["x"] - p["y"]) < 1e-3

    one, again = (admissible.sample(SQUARE, thin, size=500) for _ in range(2))
    assert len(one) >= 500 and thin(one).all() and one.equals(again)


@pytest.mark.parametrize("h", [0.0, 0.1, 2.0])
def test_width_left_of_a_square(h):
    """Of x as much as the measurement tells, less what the ends cut off; y as it was."""
    members = admissible.sample(SQUARE, anywhere)
    both = admissible.narrowed(
        x, h, lambda p: np.column_stack([p["x"], p["y"]]), members, SQUARE, anywhere
    )
    truths = np.array([0.1, 0.3, 0.5, 0.7, 0.9])
    widths = np.minimum(truths + h, 1) - np.maximum(truths - h, 0)
    assert both[0] == pytest.approx(widths.mean(), abs=0.005)
    assert both[1] == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("h", [0.02, 0.2])
def test_width_left_of_a_disc(h):
    """What is left of y is the chord nearest to the middle that the measurement allows."""
    members = admissible.sample(ROUND, disc, size=100_000)
    levels = (np.arange(admissible.TRUTHS) + 0.5) / admissible.TRUTHS
    beyond = np.maximum(np.abs(np.quantile(members["x"], levels)) - h, 0)
    chords = np.sqrt(1 - beyond**2).mean()
    assert admissible.narrowed(x, h, y, members, ROUND, disc) == pytest.approx(chords, abs=0.005)


@pytest.mark.slow
def test_a_thin_set_that_a_measurement_makes_thinner():
    """Shares of a whole: with x0 known to be about t, any other is at most 1 - (t - h). What is
    found is no more than that, and 2 % less at most."""
    ranges = {f"x{i}": (0.0, 1.0) for i in range(5)}

    def whole(p):
        return abs(sum(p[name] for name in ranges) - 1) <= 0.002

    def first(p):
        return p["x0"]

    members = admissible.sample(ranges, whole, size=500)
    found = admissible.narrowed(first, 0.005, lambda p: p["x1"], members, ranges, whole)
    levels = (np.arange(admissible.TRUTHS) + 0.5) / admissible.TRUTHS
    truths = np.quantile(members["x0"], levels, method="closest_observation")
    most = np.minimum(1.002 - np.maximum(truths - 0.005, 0), 1).mean()
    assert 0.98 * most <= found <= most


MEMBERS = admissible.sample(SQUARE, half)
FIT = (MEMBERS, SQUARE, half)


@pytest.mark.parametrize(
    "call, named",
    [
        (lambda: admissible.sample({}, half), "ranges is {}"),
        (lambda: admissible.sample({"x": (1, 0)}, half), "ranges is .* low not above high"),
        (lambda: admissible.sample({"x": (0, np.inf)}, half), "ranges is"),
        (lambda: admissible.sample({"x": (0, np.nan)}, half), "ranges is"),
        (lambda: admissible.sample({"x": (0, 1, 2)}, half), "ranges is"),
        (lambda: admissible.sample({"x": ("a", 1)}, half), "ranges is"),
        (lambda: admissible.sample(SQUARE, half, size=0), "size is 0"),
        (lambda: admissible.sample(SQUARE, half, size=2.5), "size is 2.5"),
        (lambda: admissible.sample(SQUARE, half, size=np.nan), "size is nan"),
        (lambda: admissible.sample(SQUARE, x), "condition gives float64"),
        (lambda: admissible.sample(SQUARE, lambda p: True), "condition gives bool of shape"),
        (lambda: admissible.reach(x, MEMBERS[:0], SQUARE, half), "members has 0 rows"),
        (lambda: admissible.reach(x, MEMBERS[["x"]], SQUARE, half), "rows of x, expected"),
        (lambda: admissible.reach(x, MEMBERS - 1, SQUARE, half), "rows of x, y in range"),
        (lambda: admissible.reach(x, MEMBERS * np.nan, SQUARE, half), "rows of x, y in range"),
        (lambda: admissible.reach(x, MEMBERS + 0.5, SQUARE, half), "meet the condition"),
        (lambda: admissible.reach(x, MEMBERS, {}, half), "ranges is {}"),
        (lambda: admissible.reach(x, MEMBERS, SQUARE, x), "condition gives float64"),
        (lambda: admissible.reach(lambda p: p["x"] * np.nan, *FIT), "quantity is nan"),
        (lambda: admissible.reach(lambda p: 1.0, *FIT), "quantity has the shape"),
        (lambda: admissible.reach(lambda p: p["x"][1:], *FIT), "quantity has the shape"),
        (lambda: admissible.narrowed(x, -1.0, y, *FIT), "half is -1"),
        (lambda: admissible.narrowed(x, np.nan, y, *FIT), "half is nan"),
        (lambda: admissible.narrowed(x, 0.1, lambda p: 0 * p["x"], *FIT), "quantity is the same"),
        (lambda: admissible.narrowed(x, 0.1, lambda p: np.nan * p["x"], *FIT), "quantity is nan"),
        (lambda: admissible.narrowed(lambda p: np.nan * p["x"], 0.1, y, *FIT), "measured is nan"),
        (lambda: admissible.narrowed(lambda p: p["x"][1:], 0.1, y, *FIT), "measured has the shape"),
        (
            lambda: admissible.narrowed(
                lambda p: np.column_stack([p["x"], p["y"]]), 0.1, y, *FIT
            ),
            "measured has the shape .*, 2.",
        ),
        (lambda: admissible.narrowed(x, 0.1, y, MEMBERS - 1, SQUARE, half), "members has"),
    ],
)  # fmt: skip
def test_bad_input_is_named(call, named):
    with pytest.raises(ValueError, match=named):
        call()


def test_a_contradiction_is_told(monkeypatch):
    monkeypatch.setattr(admissible, "MOST", 2 * admissible.BATCH)
    with pytest.raises(ValueError, match="condition: none of"):
        admissible.sample(SQUARE, lambda p: p["x"] > 2)

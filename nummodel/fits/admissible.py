"""What a document allows when it has fewer figures than there are unknowns: a set, not a value.

Each unknown has a range, and a condition says which combinations of them agree with the printed
figures. `sample` finds members of that set. `reach` finds the lowest and the highest value that a
quantity has in the set. `narrowed` says what share of the interval of a quantity would remain after
a further measurement, on average.

Two parts of a run add up to eight minutes, known to a tenth, and the second takes four at most:

>>> def agrees(x):
...     return abs(x["first"] + x["second"] - 8) < 0.1
>>> def first(x):
...     return x["first"]
>>> ranges = {"first": (0, 10), "second": (0, 4)}
>>> members = sample(ranges, agrees, size=2000)
>>> [round(end, 3) for end in reach(first, members, ranges, agrees)]
[3.9, 8.1]

Suppose that the first part is measured, and the measurement may be wrong by half a minute. Its
interval is then 1.0 minutes wide, less than a quarter of 4.2:

>>> round(narrowed(first, 0.5, first, members, ranges, agrees), 1)
0.2

Quantities and conditions are functions of columns: of a mapping with an array for each unknown.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from nummodel.arguments import count, numbers

if TYPE_CHECKING:
    import pandas as pd

Columns = Mapping[str, np.ndarray]
Ranges = Mapping[str, tuple[float, float]]

#: Points that are drawn at a time, and at most.
BATCH, MOST = 2**15, 2**24
#: Steps of a search, points tried in each step, and how many of them are kept for each end.
STEPS, TRIED, KEPT = 150, 1200, 40
#: Members whose value is taken for the true one, one after another.
TRUTHS = 5


def sample(
    ranges: Ranges, condition: Callable[[Columns], Any], size: int = 1000, seed: int = 2026
) -> "pd.DataFrame":
    """Members of the set: points drawn evenly from `ranges` that meet the `condition`.

    Points are drawn in batches until there are `size` members; all members of the last batch are
    returned as well. How they spread is no probability: that every point of the ranges counts alike
    is a convention.

    Raises ValueError for a wrong argument, and if none of `MOST` points is a member: the document
    contradicts the model, or the set is too thin for sampling.
    """
    import pandas as pd

    allowed, size = _Set(ranges, condition), count("size", size)
    rng, parts, members = np.random.default_rng(seed), [], 0
    for _ in range(MOST // BATCH):
        points = rng.uniform(allowed.low, allowed.high, (BATCH, len(ranges)))
        parts.append(points[allowed.met(points)])
        members += len(parts[-1])
        if members >= size:
            break
    if not members:
        raise ValueError(f"condition: none of {MOST:,} points meets it, expected some to")
    return pd.DataFrame(np.vstack(parts), columns=list(ranges))


def reach(
    quantity: Callable[[Columns], Any],
    members: "pd.DataFrame",
    ranges: Ranges,
    condition: Callable[[Columns], Any],
    seed: int = 2026,
) -> tuple[Any, Any]:
    """Lowest and highest value of a quantity in the set, searched for from the outermost `members`
    on. A quantity that has several columns gives two arrays, at little more cost than one.

    The search is a differential evolution: it adds random steps, which get shorter, and differences
    between two of the best points so far, which follow the shape of the set, and keeps the points
    that meet the `condition`. A member has the value that is found; that no member has one beyond
    it is likely, not proved.

    Raises ValueError for a wrong argument, such as members that do not meet the condition.
    """
    allowed = _Set(ranges, condition)
    return allowed.reach(quantity, allowed.points(members), seed)


def narrowed(
    measured: Callable[[Columns], Any],
    half: float,
    quantity: Callable[[Columns], Any],
    members: "pd.DataFrame",
    ranges: Ranges,
    condition: Callable[[Columns], Any],
    seed: int = 2026,
    width: Any = None,
) -> Any:
    """Width that the interval of `quantity` would have, on average, after measuring `measured` to
    within +-`half`, over its width now: 1 where that measurement says nothing about the quantity.
    A quantity with several columns gives an array. Its `width` now, the highest value that `reach`
    gives less the lowest, is searched for if it is not given.

    `TRUTHS` members, evenly from the lowest value of `measured` to the highest, are taken for the
    truth one after another, and each time `reach` searches what remains of the set.

    The share has two errors. The search is harder in a thinner set, so that the share is too low:
    by 2 % of it at most in `tests/fits/test_admissible.py`, by 0.3 % in notebook 12, with its
    eleven unknowns, where eight seeds were compared. And that all members count alike is a
    convention, as for `sample`.

    Raises ValueError as `reach` does, for a quantity that all members have in common, and for a
    `width` that is not above 0 or has another number of columns than the quantity.
    """
    if not (np.ndim(half) == 0 and half >= 0):
        raise ValueError(f"half is {half!r}, expected a number of at least 0")
    allowed = _Set(ranges, condition)
    points = allowed.points(members)
    values = allowed.values("measured", measured, points)
    if values.ndim > 1:
        raise ValueError(f"measured gives {values.shape[1]} columns, expected one")
    columns = allowed.values("quantity", quantity, points).shape[1:]
    if width is None:
        width = np.subtract(*allowed.reach(quantity, points, seed)[::-1])
    width = np.asarray(width, dtype=float)
    if width.shape != columns or not (np.isfinite(width) & (width > 0)).all():
        expected = "expected the highest less the lowest value of the quantity, above 0"
        raise ValueError(f"width is {width}, {expected}")
    widths, levels = [], (np.arange(TRUTHS) + 0.5) / TRUTHS
    for truth in np.quantile(values, levels, method="closest_observation"):

        def agrees(x, truth=truth):
            return condition(x) & (np.abs(measured(x) - truth) <= half)

        near = points[np.abs(values - truth) <= half]
        widths.append(np.subtract(*_Set(ranges, agrees).reach(quantity, near, seed)[::-1]))
    share = np.mean(widths, axis=0) / width
    return share if np.ndim(share) else float(share)


class _Set:
    """The points in `ranges`, a row each, that meet the `condition`."""

    def __init__(self, ranges: Ranges, condition: Callable[[Columns], Any]):
        self.ranges, self.condition = ranges, condition
        ends = numbers("ranges", [*ranges.values()])
        shaped = ends.shape == (max(len(ranges), 1), 2)
        if not (shaped and np.isfinite(ends).all() and (ends[:, 0] <= ends[:, 1]).all()):
            expected = "expected (low, high) for each unknown, low not above high"
            raise ValueError(f"ranges is {dict(ranges)}, {expected}")
        self.low, self.high = ends.T

    def columns(self, points: np.ndarray) -> dict[str, np.ndarray]:
        return dict(zip(self.ranges, points.T, strict=True))

    def met(self, points: np.ndarray) -> np.ndarray:
        """Which of the points meet the condition."""
        met = np.asarray(self.condition(self.columns(points)))
        if met.dtype != bool or met.shape != (len(points),):
            expected = f"expected a truth value for each of {len(points)} points"
            raise ValueError(f"condition gives {met.dtype} of shape {met.shape}, {expected}")
        return met

    def values(self, name: str, quantity: Callable[[Columns], Any], points) -> np.ndarray:
        """The values of a quantity, which messages call `name`, at each of the points."""
        values = np.asarray(quantity(self.columns(points)), dtype=float)
        if values.ndim not in (1, 2) or len(values) != len(points):
            expected = f"expected a row for each of {len(points)} points"
            raise ValueError(f"{name} has the shape {values.shape}, {expected}")
        if not np.isfinite(values).all():
            raise ValueError(f"{name} is not finite for some members, expected numbers")
        return values

    def points(self, members: "pd.DataFrame") -> np.ndarray:
        """The members as points. Raises ValueError if they are not of this set."""
        if set(members) != set(self.ranges):
            expected = f"expected those of ranges, {[*self.ranges]}"
            raise ValueError(f"members has columns {[*members]}, {expected}")
        points = members[list(self.ranges)].to_numpy(dtype=float)
        if not len(points):
            raise ValueError("members has no rows, expected some that meet the condition")
        inside = ((points >= self.low) & (points <= self.high)).all(axis=1)
        if not (inside & self.met(points)).all():
            raise ValueError("members has some out of range, or that do not meet the condition")
        return points

    def reach(self, quantity, best: np.ndarray, seed: int) -> tuple[Any, Any]:
        """`reach` from points that are members."""

        def ends_of(values):
            """Rows whose highest values are the ends: the negative of each column, then each."""
            rows = values.reshape(len(values), -1).T
            return np.vstack([-rows, rows])

        rng = np.random.default_rng(seed)
        values = self.values("quantity", quantity, best)
        several, ends = values.ndim > 1, ends_of(values)
        for step in np.geomspace(0.3, 1e-4, STEPS):
            kept = min(KEPT, len(best))
            top = np.argpartition(ends, -kept)[:, -kept:]
            start = np.repeat(top, max(1, TRIED // top.size), axis=1)
            moved = best[start] + _moves(rng, best, top, start, step * (self.high - self.low))
            moved = np.clip(moved, self.low, self.high).reshape(-1, len(self.low))
            moved = moved[self.met(moved)]
            again = np.unique(top)
            best = np.vstack([best[again], moved])
            ends = np.hstack([ends[:, again], ends_of(self.values("quantity", quantity, moved))])
        least, most = np.split(ends.max(axis=1), 2)
        return (-least, most) if several else (float(-least[0]), float(most[0]))


def _moves(rng, best: np.ndarray, top: np.ndarray, start: np.ndarray, step: np.ndarray):
    """A half of the moves are differences of two of the best points, a quarter such differences in
    some of the unknowns only, and a quarter random steps in some of the unknowns.
    """
    picked = rng.integers(top.shape[1], size=(2, *start.shape))
    one, other = (best[np.take_along_axis(top, pick, axis=1)] for pick in picked)
    share, kind, size = rng.random((3, *start.shape, 1))
    some = rng.random(one.shape) < share
    random = step * rng.standard_normal(one.shape) * some
    difference = 2 * size * (one - other)
    return np.where(kind < 0.25, random, difference * (some | (kind > 0.5)))

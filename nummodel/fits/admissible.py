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

from nummodel.arguments import LARGEST, count, numbers, within

if TYPE_CHECKING:
    import pandas as pd

Columns = Mapping[str, np.ndarray]
Function = Callable[[Columns], Any]
Ranges = Mapping[str, tuple[float, float]]

#: Points that are drawn at a time, and at most.
BATCH, MOST = 2**15, 2**24
#: Steps of a search, points tried in each step, and how many of them are kept for each end.
STEPS, TRIED, KEPT = 150, 1200, 40
#: Members whose value is taken for the true one, one after another.
TRUTHS = 5


def sample(
    ranges: Ranges, condition: Function, size: int = 1000, seed: int = 2026
) -> "pd.DataFrame":
    """Members of the set: points drawn evenly from `ranges` that meet the `condition`.

    Points are drawn in batches until there are `size` members; all members of the last batch are
    returned as well. How they spread is no probability: that every point of the ranges counts alike
    is a convention.

    Raises ValueError for a wrong argument, and if none of `MOST` points is a member: the document
    contradicts the model, or the set is too thin for sampling.
    """
    import pandas as pd

    (low, high), size = _ends(ranges), count("size", size)
    rng, parts, members = np.random.default_rng(seed), [], 0
    for _ in range(MOST // BATCH):
        points = rng.uniform(low, high, (BATCH, len(ranges)))
        parts.append(points[_met(condition, ranges, points)])
        members += len(parts[-1])
        if members >= size:
            break
    if not members:
        raise ValueError(f"condition: none of {MOST:,} points meets it, expected some to")
    return pd.DataFrame(np.vstack(parts), columns=list(ranges))


def reach(
    quantity: Function,
    members: "pd.DataFrame",
    ranges: Ranges,
    condition: Function,
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
    low, high = _ends(ranges)
    best = members.reindex(columns=list(ranges)).to_numpy(dtype=float)
    inside = ((best >= low) & (best <= high)).all(axis=1)
    if not len(best) or not (inside & _met(condition, ranges, best)).all():
        expected = f"expected rows of {', '.join(ranges)} in range, all of which meet the condition"
        raise ValueError(f"members has {len(best)} rows of {', '.join(members)}, {expected}")
    rng, values = np.random.default_rng(seed), _values("quantity", quantity, ranges, best)
    for step in np.geomspace(0.3, 1e-4, STEPS):
        ends = np.column_stack([-values, values])  # of each column the highest
        top = np.argpartition(ends, -min(KEPT, len(ends)), axis=0)[-KEPT:].T
        start = np.repeat(top, max(1, TRIED // top.size), axis=1)
        moved = best[start] + _moves(rng, best, top, start, step * (high - low))
        moved = np.clip(moved, low, high).reshape(-1, len(low))
        moved = moved[_met(condition, ranges, moved)]
        kept = np.unique(top)
        best = np.vstack([best[kept], moved])
        found = _values("quantity", quantity, ranges, moved)
        values = np.concatenate([values[kept], found])
    least, most = values.min(axis=0), values.max(axis=0)
    return (least, most) if values.ndim > 1 else (float(least), float(most))


def narrowed(
    measured: Function,
    half: float,
    quantity: Function,
    members: "pd.DataFrame",
    ranges: Ranges,
    condition: Function,
    seed: int = 2026,
) -> Any:
    """Width that the interval of `quantity` would have, on average, after measuring `measured` to
    within +-`half`, over its width now: 1 where that measurement says nothing about the quantity.
    A quantity with several columns gives an array.

    `TRUTHS` members, evenly from the lowest value of `measured` to the highest, are taken for the
    truth one after another, and each time `reach` searches what remains of the set.

    The share has two errors. The search is harder in a thinner set, so that the share is too low:
    by 2 % of it at most in `tests/fits/test_admissible.py`, by 0.3 % in notebook 12, with its
    eleven unknowns, where eight seeds were compared. And that all members count alike is a
    convention, as for `sample`.

    Raises ValueError as `reach` does, and for a quantity that all members have in common.
    """
    within("half", half, 0, ndim=(0,))
    least, most = reach(quantity, members, ranges, condition, seed)
    if np.any(most == least):
        raise ValueError("quantity is the same for all members, expected one that is not known yet")
    values = _values("measured", measured, ranges, members[list(ranges)].to_numpy(float), (1,))
    widths, levels = [], (np.arange(TRUTHS) + 0.5) / TRUTHS
    for truth in np.quantile(values, levels, method="closest_observation"):

        def agrees(x, truth=truth):
            return condition(x) & (np.abs(measured(x) - truth) <= half)

        near = members[np.abs(values - truth) <= half]
        widths.append(np.subtract(*reach(quantity, near, ranges, agrees, seed)[::-1]))
    share = np.mean(widths, axis=0) / (most - least)
    return share if np.ndim(share) else float(share)


def _ends(ranges: Ranges) -> np.ndarray:
    """The low ends of the ranges, and the high ends."""
    ends = numbers("ranges", [*ranges.values()])
    good = ends.shape[1:] == (2,) and np.isfinite(ends).all() and (np.diff(ends) >= 0).all()
    if not good:
        expected = "expected (low, high) for each unknown, low not above high"
        raise ValueError(f"ranges is {dict(ranges)}, {expected}")
    return ends.T


def _met(condition: Function, ranges: Ranges, points: np.ndarray) -> np.ndarray:
    """Which of the points, a row each, meet the condition."""
    met = np.asarray(condition(dict(zip(ranges, points.T, strict=True))))
    if met.dtype != bool or met.shape != (len(points),):
        expected = f"expected a truth value for each of {len(points)} points"
        raise ValueError(f"condition gives {met.dtype} of shape {met.shape}, {expected}")
    return met


def _values(
    name: str, quantity: Function, ranges: Ranges, points: np.ndarray, ndim: tuple = (1, 2)
) -> np.ndarray:
    """The values of a quantity, which messages call `name`, at each of the points."""
    found = quantity(dict(zip(ranges, points.T, strict=True)))
    values = within(name, found, -LARGEST, empty=True)
    if values.ndim not in ndim or len(values) != len(points):
        expected = f"expected a value for each of {len(points)} points"
        raise ValueError(f"{name} has the shape {values.shape}, {expected}")
    return values


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

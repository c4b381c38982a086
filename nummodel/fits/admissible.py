"""What a document allows when it has fewer figures than there are unknowns: a set, not a value.

Unknowns range over intervals (one that is known, over none), and a condition says which of their
combinations agree with what is printed. `sample` finds members of that set, `reach` the least and
the most that the set makes of a quantity. `left` and `narrowed` tell what a further measurement
would leave, on average: of the set, and of the interval that answers a question.

Two parts of a run add up to eight minutes, known to a tenth, and the second takes four at most:

>>> def agrees(x):
...     return abs(x["first"] + x["second"] - 8) < 0.1
>>> def first(x):
...     return x["first"]
>>> ranges = {"first": (0, 10), "second": (0, 4)}
>>> members = sample(ranges, agrees, size=2000)
>>> [round(end, 3) for end in reach(first, members, ranges, agrees)]
[3.9, 8.1]

Either part, measured to half a minute, would leave a quarter of the set; their sum, which is known
to better than that, all of it. Of the 4.2 minutes that the first part is open by, one is left:

>>> total = members["first"] + members["second"]
>>> [round(left(values, 0.5), 1) for values in (members["first"], members["second"], total)]
[0.2, 0.2, 1.0]
>>> round(narrowed(first, 0.5, first, members, ranges, agrees), 1)
0.2

Quantities and conditions are functions of columns, one array per unknown.
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

Columns = Mapping[str, np.ndarray]
Ranges = Mapping[str, tuple[float, float]]

#: Points tried at a time, and at most.
BATCH, MOST = 2**15, 2**24
#: Steps of a search, points tried in each of them, and how many it goes on from at each end.
STEPS, TRIED, KEPT = 150, 1200, 40
#: Values that a measurement is taken to have, one after another: those of members, as they spread.
TRUTHS = 5


def sample(
    ranges: Ranges, condition: Callable[[Columns], Any], size: int = 1000, seed: int = 2026
) -> "pd.DataFrame":
    """Members of the set: points drawn evenly from `ranges` that meet the `condition`.

    It ends with the batch that brings the number of members to `size`; all of them are returned.
    Their spread is no probability: that every point of the ranges counts alike is a convention.

    Raises ValueError for no ranges and one that is none, a size below 1, a condition that does not
    give a truth value for each point, and where no point of `MOST` is a member: the document
    contradicts the model, or the set is too thin for sampling.
    """
    import pandas as pd

    low, high = _ends(ranges)
    if not (np.ndim(size) == 0 and size >= 1 and size == int(size)):
        raise ValueError(f"size is {size!r}, expected a whole number of at least 1")
    rng, parts, found = np.random.default_rng(seed), [], 0
    for _ in range(MOST // BATCH):
        table = rng.uniform(low, high, (BATCH, len(low)))
        parts.append(table[_met(condition, table, ranges)])
        found += len(parts[-1])
        if found >= size:
            break
    if not found:
        raise ValueError(
            f"condition: none of {MOST:,} points meets it, expected a set of some size"
        )
    return pd.DataFrame(np.vstack(parts), columns=list(ranges))


def reach(
    quantity: Callable[[Columns], Any],
    members: "pd.DataFrame",
    ranges: Ranges,
    condition: Callable[[Columns], Any],
    seed: int = 2026,
) -> tuple[Any, Any]:
    """Least and most of a quantity over the set: searched from the outermost `members` on.

    A quantity that has several columns gives two arrays, at little more cost than one.

    Steps around the best so far that get shorter, and differences between two of them, which follow
    the shape of the set; kept is what meets the `condition` (differential evolution). Many unknowns
    hide the corners of a set from an even sample. What is found is met by a member; that nothing
    lies beyond it is likely, not proved.

    Raises ValueError for no ranges and one that is none, no members, some that are out of range or
    do not meet the condition, and a quantity that does not give a finite number for each point.
    """
    return _reach(quantity, _checked(members, ranges, condition), ranges, condition, seed)


def _reach(quantity, best: np.ndarray, ranges: Ranges, condition, seed: int) -> tuple[Any, Any]:
    """`reach` from points that are members."""
    rng, (low, high) = np.random.default_rng(seed), _ends(ranges)
    value = _values("quantity", quantity, best, ranges)
    shape, ends = value.shape[1:], _both(value)
    for step in np.geomspace(0.3, 1e-4, STEPS):
        kept = min(KEPT, len(best))
        top = np.argpartition(-ends, kept - 1, axis=0)[:kept].T  # a row for each end
        start = np.repeat(top, max(1, TRIED // top.size), axis=1)
        moved = best[start] + _moves(rng, best, top, start, step * (high - low))
        moved = np.clip(moved, low, high).reshape(-1, len(low))
        moved = moved[_met(condition, moved, ranges)]
        found = _both(_values("quantity", quantity, moved, ranges))
        again = np.unique(top)
        best, ends = np.vstack([best[again], moved]), np.vstack([ends[again], found])
    least, most = np.split(ends.max(axis=0), 2)
    return (-least, most) if shape else (float(-least[0]), float(most[0]))


def _moves(rng, best: np.ndarray, top: np.ndarray, start: np.ndarray, step: np.ndarray):
    """Half are what two of the best differ by, a quarter that in some of the unknowns only, and a
    quarter random steps in some of the unknowns.
    """
    picked = rng.integers(top.shape[1], size=(2, *start.shape))
    one, other = (best[np.take_along_axis(top, pick, axis=1)] for pick in picked)
    share, kind, size = rng.random((3, *start.shape, 1))
    some = rng.random(one.shape) < share
    random = step * rng.standard_normal(one.shape) * some
    difference = 2 * size * (one - other)
    return np.where(kind < 0.25, random, difference * (some | (kind > 0.5)))


def left(values, half: float) -> float:
    """Share of the set that is left, on average, by measuring a quantity to within +-`half`.

    Each member in turn is taken for the truth; what stays are those whose value is as near to its
    value as the measurement tells, itself at least: of n members never less than 1/n is left.

    >>> left([0.0, 1.0, 2.0, 3.0], half=0.5), left([0.0, 1.0, 2.0, 3.0], half=1.0)
    (0.25, 0.625)

    Raises ValueError for values that are not finite and a `half` that is negative.
    """
    ordered = np.sort(np.asarray(values, dtype=float).ravel())
    if not ordered.size or not np.isfinite(ordered).all():
        raise ValueError("values must be finite, and at least one")
    _width(half)
    first = np.searchsorted(ordered, ordered - half, side="left")
    last = np.searchsorted(ordered, ordered + half, side="right")
    return float(np.mean(last - first) / ordered.size)


def narrowed(
    measured: Callable[[Columns], Any],
    half: float,
    quantity: Callable[[Columns], Any],
    members: "pd.DataFrame",
    ranges: Ranges,
    condition: Callable[[Columns], Any],
    seed: int = 2026,
) -> Any:
    """Width of the interval of `quantity` that measuring `measured` to within +-`half` leaves, on
    average, over its width now: 1 where the measurement says nothing about the question.

    `TRUTHS` members, evenly from the lowest value to the highest, are taken for the truth one after
    another; each time `reach` finds the ends that the set has left. A quantity with several columns
    gives an array.

    Two errors remain. Ends are found from inside, and a measurement makes the set thinner and its
    corners harder to find: the share comes out too low, by 2 % of it at most in
    `tests/fits/test_admissible.py`, by 0.3 % in notebook 12, with its eleven unknowns, where eight
    seeds were compared. And members stand for what may be true as the points of the ranges do, all
    alike, which is a convention.

    Raises ValueError for what `reach` refuses, values that are not finite, a `half` that is
    negative, and a quantity that all members have in common.
    """
    _width(half)
    points = _checked(members, ranges, condition)
    values = _values("measured", measured, points, ranges)
    if values.ndim > 1:
        raise ValueError(f"measured gives {values.shape[1]} columns, expected one")
    widths = [np.subtract(*_reach(quantity, points, ranges, condition, seed)[::-1])]
    if not np.all(widths[0] > 0):
        raise ValueError("quantity is the same for all members, expected one that varies")
    levels = (np.arange(TRUTHS) + 0.5) / TRUTHS
    for truth in np.quantile(values, levels, method="closest_observation"):

        def agrees(x, truth=truth):
            return condition(x) & (np.abs(measured(x) - truth) <= half)

        near = points[np.abs(values - truth) <= half]
        widths.append(np.subtract(*_reach(quantity, near, ranges, agrees, seed)[::-1]))
    share = np.mean(widths[1:], axis=0) / widths[0]
    return share if np.ndim(share) else float(share)


# --- what is called with columns, and what it must give ----------------------------------------


def _both(value: np.ndarray) -> np.ndarray:
    """Columns whose greatest are the ends: the negative of each, then each."""
    columns = value.reshape(len(value), -1)
    return np.hstack([-columns, columns])


def _columns(points: np.ndarray, ranges: Ranges) -> dict[str, np.ndarray]:
    return dict(zip(ranges, points.T, strict=True))


def _met(condition: Callable[[Columns], Any], points: np.ndarray, ranges: Ranges) -> np.ndarray:
    met = np.asarray(condition(_columns(points, ranges)))
    if met.dtype != bool or met.shape != (len(points),):
        raise ValueError(
            f"condition gives {met.dtype} of shape {met.shape}, expected a truth value for each of "
            f"{len(points)} points"
        )
    return met


def _values(
    name: str, quantity: Callable[[Columns], Any], points: np.ndarray, ranges: Ranges
) -> np.ndarray:
    values = np.asarray(quantity(_columns(points, ranges)), dtype=float)
    if values.ndim not in (1, 2) or len(values) != len(points):
        raise ValueError(
            f"{name} has the shape {values.shape}, expected a row for each of {len(points)} points"
        )
    if not np.isfinite(values).all():
        raise ValueError(f"{name} is not finite for some members, expected numbers")
    return values


def _ends(ranges: Ranges) -> tuple[np.ndarray, np.ndarray]:
    try:
        low, high = np.array([*ranges.values()], dtype=float).T
    except (TypeError, ValueError):
        low, high = np.array([np.nan]), np.array([np.nan])
    if not (np.isfinite(low) & np.isfinite(high) & (low <= high)).all():
        raise ValueError(
            f"ranges is {dict(ranges)}, expected (low, high) for each unknown, low not above high"
        )
    return low, high


def _checked(members: "pd.DataFrame", ranges: Ranges, condition) -> np.ndarray:
    """The members as points, if that is what they are."""
    low, high = _ends(ranges)
    if set(members) != set(ranges):
        raise ValueError(f"members has columns {[*members]}, expected those of ranges, {[*ranges]}")
    points = members[list(ranges)].to_numpy(dtype=float)
    if not len(points):
        raise ValueError("members has no rows, expected some that meet the condition")
    if not ((points >= low) & (points <= high)).all():
        raise ValueError("members has figures out of range, expected them within ranges")
    if not _met(condition, points, ranges).all():
        raise ValueError("members has some that do not meet the condition, expected all to")
    return points


def _width(half: float) -> None:
    if not (np.ndim(half) == 0 and half >= 0):
        raise ValueError(f"half is {half!r}, expected a number of at least 0")

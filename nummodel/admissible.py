"""What a document allows when it has fewer figures than there are unknowns: a set, not a value.

Unknowns range over intervals, and a condition says which of their combinations agree with what is
printed. `sample` finds members of that set, `reach` the least and the most that the set makes of a
quantity; `left` and `narrowed` tell what a further measurement would leave, on average.

Two parts of a run add up to eight minutes, known to a tenth, and the second takes four at most:

>>> def agrees(x):
...     return abs(x["first"] + x["second"] - 8) < 0.1
>>> ranges = {"first": (0, 10), "second": (0, 4)}
>>> members = sample(ranges, agrees, size=2000)
>>> [round(end, 3) for end in reach(lambda x: x["first"], members, ranges, agrees)]
[3.9, 8.1]

Either part, measured to half a minute, would leave a quarter of that; their sum, which is known to
better than that, all of it:

>>> total = members["first"] + members["second"]
>>> [round(left(quantity, 0.5), 1) for quantity in (members["first"], members["second"], total)]
[0.2, 0.2, 1.0]
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

#: Points tried at a time, a power of two, and at most.
BATCH, MOST = 2**17, 2**24


def sample(
    ranges: Mapping[str, tuple[float, float]],
    condition: Callable[[Mapping[str, np.ndarray]], Any],
    size: int = 1000,
    seed: int = 2026,
) -> "pd.DataFrame":
    """Members of the set: points spread evenly over `ranges` (Sobol) that meet the `condition`.

    `condition` gets columns, one per unknown, and gives a truth value for each of their rows. It
    ends with the batch that brings the number of members to `size`; all of them are returned, so
    that they are as even as the points. Their spread is no probability: that every point of the
    ranges counts alike is a convention.

    Raises ValueError for a range that is none, and where no point of `MOST` is a member: the
    document contradicts the model, or the set is too thin for sampling.
    """
    import pandas as pd
    from scipy.stats import qmc

    low, high = np.array([*ranges.values()], dtype=float).T
    if not (np.isfinite(low) & np.isfinite(high) & (low < high)).all():
        raise ValueError(f"ranges is {dict(ranges)}, expected (low, high) with low below high")
    points, parts, found = qmc.Sobol(len(ranges), rng=seed), [], 0
    for _ in range(MOST // BATCH):
        table = pd.DataFrame(low + points.random(BATCH) * (high - low), columns=list(ranges))
        parts.append(table[np.asarray(condition(table), dtype=bool)])
        found += len(parts[-1])
        if found >= size:
            break
    if not found:
        raise ValueError(
            f"none of {MOST:,} points meets the condition, expected a set of some size"
        )
    return pd.concat(parts, ignore_index=True)


def reach(
    quantity: Callable[[Mapping[str, np.ndarray]], Any],
    members: "pd.DataFrame",
    ranges: Mapping[str, tuple[float, float]],
    condition: Callable[[Mapping[str, np.ndarray]], Any],
    seed: int = 2026,
) -> tuple[float, float]:
    """Least and most of a quantity over the set: searched from the outermost `members` on.

    Steps around the best so far that get shorter, and differences between two of them, which follow
    the shape of the set; kept is what meets the `condition` (differential evolution). Many unknowns
    hide the corners of a set from an even sample. What is found is met by a member; that nothing
    lies beyond it is likely, not proved. Raises ValueError if there are no members to begin with.
    """
    import pandas as pd

    if not len(members):
        raise ValueError("members are none, expected some that meet the condition")
    rng = np.random.default_rng(seed)
    low, high = np.array([ranges[name] for name in members], dtype=float).T
    ends = []
    for sign in (-1.0, 1.0):
        best, value = members.to_numpy(), sign * np.asarray(quantity(members), dtype=float)
        for step in np.geomspace(0.3, 1e-5, 60):
            top = np.argsort(value)[-40:]
            best, value = best[top], value[top]
            start = np.repeat(best, 100, axis=0)
            one, other = best[rng.integers(len(best), size=(2, len(start)))]
            chosen, kind, size = rng.random((3, len(start), 1))  # from one unknown to all of them
            short = step * (high - low) * rng.standard_normal(start.shape)
            short *= rng.random(start.shape) < chosen
            moved = start + np.where(kind < 0.5, short, 2 * size * (one - other))
            table = pd.DataFrame(np.clip(moved, low, high), columns=members.columns)
            table = table[np.asarray(condition(table), dtype=bool)]
            best = np.vstack([best, table.to_numpy()])
            value = np.append(value, sign * np.asarray(quantity(table), dtype=float))
        ends.append(sign * value.max())
    return float(ends[0]), float(ends[1])


def left(values, half: float) -> float:
    """Share of the set that is left, on average, by measuring a quantity to within +-`half`.

    Each member in turn is taken for the truth; what stays are those whose value is as near to its
    value as the measurement tells.

    >>> left([0.0, 1.0, 2.0, 3.0], half=0.5), left([0.0, 1.0, 2.0, 3.0], half=1.0)
    (0.25, 0.625)

    Raises ValueError for values that are not finite and a `half` that is negative.
    """
    ordered = np.sort(np.asarray(values, dtype=float).ravel())
    if not ordered.size or not np.isfinite(ordered).all():
        raise ValueError("values must be finite, and at least one")
    if not half >= 0:
        raise ValueError(f"half is {half}, expected a number of at least 0")
    first = np.searchsorted(ordered, ordered - half, side="left")
    last = np.searchsorted(ordered, ordered + half, side="right")
    return float(np.mean(last - first) / ordered.size)


def narrowed(values, half: float, answer) -> float:
    """Width of the interval of `answer` that such a measurement leaves, on average, relative to the
    width without it: 1 where the measurement says nothing about the question.

    >>> narrowed([0.0, 1.0, 2.0, 3.0], 0.5, answer=[5, 6, 7, 8])
    0.0
    >>> narrowed([0.0, 0.0, 1.0, 1.0], 0.5, answer=[5, 8, 5, 8])
    1.0
    """
    values, answer = (np.asarray(v, dtype=float).ravel() for v in (values, answer))
    left(values, half)  # raises
    order = np.argsort(values)
    values, answer = values[order], answer[order]
    first = np.searchsorted(values, values - half, side="left")
    last = np.searchsorted(values, values + half, side="right")
    widths = [np.ptp(answer[i:j]) for i, j in zip(first, last, strict=True)]
    return float(np.mean(widths) / np.ptp(answer))

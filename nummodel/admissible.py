"""What a document allows when it has fewer figures than there are unknowns: a set, not a value.

Unknowns range over intervals, and a condition says which of their combinations agree with what is
printed. `sample` finds members of that set, `interval` tells what they make of a quantity, and
`left` how much of the set a further measurement would leave, on average.

Two parts of a run add up to eight minutes, known to a tenth, and the second takes four at most:

>>> def agrees(x):
...     return abs(x["first"] + x["second"] - 8) < 0.1
>>> members = sample({"first": (0, 10), "second": (0, 4)}, agrees, size=2000)
>>> [round(end, 1) for end in interval(members["first"])]
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


def interval(values) -> tuple[float, float]:
    """Least and most of a quantity over the members: from inside, and closer the more there are.

    >>> interval([3, 1, 2])
    (1.0, 3.0)
    """
    return float(np.min(values)), float(np.max(values))


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

"""How the last points of a curve go on, and how far that was off for the curves of other systems.

The middle of a forecast goes on as the last points do and bends to a ceiling, and its interval is
as wide as the errors of such forecasts for the curves of many systems: 125 of 15 sources, and 36 of
database servers. `benchmarks/forecast.py` computes `SPREAD` from these curves, and leaves each
source out in turn to see how well that works. The other constants are round numbers set by hand.
"""

from typing import Any, NamedTuple

import numpy as np

from nummodel.errors import InputError

#: How sharply the middle bends: N / (1 + (N/b)^q)^(1/q), with two straight lines for large q.
BEND = 3.0
#: The steepest slope that goes on: a little less than in proportion to N.
STEEPEST = 0.999
#: What is left of a fall with each doubling of the load.
FALLING = 0.5
#: The shares of errors that lie below the quantiles in `SPREAD`. The middle is taken for the
#: median, though a little more than half of all errors lie below it.
SHARES = (0.025, 0.05, 0.1, 0.25, 0.75, 0.9, 0.95, 0.975)
#: For each share, the error of ln X in units of `distance`: a constant, and its slopes by the
#: quantities of `Trend.traits`.
SPREAD = (
    (-0.768, 0.434, -0.345, 0.225, -2.060),
    (-0.248, -0.081, -0.544, -0.138, -1.726),
    (-0.076, -0.247, -0.477, -0.119, -0.480),
    (-0.030, -0.153, -0.212, -0.046, -0.023),
    (-0.010, 0.274, 0.230, 0.044, -1.026),
    (0.004, 0.506, 0.230, 0.182, -1.430),
    (0.011, 0.616, 0.458, 0.484, -1.582),
    (0.094, 0.652, 0.396, 0.538, -1.755),
)
#: By this share, throughput may exceed what the utilisation of the processors leaves room for.
SPARE = 0.06
#: So many doublings are added to the distance of a load, as even at the last one an interval has
#: the errors of two measurements, the last one and the new one.
NEAREST = 0.15
#: The points of a slope span at least this factor of loads.
SPAN = 1.5
#: The probabilities at which the distribution of a forecast is computed; between them it is a line.
CHANCES = np.concatenate([[1e-4, 1e-3], np.linspace(0.005, 0.995, 199), [0.999, 0.9999]])


class Trend(NamedTuple):
    """How the last points rise: the last load N and throughput X (the geometric mean of its
    measurements), the slope of ln X by ln N there, the load `since` which it was found, and the
    slope before; the highest X for each N so far; and what X would be if the processors were full,
    and each transaction needed as much of them as at the last load (infinite, if not known).
    """

    N: float
    X: float
    slope: float
    since: float
    before: float
    each: float
    room: float = np.inf

    @property
    def taken(self) -> float:
        """The slope that goes on: the smaller one of the last two, or a fall."""
        s, before = np.clip([self.slope, self.before], -1.0, 1.1)
        return float(min(s, before, STEEPEST) if s > 0 else s)

    @property
    def traits(self) -> np.ndarray:
        """What the errors of forecasts depend on: 1, the rise, the fall, the change of the slope,
        and by how much a rise is steeper than 0.8.
        """
        s, change = self.taken, abs(np.subtract(*np.clip([self.slope, self.before], -1.0, 1.1)))
        return np.array([1.0, max(s, 0.0), max(-s, 0.0), change, max(s - 0.8, 0.0)])

    def middle(self, N: np.ndarray) -> np.ndarray:
        """The forecast of ln X."""
        ahead, s = np.log(N / self.N), self.taken
        if s <= 0:
            left = (1 - FALLING ** (ahead / np.log(2))) / (1 - FALLING)
            return np.log(self.X) + s * FALLING * np.log(2) * left
        c = 1 / max(s, 1e-3) - 1  # (N/b)^q at the last load
        bent = np.log((1 + c * np.exp(BEND * ahead)) / (1 + c)) / BEND
        return np.log(self.X) + ahead - bent

    @property
    def end(self) -> float:
        """X in the end, as N grows for ever: the ceiling of a rise, or the floor of a fall."""
        s = self.taken
        if s <= 0:
            return float(self.X * 2 ** (s * FALLING / (1 - FALLING)))
        return float(min(self.X * (1 - s) ** (-1 / BEND), self.room))

    def spread(self, shares: np.ndarray, constants: Any = SPREAD) -> np.ndarray:
        """What is added to the middle for each unit of `distance`, for each share. Between the
        `SHARES`, and beyond them, quantiles follow those of the normal distribution.
        """
        from scipy.special import ndtri

        offs = np.asarray(constants) @ self.traits
        half = len(SHARES) // 2
        offs = np.concatenate([np.minimum(offs[:half], 0), [0.0], np.maximum(offs[half:], 0)])
        known, z = ndtri(np.insert(SHARES, half, 0.5)), ndtri(shares)
        beyond = np.maximum(np.maximum(z / known[-1], z / known[0]), 1)
        return np.interp(z, known, np.sort(offs)) * beyond

    def quantiles(
        self, N: np.ndarray, shares: np.ndarray, constants: Any = SPREAD, law: Any = None
    ) -> np.ndarray:
        """The quantiles of ln X: a row for each load, a column for each share. They lie around the
        middle, or around the ln X of a `law` that is followed. X is not expected to be more in
        proportion to N than it was, nor more than processors have room for. Above the middle, the
        part of the distribution beyond these bounds is removed, and for `SPARE` more, as
        utilisations have errors; below the middle, nothing changes.
        """
        root, line = distance(np.log2(N / self.N)), np.log(self.each * N)
        most, shares = np.minimum(line, np.log(self.room * (1 + SPARE))), np.asarray(shares)
        middle = np.minimum(np.minimum(self.middle(N), line), np.log(self.room))
        if law is not None:
            middle = np.minimum(law, most)
        room = (most - middle) / root
        left = np.interp(room, self.spread(CHANCES, constants), CHANCES, right=1.0)
        above = 0.5 + (shares - 0.5) * (2 * np.maximum(left, 0.5)[:, None] - 1)
        taken = np.clip(np.where(shares > 0.5, above, shares), 1e-300, 1 - 1e-16)
        return middle[:, None] + root[:, None] * self.spread(taken, constants)


def distance(doublings: np.ndarray) -> np.ndarray:
    """What errors grow with: the root of the number of doublings beyond the last load, and a little
    more.
    """
    return np.sqrt(doublings + NEAREST)


def trend(N: np.ndarray, X: np.ndarray, U: np.ndarray | None = None) -> Trend:
    """The trend of throughputs X at loads N, and of the utilisation U of the processors.

    A slope is that of a straight line through the logarithms of the last points: of those from half
    of the last load on, and at least as many as span a factor of `SPAN`. The slope before is found
    in the same way from the points up to where that line begins. Raises InputError for less than
    three loads.
    """
    loads, place = np.unique(N, return_inverse=True)
    if len(loads) < 3:
        raise InputError(
            f"a forecast needs three different loads at least, and there are {len(loads)}"
        )
    logs, x = np.log(loads), np.bincount(place, np.log(X)) / np.bincount(place)
    first = _back(logs, len(logs) - 1)
    slope = before = _slope(logs[first:], x[first:])
    if first:
        earlier = _back(logs, first)
        before = _slope(logs[earlier : first + 1], x[earlier : first + 1])
    each, room = float(np.exp(np.max(x - logs))), np.inf
    if U is not None:
        busy = U[(loads[-1] == N) & np.isfinite(U)]
        room = np.exp(x[-1]) / max(busy.mean(), 1e-9) if len(busy) else np.inf
        room = max(room, np.exp(x.max()))
    last, since = float(loads[-1]), float(loads[first])
    return Trend(last, float(np.exp(x[-1])), slope, since, before, each, float(room))


def _back(logs: np.ndarray, last: int) -> int:
    """The first point of the line that ends at the `last` one."""
    half = int(np.searchsorted(logs, logs[last] - 1.01 * np.log(2)))
    wide = int(np.searchsorted(logs, logs[last] - np.log(SPAN), side="right")) - 1
    return max(min(half, wide), 0)


def _slope(logs: np.ndarray, x: np.ndarray) -> float:
    logs = logs - logs.mean()
    return float(logs @ x / (logs @ logs))

"""The exact solution of a closed network of one class, for many populations at once.

In a network with product form, station k contributes a series f_k(n), the product of D/capacity(j)
over j = 1 .. n. The normalising constant G is the convolution of all series (Buzen 1973), and
X(N) = G(N-1)/G(N).

G spans hundreds of orders of magnitude. But for any rate s, f_k(n) s^n over its sum is the
probability of n customers at station k when customers *arrive* at that rate, independently of the
other stations; and G(N) s^N is, up to a constant, the probability P(N) of N customers in all. So
only probabilities are convolved: no digits cancel, nothing overflows, and terms that underflow are
smaller than 1e-290, while P(N) must exceed 1e-250. One rate serves all populations that are likely
enough under it, usually all. For the others a new rate makes the largest of them the mean.

The series of a station whose capacity is constant from m customers on is a polynomial of degree
m - 1 and a geometric tail: a convolution and a first-order recursive filter. A queue length needs
the network without its station, except where capacity is constant: n D^n is the convolution of D^n
(n >= 0) with D^n (n >= 1).

A series ends where its terms are less than 1e-290. For few populations, the longest series, that of
the bottleneck, is kept apart: a scalar product for each population replaces its convolution, and
the other series are short, since their stations are not full.
"""

from collections.abc import Iterator, Sequence
from functools import reduce
from math import exp, expm1, inf, log, log2, sqrt
from typing import NamedTuple

import numpy as np

from nummodel.arguments import feasible

#: Least probability of a population under its rate, and least term of a series.
LEAST, NOTHING = 1e-250, 1e-290
#: A tail that grows by more than exp(GROWTH) is multiplied out rather than filtered.
GROWTH = 40.0
#: Most products of a solution: some seconds. A step of a filter takes as long as FILTER products.
PRODUCTS, FILTER = 1e10, 25
#: Nobody waits at a station whose demand is smaller than this times the largest.
NEGLIGIBLE = 1e-200
#: Terms that are convolved at a time, so that they stay in cache.
BLOCK = 4096


class Series(NamedTuple):
    """A station's terms under a rate: `head`, then a tail `last * ratio**j` that begins there."""

    head: np.ndarray
    last: float
    ratio: float

    @property
    def reach(self) -> float:
        """The number of terms that are not less than NOTHING."""
        if self.last <= NOTHING:
            return len(self.head)
        tail = log(NOTHING / self.last) / log(self.ratio) if self.ratio < 1 else inf
        return len(self.head) + tail + 1

    def terms(self, size: int) -> np.ndarray:
        """The first `size` terms, one by one."""
        terms = self.convolved(np.ones(1), size)
        return np.concatenate([terms, np.zeros(size - len(terms))])

    def convolved(self, g: np.ndarray, size: int) -> np.ndarray:
        """The first terms of `g` convolved with the head and the tail."""
        return _trimmed(_with_product(self.tail(g, size), g, self.head))

    def tail(self, g: np.ndarray, size: int) -> np.ndarray:
        """The first terms of `g` convolved with the tail."""
        m = len(self.head)
        end = int(min(size, len(g) + self.reach))
        y = np.zeros(max(end, 0))
        if end > m:
            y[m : m + len(g)] = g[: end - m]
            y[m:] = filtered([self.last], self.ratio, y[m:])
        return y

    def number(self, without: np.ndarray, size: int) -> np.ndarray:
        """The network without the station convolved with n times the terms."""
        m, tail = len(self.head), self.tail(without, size)
        y = m * tail + filtered([0.0, self.ratio], self.ratio, tail)
        return _with_product(y, without, np.arange(m) * self.head)


def exact(
    D: np.ndarray, capacities: Sequence[np.ndarray], queues: np.ndarray, Z: float, n: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """X at each population, and Q with stations first, of a network whose arguments make sense."""
    longest = D / np.array([c.min() for c in capacities])
    crowded = queues & (longest > NEGLIGIBLE * max(Z, longest.max()))
    X, Q = np.zeros(n.size), np.zeros((len(D), n.size))
    present = n > 0
    if present.any():
        occupied = [(D[k], capacities[k]) for k in np.flatnonzero(crowded).tolist()]
        away = Z + D[~queues].sum()
        X[present], Q[np.ix_(crowded, present)] = solve(occupied, away, n[present])
    alone = D / np.array([c[0] for c in capacities])
    Q[~crowded] = np.multiply.outer(alone[~crowded], X)
    return X, Q


def solve(stations: list[tuple[float, np.ndarray]], Z: float, N: np.ndarray):
    """Throughput (over N) and mean numbers (stations first) at populations `N` >= 1.

    `stations` are pairs of a positive demand and the capacities with 1, 2, .. present, of which the
    last holds for all larger numbers. Raises ValueError for work of more than some seconds.
    """
    unit = max([Z, *(d / c.min() for d, c in stations)])
    seconds = [np.maximum(d / c / unit, NOTHING) for d, c in stations]  # per completion, by number
    X, Q = np.empty(len(N)), np.empty((len(stations), len(N)))
    top, unsolved, work = int(N.max()), np.ones(len(N), dtype=bool), 0.0
    s = min([top / (Z / unit + sum(t[0] for t in seconds)), *(1 / t[-1] for t in seconds)])
    step = 0  # a guess; then a rate at which tails do not grow much; then any
    while True:
        inside = np.minimum(N, top)
        series = [_series(s * t, top) for t in seconds]
        thinking = _thinking(s * Z / unit, top)
        order, apart = _order(series, len(N))
        work += _work(series, thinking, order, len(N) * (apart is not None), top)
        feasible("N", top, top * PRODUCTS / work, "with these stations it takes too many products")
        here, before, numbers = _at_rate(series, thinking, order, apart, inside)
        at = unsolved & (np.minimum(here, before) > LEAST)
        np.multiply(s, np.divide(before, here, where=at, out=before), where=at, out=X)
        for k, number in numbers:
            np.divide(number, here, where=at, out=Q[k])
        unsolved &= ~at
        if not unsolved.any():
            return X / unit, Q
        largest = int(N[unsolved].max())
        step = 1 if largest < top else step + 1
        if step > 2:
            X[unsolved], Q[:, unsolved] = _collapsed(seconds, Z / unit, N[unsolved])
            return X / unit, Q
        top = largest
        s = _rate(seconds, Z / unit, top, GROWTH if step == 1 else inf)


def _collapsed(seconds: list[np.ndarray], Z: float, N: np.ndarray):
    """As `solve`, where populations are too unlikely at any rate: a station that is slower when
    crowded holds nearly all customers or hardly any, and seldom a number in between.

    All other stations together are one station, as fast with n customers as they are when closed
    with n (Chandy, Herzog and Woo 1975, which is exact). The number at either of the two is a birth
    and death process, whose weights keep their exponents apart.
    """
    slowing = [k for k, t in enumerate(seconds) if (np.diff(t) > 0).any()]
    if not slowing:
        raise ArithmeticError(f"N is {N.max()}: too unlikely at any rate")
    k = max(slowing, key=lambda k: len(seconds[k]))
    top, rest = int(N.max()), [(1.0, 1 / t) for j, t in enumerate(seconds) if j != k]
    most = PRODUCTS / (FILTER * len(N) * (1 + len(seconds)))
    feasible(
        "N", top, most, f"throughput collapses, and {len(N)} populations are solved one by one"
    )
    n = np.arange(top + 1)
    X_rest, Q_rest = solve(rest, Z, n[1:]) if rest else (n[1:] / Z, np.zeros((0, top)))
    Q_rest = np.concatenate([np.zeros((len(rest), 1)), Q_rest], axis=1)
    stuck = np.concatenate([seconds[k], np.full(max(top - len(seconds[k]), 0), seconds[k][-1])])
    X, Q = np.empty(len(N)), np.empty((len(seconds), len(N)))
    for i, total in enumerate(N.tolist()):
        P = _normalised(products(stuck[:total] * X_rest[:total][::-1]))
        X[i], Q[k, i] = P[1:] @ (1 / stuck[:total]), P @ n[: total + 1]
        Q[np.arange(len(seconds)) != k, i] = Q_rest[:, : total + 1] @ P[::-1]
    return X, Q


def _order(series: list[Series], populations: int) -> tuple[list[int], int | None]:
    """Stations in the order in which they are convolved, and the one that is kept apart: none where
    all are filters, which are as fast.
    """
    order = sorted(range(len(series)), key=lambda k: -series[k].reach)
    head = len(series[order[0]].head) if order else 0
    few = any(len(f.head) for f in series) and populations <= max(16, head // 4)
    return (order[1:], order[0]) if few else (order, None)


def _work(series, thinking, order, populations: int, top: int) -> float:
    """How many products `_at_rate` takes, at most."""
    length = min(top + 1, len(thinking) + sum(series[k].reach for k in order))
    heads = [len(series[k].head) for k in order]
    varying = [m for m in heads if m]
    halves = 1 + log2(len(varying)) if varying else 0
    per_term = 2 * FILTER * len(heads) + (2 + halves) * sum(FILTER + m for m in varying)
    rates = 2000 * sum(len(f.head) for f in series)  # a rate is searched for
    return length * (per_term + 4 * populations * (1 + len(heads))) + 4 * FILTER * top + rates


def _thinking(mean: float, top: int) -> np.ndarray:
    """Probabilities of up to `top` customers who think, of all that think `mean` on average."""
    few = min(top, int(mean + 37 * sqrt(mean) + 450))  # further Poisson terms are < NOTHING
    return _normalised(products(mean / np.arange(1, few + 1))) if mean > 0 else np.ones(1)


def _at_rate(series, thinking, order, apart: int | None, N: np.ndarray):
    """Probabilities of N customers and of one fewer in all; and for each station its index and the
    mean number there, times the probability of N.
    """
    size = int(N.max()) + 1
    fixed = [k for k in order if not len(series[k].head)]
    varying = [k for k in order if len(series[k].head)]

    def beside(g: np.ndarray, k: int) -> np.ndarray:
        return series[k].convolved(g, size)

    base = reduce(beside, fixed, thinking)
    P = reduce(beside, varying, base)
    alone = None if apart is None else series[apart].terms(size)

    def numbers() -> Iterator[tuple[int, np.ndarray]]:
        ratios = {series[k].ratio for k in fixed}  # equal stations share their work
        each = {r: Series(np.zeros(0), r, r).convolved(P, size) for r in ratios}
        sums = {r: _at(y, alone, N - 1) for r, y in each.items()}
        yield from ((k, sums[series[k].ratio]) for k in fixed)
        for k, others in _without(base, series, varying, size):
            yield k, _at(series[k].number(others, size), alone, N)
        if apart is not None and alone is not None:
            yield apart, _at(P, np.arange(size) * alone, N)

    return _at(P, alone, N), _at(P, alone, N - 1), numbers()


def _at(y: np.ndarray, alone: np.ndarray | None, n: np.ndarray) -> np.ndarray:
    """`y` at n of 0 or more, convolved with the series that is kept apart, if there is one."""
    if alone is None:
        return np.where(n < len(y), y[np.minimum(n, len(y) - 1)], 0.0)
    parts = ((y[: i + 1], alone[max(i + 1 - len(y), 0) : i + 1]) for i in n.tolist())
    return np.array([some @ others[::-1] for some, others in parts])


def _without(g: np.ndarray, series: list[Series], among: list[int], size: int):
    """Pairs of k and `g` convolved with all `among` but k; halves of the list share their work."""
    if len(among) == 1:
        yield among[0], g
    elif among:
        half = len(among) // 2
        for mine, others in ((among[:half], among[half:]), (among[half:], among[:half])):
            rest = g
            for k in others:
                rest = series[k].convolved(rest, size)
            yield from _without(rest, series, mine, size)


def _with_product(y: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """`y`, to which the first terms of two series convolved are added."""
    for i in range(0, min(len(b), len(y)), BLOCK):
        part = np.convolve(a[: len(y) - i], b[i : i + BLOCK])[: len(y) - i]
        y[i : i + len(part)] += part
    return y


def _trimmed(y: np.ndarray) -> np.ndarray:
    """`y` up to its last term that counts."""
    return y if y[-1] > NOTHING else y[: max(1, len(y) - np.argmax(y[::-1] > NOTHING))]


def _series(ratios: np.ndarray, top: int) -> Series:
    """Probabilities of up to `top` customers, from the ratios of neighbouring ones."""
    ratios = np.maximum(ratios, NOTHING)
    m = len(ratios) - 1
    ratio = float(ratios[-1])
    if m < top and (top - m) * log(ratio) > GROWTH:
        ratios = np.concatenate([ratios, np.full(top - m, ratio)])
        m = len(ratios) - 1
    terms = products(ratios[: min(m, top)])
    if m > top or terms[-1] == 0:
        return Series(_normalised(_trimmed(terms)), 0.0, 0.0)
    total = terms[:-1].sum() + terms[-1] * exp(_log_sum(log(ratio), top - m))
    return Series(terms[:-1] / total, float(terms[-1] / total), ratio)


def _normalised(terms: np.ndarray) -> np.ndarray:
    return terms / terms.sum()


def products(a: np.ndarray) -> np.ndarray:
    """1, a_1, a_1 a_2, ... over the largest of them, or 0 where that is less than NOTHING.

    Exponents are kept apart from mantissas, so that no product on the way over- or underflows.
    """
    mantissa, exponent = np.frexp(np.concatenate([[1.0], a]))
    power = np.cumsum(exponent)
    carry, shift = 1.0, 0
    for i in range(0, len(mantissa), 1000):  # 1000 halves are still a normal number
        part = slice(i, i + 1000)
        mantissa[part], more = np.frexp(carry * np.cumprod(mantissa[part]))
        power[part] += more + shift
        carry, shift = mantissa[part][-1], shift + int(more[-1])
    terms = np.ldexp(mantissa, np.maximum(power - power.max(), -1070).astype(int))
    terms[terms < NOTHING] = 0.0
    return terms


def filtered(b: list[float], ratio: float, g: np.ndarray) -> np.ndarray:
    """y(n) = b_0 g(n) + b_1 g(n - 1) + ratio y(n - 1), as a triangular system of two diagonals:
    `scipy.signal.lfilter` does the same, but takes a second to import.
    """
    from scipy.linalg.lapack import dtbtrs

    y = b[0] * g
    if len(b) > 1:
        y[1:] += b[1] * g[:-1]
    diagonals = np.empty((len(g), 2))
    diagonals[:, 0], diagonals[:, 1] = 1.0, -ratio
    return dtbtrs(diagonals.T, y[:, None], uplo="L", diag="U", overwrite_b=True)[0][:, 0]


def _rate(seconds: list[np.ndarray], Z: float, N: int, growth: float) -> float:
    """Rate at which the mean number of customers is nearly N, so that N is likely.

    No station holds more than N, so that the rate may be above a last capacity; but no tail may
    grow by more than exp(growth).
    """
    series = [(np.concatenate([[0.0], np.cumsum(np.log(t[:-1]))]), t[-1]) for t in seconds]
    highest = [N / Z] if Z else []
    for t in seconds:
        highest.append(exp(GROWTH / N) / t[:N].min())
        if len(t) <= N:
            highest.append(exp(min(growth / (N - len(t) + 1), 700)) / t[-1])
    low = log(N / (Z + N * sum(t.max() for t in seconds))) - 1
    high = log(min(highest))
    while high - low > 0.1 / N:
        u = (low + high) / 2
        mean = min(exp(u) * Z, N) + sum(_mean(logs, log(r) + u, u, N) for logs, r in series)
        low, high = (u, high) if mean < N else (low, u)
    return exp(low)


def _mean(logs: np.ndarray, a: float, u: float, N: int) -> float:
    """Mean of 0 .. N with weights exp(logs + n u), the last followed by a tail of ratio exp(a)."""
    m = min(len(logs) - 1, N)
    place = np.arange(m + 1.0)
    terms = logs[: m + 1] + place * u
    terms[m] += _log_sum(a, N - m)
    place[m] += _geometric_mean(a, N - m)
    weights = np.exp(terms - terms.max())
    return float(weights @ place / weights.sum())


def _log_sum(a: float, n: int) -> float:
    """log of exp(0) + exp(a) + .. + exp(n a)."""
    from scipy.special import exprel

    return max(n * a, 0.0) + log((n + 1) * exprel(-(n + 1) * abs(a)) / exprel(-abs(a)))


def _geometric_mean(a: float, n: int) -> float:
    """Mean of 0 .. n with weights exp(0), .. , exp(n a)."""
    if a > 0:
        return n - _geometric_mean(-a, n)
    if -(n + 1) * a < 1e-4:
        return n / 2
    return 1 / expm1(min(-a, 700.0)) - (n + 1) / expm1(min(-(n + 1) * a, 700.0))

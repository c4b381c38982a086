"""The exact solution of a closed network of one class, for many populations at once.

In a network with product form, station k contributes a series f_k(n), the product of D/capacity(j)
over j = 1 .. n, and the normalising constant G is the convolution of all series (Buzen 1973). Then
X(N) = G(N-1)/G(N).

G spans hundreds of orders of magnitude. But for any rate s, f_k(n) s^n over its sum is the
probability of n customers at station k when customers *arrive* at that rate, independently of the
other stations, and G(N) s^N is, but for a constant, the probability P(N) that they are N in all.
So everything here is a convolution of probabilities: no term is negative, nothing cancels, nothing
overflows, and what underflows is smaller than 1e-290, where P(N) is required to exceed 1e-250. One
rate serves all populations that are not too unlikely under it, usually all that are asked for; for
what is left the rate is chosen anew, so that the largest of them is the mean.

A station whose capacity stays what it is from m customers on is a polynomial of degree m - 1 plus
a geometric tail: a convolution and a first-order recursive filter. Queue lengths need the network
without the station; a station of constant capacity is spared that, since n D^n is the convolution
of D^n (n >= 0) with D^n (n >= 1).
"""

from collections.abc import Iterator
from math import exp, expm1, inf, isqrt, log, sqrt
from typing import NamedTuple

import numpy as np

#: Least probability of a population under a rate at which it is computed, and least term.
LEAST, NOTHING = 1e-250, 1e-290
#: A tail that grows by more than exp(GROWTH) is not left to a filter, but multiplied out, which
#: takes a minute for a population of MANY.
GROWTH, MANY = 40.0, 100_000


class Series(NamedTuple):
    """A station's terms under a rate: `head`, then a tail `last * ratio**j` that begins there."""

    head: np.ndarray
    last: float
    ratio: float

    def convolved(self, g: np.ndarray) -> np.ndarray:
        """`g` convolved with the head and the tail."""
        y = self.tail(g)
        if len(self.head):
            y += np.convolve(g, self.head)[: len(g)]
        return y

    def tail(self, g: np.ndarray) -> np.ndarray:
        """`g` convolved with the tail."""
        m = len(self.head)
        if m >= len(g):
            return np.zeros(len(g))
        y = filtered([self.last], self.ratio, g[: len(g) - m])
        return np.concatenate([np.zeros(m), y]) if m else y

    def number(self, without: np.ndarray) -> np.ndarray:
        """The rest of the network convolved with n times the terms."""
        m = len(self.head)
        tail = self.tail(without)
        y = m * tail + filtered([0.0, self.ratio], self.ratio, tail)
        if m:
            y += np.convolve(without, np.arange(m) * self.head)[: len(without)]
        return y


def solve(stations: list[tuple[float, np.ndarray]], Z: float, N: np.ndarray):
    """Throughput (over N) and mean numbers (stations first) at populations `N` >= 1.

    `stations` are pairs of a positive demand and the capacities with 1, 2, .. present, the last one
    holding from there on. Raises ArithmeticError where N is too unlikely at every rate: throughput
    collapses, and either N or nearly none are stuck; always so with more than MANY customers.
    """
    X, Q = np.empty(len(N)), np.empty((len(stations), len(N)))
    top, left = int(N.max()), np.ones(len(N), dtype=bool)
    first = Z + sum(d / c[0] for d, c in stations)
    s = min([top / first, *(c[-1] / d for d, c in stations)])
    step = 0  # a guess; then a rate at which tails do not grow much; then any
    while True:
        inside = np.minimum(N, top)
        P, numbers = _at_rate(s, stations, Z, top, inside)
        here, before = P[inside], P[inside - 1]
        at = left & (np.minimum(here, before) > LEAST)
        np.multiply(s, np.divide(before, here, where=at, out=before), where=at, out=X)
        for k, number in enumerate(numbers):
            np.divide(number, here, where=at, out=Q[k])
        left &= ~at
        if not left.any():
            return X, Q
        largest = int(N[left].max())
        step = 1 if largest < top else step + 1
        if step > 2 or (step == 2 and top > MANY):
            raise ArithmeticError(f"N = {top} is too unlikely at any rate: throughput collapses")
        top = largest
        s = _rate(stations, Z, top, GROWTH if step == 1 else inf)


def _at_rate(s: float, stations: list[tuple[float, np.ndarray]], Z: float, top: int, N):
    """Probabilities of 0 .. top customers in all under rate s, and what gives those of stations,
    at populations `N`.
    """
    from scipy.signal import sosfilt

    thinking = np.zeros(top + 1)
    thinking[0] = 1.0
    if Z > 0:
        few = min(top, int(s * Z + 37 * sqrt(s * Z) + 450))  # beyond, a Poisson term is < NOTHING
        thinking[: few + 1] = _normalised(products(s * Z / np.arange(1, few + 1)))
    series = [_series(s * d / c, top) for d, c in stations]
    varying = [k for k, f in enumerate(series) if len(f.head)]
    sections = [[f.last, 0, 0, 1, -f.ratio, 0] for f in series if not len(f.head)]
    P = base = sosfilt(sections, thinking) if sections else thinking
    for k in varying:
        P = series[k].convolved(P)

    def numbers() -> Iterator[np.ndarray]:
        without = dict(_without(base, series, varying))
        if len(N) == 1:  # a filter gives all populations at once, a polynomial one of them sooner
            ratios = np.array([f.ratio for f in series if not len(f.head)])
            sums = iter(ratios * polynomials(P[: N[0]][::-1], ratios))
        for k, f in enumerate(series):
            if len(f.head):
                yield f.number(without[k])[N]
            elif len(N) == 1:
                yield next(sums)
            else:
                yield filtered([0.0, f.ratio], f.ratio, P)[N]

    return P, numbers()


def _without(g: np.ndarray, series: list[Series], among: list[int]):
    """Pairs (k, g convolved with all `among` but k): halves of the list share their work."""
    if len(among) == 1:
        yield among[0], g
    elif among:
        half = len(among) // 2
        for mine, others in ((among[:half], among[half:]), (among[half:], among[:half])):
            rest = g
            for k in others:
                rest = series[k].convolved(rest)
            yield from _without(rest, series, mine)


def _series(ratios: np.ndarray, top: int) -> Series:
    """Probabilities of up to `top` customers, from the ratios of neighbouring ones."""
    m = len(ratios) - 1
    ratio = float(ratios[-1])
    if m < top and (top - m) * log(ratio) > GROWTH:
        ratios = np.concatenate([ratios, np.full(top - m, ratio)])
        m = len(ratios) - 1
    if m > top:
        return Series(_normalised(products(ratios[:top])), 0.0, 0.0)
    if m == 0:
        return Series(ratios[:0], exp(-_log_sum(log(ratio), top)), ratio)
    terms = products(ratios[:-1])
    if terms[-1] == 0:
        return Series(_normalised(terms[: np.flatnonzero(terms)[-1] + 1]), 0.0, 0.0)
    total = terms[:-1].sum() + terms[-1] * exp(_log_sum(log(ratio), top - m))
    return Series(terms[:-1] / total, float(terms[-1] / total), ratio)


def _normalised(terms: np.ndarray) -> np.ndarray:
    return terms / terms.sum()


def products(a: np.ndarray) -> np.ndarray:
    """1, a_1, a_1 a_2, ... over the largest of them; 0 for what is less than NOTHING of it.

    Exponents are kept apart from mantissas, so that no product on the way overflows or is lost.
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
    """y(n) = b_0 g(n) + b_1 g(n - 1) + ratio y(n - 1)."""
    from scipy.signal import lfilter

    return lfilter(b, [1.0, -ratio], g)


def polynomials(p: np.ndarray, x: np.ndarray) -> np.ndarray:
    """p_0 + p_1 x + p_2 x^2 + ... at every x; in rows of a square, so that few powers do."""
    m = isqrt(len(p)) + 1
    square = np.zeros(m * m)
    square[: len(p)] = p
    place = np.arange(m)[:, None]
    return ((square.reshape(m, m) @ x**place) * x ** (m * place)).sum(0)


def _rate(stations: list[tuple[float, np.ndarray]], Z: float, N: int, growth: float) -> float:
    """Rate at which N customers are the mean, nearly: the likeliest to find N of them.

    No station holds more than N, so it may lie beyond a last capacity; but not so far that a tail
    grows by more than exp(growth).
    """
    series = [
        (np.concatenate([[0.0], np.cumsum(np.log(d / c[:-1]))]), d / c[-1]) for d, c in stations
    ]
    highest = [N / Z] if Z else []
    for d, c in stations:
        highest.append(c[:N].max() / d * exp(GROWTH / N))
        if len(c) <= N:
            highest.append(c[-1] / d * exp(min(growth / (N - len(c) + 1), 700)))
    low = log(N / (Z + N * sum(d / c.min() for d, c in stations))) - 1
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
    x = (n + 1) * a
    if abs(x) < 1e-9:
        return log(n + 1)
    if x > 0:  # largest term taken out
        return n * a + _log_sum(-a, n)
    return log(expm1(x) / expm1(a))


def _geometric_mean(a: float, n: int) -> float:
    """Mean of 0 .. n with weights exp(0), .. , exp(n a)."""
    if a > 0:
        return n - _geometric_mean(-a, n)
    if -(n + 1) * a < 1e-4:
        return n / 2
    return 1 / expm1(-a) - (n + 1) / expm1(min(-(n + 1) * a, 700.0))

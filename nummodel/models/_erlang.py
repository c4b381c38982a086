"""Erlang's formulas and M/M/c/K, computed at any load without overflow.

They take and give arrays and check nothing: `queueing` has the functions to call.
"""

from math import pi

import numpy as np

from nummodel.arguments import ordered

#: Terms of the series below that are summed: 1.4**-112 is less than rounding.
TERMS = 112


def erlang_b(a, c):
    """Erlang B, also for c = 0, to 12 digits; `a` and `c` are arrays.

    1/B = 1 + c/a + c (c-1)/a^2 + ... + c!/a^c, all terms positive. Where `c` is small or `a` large,
    few terms count and are summed. Elsewhere B is the last probability of a Poisson distribution
    that ends at c, which an incomplete gamma function gives.
    """
    from scipy.special import gammaincc

    a, c = np.broadcast_arrays(a, c)
    B = np.empty(a.shape)
    few = c <= TERMS
    B[few] = _recursion(a[few], c[few])
    with np.errstate(divide="ignore", invalid="ignore"):
        far = c * np.log1p((c - a) / a) - (c - a) > 600  # where both factors below would vanish
    heavy = ~few & ((a > 1.4 * c) | (far & (a > c)))
    if heavy.any():
        B[heavy] = _series(a[heavy], c[heavy])
    remaining = ~few & ~heavy
    a, c = a[remaining], c[remaining]
    # a^c exp(-a)/c! by Stirling's series, about its peak, so that no digits cancel.
    near_peak = c * np.log1p((c - a) / a) - (c - a)
    stirling = (1 - (1 - 2 / (7 * c**2)) / (30 * c**2)) / (12 * c)
    B[remaining] = np.exp(-near_peak - stirling) / np.sqrt(2 * pi * c) / gammaincc(c + 1, a)
    return np.minimum(B, 1.0)  # which rounding may exceed


def erlang_c(a, c):
    """Erlang C for c of at least 1, in a form in which no digits cancel at full load."""
    B = erlang_b(a, c)
    return np.where(a < c, np.minimum(B / ((c - a) / c + a / c * B), 1.0), 1.0)


def _series(a, c):
    """Erlang B by as many terms of its series as count, 1 + c/a (1 + (c-1)/a (1 + ...))."""
    terms = int(min(c.max(), np.ceil(38 / np.log((a / c).min()))))
    total, k = np.ones(a.shape), c - terms
    for _ in range(terms):
        k += 1
        total *= np.maximum(k, 0) / a
        total += 1
    return 1 / total


def _recursion(a, c, size=1 << 14):
    """Erlang B by v_n = v_(n-1)/a + 1/n!, which is 1/(B n!) with n servers.

    In order of c, so that step n is done at once for all stations of n servers or more. Only `size`
    stations are computed at a time, which stay in cache.
    """
    order = np.argsort(c.astype(np.int8), kind="stable")
    factorial = np.cumprod(np.maximum(np.arange(TERMS + 1.0), 1))
    B = np.empty(a.shape)
    for i in range(0, a.size, size):
        chunk = order[i : i + size]
        load, servers = a[chunk], c[chunk].astype(int)
        with np.errstate(divide="ignore"):
            x, v = 1 / load, np.ones(load.shape)
        for n, first in enumerate(np.searchsorted(servers, np.arange(1, servers[-1] + 1)), 1):
            larger = v[first:]
            larger *= x[first:]
            larger += 1 / factorial[n]
        B[chunk] = 1 / (v * factorial[servers])
    return B


def mmck(lamda, S, c, K):
    """Share turned away, throughput, and mean wait of M/M/c/K.

    The probability of n = c ... K present is rho^(n-c) times that of c present; Erlang B gives the
    probability of fewer than c. All of them are relative to the largest of those from c to K.
    """
    ordered({"c": c, "K": K}, "c", "K")
    from scipy.special import xlogy

    a, places = lamda * S, K - c
    rho = a / c
    falling = np.minimum(rho, 1 / rho)
    scale = np.exp(-xlogy(places, np.maximum(rho, 1)))
    full = np.exp(xlogy(places, np.minimum(rho, 1)))
    all_busy = _geometric(falling, places + 1)
    below = np.where(rho > 1, falling, 1.0) * _geometric(falling, places)
    # Both sides times B of one server less, which is 0 rather than infinite for a light load.
    B = erlang_b(a, c - 1)
    total, admitted = scale + B * rho * all_busy, scale + B * rho * below
    queue = B * all_busy * _truncated_mean(rho, places)
    return (
        np.minimum(B * rho * full / total, 1.0),
        lamda * admitted / total,
        S / c * queue / admitted,
    )


def _geometric(r, n):
    """1 + r + ... + r^(n-1) for r <= 1."""
    from scipy.special import xlogy

    return np.where(r == 1, n, np.expm1(xlogy(n, r)) / (r - 1))


def _truncated_mean(r, m):
    """Mean of j = 0 ... m with probabilities proportional to r^j."""
    h = -np.log(r)
    x = (m + 1) * h
    far = 1 / np.expm1(h) - (m + 1) / np.expm1(x)
    # Close to 1, where the two are nearly equal: their series by Bernoulli's numbers.
    near = m / 2 + sum(
        b * h**k * (1 - (m + 1) ** (k + 1)) for k, b in ((1, 1 / 12), (3, -1 / 720), (5, 1 / 30240))
    )
    return np.where(m == 0, 0.0, np.where(abs(x) < 0.1, near, far))

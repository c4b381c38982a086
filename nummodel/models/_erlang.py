"""Erlang's formulas, computed at any load without overflow.

They take and give arrays and check nothing: `queueing` has the functions to call.
"""

from math import pi

import numpy as np

#: Most servers for which all terms of the series below are summed: 1.4**-112 is below rounding.
TERMS = 112


def erlang_b(a, c):
    """Erlang B to 12 digits; `a` and `c` are arrays.

    1/B = 1 + c/a + c (c-1)/a^2 + ... + c!/a^c, all terms positive. Where `c` is small or `a` large,
    few terms count and are summed. Elsewhere B is the last probability of a Poisson distribution
    that ends at c, which an incomplete gamma function gives.
    """
    from scipy.special import gammaincc

    a, c = np.broadcast_arrays(a, c)
    B = np.empty(a.shape)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        near_peak = c * np.log1p((c - a) / a) - (c - a)
        heavy = (c > TERMS) & ((a > 1.4 * c) | ((near_peak > 600) & (a > c)))  # both factors vanish
        counting = np.minimum(c, np.ceil(38 / np.log(a / c)))
        for some, terms in ((c <= TERMS, c), (heavy, counting)):
            B[some] = _summed(a[some], c[some], int(terms[some].max(initial=0)))
    rest = (c > TERMS) & ~heavy
    a, c = a[rest], c[rest]
    # a^c exp(-a)/c! by Stirling's series, about its peak, so that no digits cancel.
    stirling = (1 - (1 - 2 / (7 * c**2)) / (30 * c**2)) / (12 * c)
    B[rest] = np.exp(-near_peak[rest] - stirling) / np.sqrt(2 * pi * c) / gammaincc(c + 1, a)
    return np.minimum(B, 1.0)  # which rounding may exceed


def erlang_c(a, c):
    """Erlang C for c of at least 1, in a form in which no digits cancel at full load."""
    B = erlang_b(a, c)
    return np.where(a < c, np.minimum(B / ((c - a) / c + a / c * B), 1.0), 1.0)


def _summed(a, c, terms):
    """Erlang B by the last terms of its series, 1 + c/a (1 + (c-1)/a (1 + ...))."""
    total, k = np.ones(a.shape), c - terms
    for _ in range(terms):
        k = k + 1
        total = np.where(k > 0, total * k / a, 0.0) + 1
    return 1 / total

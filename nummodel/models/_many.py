"""Closed systems of the same stations, many of them at once.

G(n), the normalising constant with n customers, gives X(n) = G(n - 1)/G(n) (Buzen 1973). A station
with k customers has the factor f(k), the product of its times per completion with 1 to k of them,
and joins a network by G(n) = sum of f(k) g(n - k), whose slope by the logarithm of its demand has
the terms k f(k) g(n - k); the mean number there is that slope over G(n). From some k on the time
stays the same, and the rest of each sum is a recurrence. G(n) is held in units of r(1) .. r(n),
where 1/r(n) is the bound of X(n), so that it is seldom too large for a float. Where it is, each
system is solved alone; and so is one of many customers, as what stations add to a sum may be too
small for a float: from 1,200 customers on, this has been seen to cost digits.
"""

import numpy as np

from nummodel.models import _convolution

#: Customers up to which systems are solved together.
TOGETHER = 512


@np.errstate(all="ignore")
def solve(times: list[np.ndarray], Z: np.ndarray, n: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """X at each population (rows) of each system (columns), and Q with stations first; NaN where
    they cannot be computed.

    `times` has an array for each station [s]: a row for each number of customers there, of which
    the last one holds for all larger numbers.
    """
    most, last = int(n.max()), [_changes(time) for time in times]
    X, Q = np.full((n.size, Z.size), np.nan), np.full((len(times), n.size, Z.size), np.nan)
    kinds = np.ceil(np.log2(1 + np.max(last, axis=0)) / 2)  # few servers take less time than many
    for kind in np.unique(kinds) if most <= TOGETHER else ():
        some = np.flatnonzero(kinds == kind)
        own = [time[: 1 + c[some].max(), some] for time, c in zip(times, last, strict=True)]
        every, numbers = _together(own, Z[some], most)
        X[:, some], Q[..., some] = every[n], numbers[:, n]
    for j in np.flatnonzero(np.isnan(X).any(axis=0)):
        own = [time[: 1 + c[j], j] for time, c in zip(times, last, strict=True)]
        D, speeds = np.array([t[0] for t in own]), [np.where(t > 0, t[0] / t, 1.0) for t in own]
        try:
            queues = np.ones(len(D), dtype=bool)
            X[:, j], Q[..., j] = _convolution.exact(D, speeds, queues, Z[j], n)
        except (ValueError, ArithmeticError):  # what a search may try, and none solves
            X[:, j] = np.nan
    return X, Q


def _changes(times: np.ndarray) -> np.ndarray:
    """With how many customers at most the time of each system is not yet the last one."""
    return np.max((times != times[-1]) * np.arange(1, len(times) + 1)[:, None], axis=0, initial=0)


def _together(times: list[np.ndarray], Z: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """X and Q with 0, 1, .. up to `most` customers of systems with about as many servers."""
    n = np.arange(1.0, most + 1)[:, None]
    longest = np.max([time[:most].min(axis=0) for time in times], axis=0)
    r = np.maximum((Z + sum(time[0] for time in times)) / n, longest)
    G = np.cumprod(np.vstack([np.ones((1, Z.size)), Z / n / r]), axis=0)[None]
    for time in times:
        G = _joined(G, time[:most], r)
    X = np.vstack([np.zeros((1, Z.size)), G[0, :-1] / G[0, 1:] / r])
    Q = G[1:] / G[0]
    good = (np.isfinite(X) & (X[-1] > 0)).all(axis=0) & np.isfinite(Q).all(axis=(0, 1))
    return np.where(good, X, np.nan), Q


def _joined(G: np.ndarray, times: np.ndarray, r: np.ndarray) -> np.ndarray:
    """G and its slopes with one more station, and the slope by the demand of that."""
    m, joined, f = len(times), np.concatenate([G, np.zeros_like(G[:1])]), np.ones_like(G[0])
    for k in range(1, m):
        f[k:] *= times[k - 1] / r[: len(r) - k + 1]
        terms = f[k:] * G[:, :-k]
        joined[:-1, k:] += terms
        joined[-1, k:] += k * terms[0]
    ratio = times[-1] / r[m - 1 :]
    begun = ratio * (f[m - 1 : -1] * G[:, :-m])
    terms = _recurred(ratio, begun)
    joined[:-1, m:] += terms
    joined[-1, m:] += _recurred(ratio, terms[:1] + (m - 1) * begun[:1])[0]
    return joined


def _recurred(ratio: np.ndarray, right: np.ndarray) -> np.ndarray:
    """y(i) = ratio(i) y(i - 1) + right(i) from y(-1) = 0 on, for each part of `right`.

    All systems are solved as one long system of equations. A ratio of 0 separates the first y of
    each from the last y of the one before.
    """
    from scipy.linalg.lapack import dtbtrs

    (count, systems), parts = ratio.shape, len(right)
    diagonals = np.ones((systems, count, 2))
    diagonals[:, :-1, 1], diagonals[:, -1, 1] = -ratio[1:].T, 0.0
    columns = right.transpose(2, 1, 0).reshape(-1, parts)
    y = dtbtrs(diagonals.reshape(-1, 2).T, columns, uplo="L", diag="U")[0]
    return y.reshape(systems, count, parts).transpose(2, 1, 0)

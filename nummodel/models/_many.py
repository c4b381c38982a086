"""Many closed systems at once: throughputs of the same stations with other quantities in each.

With G(n) the normalising constant of a network with n customers, X(n) = G(n - 1)/G(n) (Buzen 1973).
A station with k customers has the factor f(k), the product of D/speed(1) to D/speed(k), and adds
itself to a network by G(n) = sum of f(k) g(n - k). From some k on its speed stays the same, and
the rest of the sum is a geometric series. All G(n) are held in units of r(1) r(2) ... r(n), where
1/r(n) is the bound of X(n), so that none of them is too large for a float.
"""

import numpy as np


@np.errstate(all="ignore")
def throughputs(D: np.ndarray, speeds: list[np.ndarray], Z: np.ndarray) -> np.ndarray:
    """X at each population from 1 on (rows) of each system (columns).

    `D` [s] has a row for each station; `speeds` has an array for each station, its speed with as
    many customers as the row says, in units of its speed with one. NaN where floats do not do.
    """
    n = np.arange(1.0, len(speeds[0]) + 1)[:, None]
    cycle = Z + sum(d / speed[0] for d, speed in zip(D, speeds, strict=True))
    longest = np.max([d / speed.max(axis=0) for d, speed in zip(D, speeds, strict=True)], axis=0)
    r = np.maximum(cycle / n, longest)
    G = np.cumprod(np.vstack([np.ones_like(Z)[None], Z / n / r]), axis=0)
    for d, speed in zip(D, speeds, strict=True):
        G = _joined(G, d / speed, r)
    X = G[:-1] / G[1:] / r
    return np.where(np.isfinite(X) & (X > 0), X, np.nan)


def _joined(g: np.ndarray, times: np.ndarray, r: np.ndarray) -> np.ndarray:
    """G with one more station, whose customers leave every `times[k - 1]` if k are there."""
    changes = (times[1:] != times[:-1]).any(axis=1)
    same = int(np.flatnonzero(changes)[-1]) + 1 if changes.any() else 0  # speeds before the rest
    G, f = g.copy(), np.ones_like(g)  # f[n]: f(k) over r(n) r(n - 1) ... of k factors
    for k in range(1, same + 1):
        f[k:] *= times[k - 1] / r[: len(r) - k + 1]
        G[k:] += f[k:] * g[:-k]
    ratio, rest = times[-1] / r, np.zeros_like(g[0])
    if same:
        f[:same] = 0
        begun = np.vstack([np.zeros((same, g.shape[1])), f[same:] * g[:-same]])
    else:
        begun = g
    for i in range(same, len(r)):
        rest = ratio[i] * (rest + begun[i])
        G[i + 1] += rest
    return G

"""Many closed systems at once: throughputs of the same stations with other quantities in each.

With G(n) the normalising constant of a network with n customers, X(n) = G(n - 1)/G(n) (Buzen 1973).
A station with k customers has the factor f(k), the product of D/speed(1) to D/speed(k), and adds
itself to a network by G(n) = sum of f(k) g(n - k). From some k on its speed stays the same, and
the rest of the sum is a geometric series. All G(n) are held in units of r(1) r(2) ... r(n), where
1/r(n) is the bound of X(n), so that none of them is too large for a float.
"""

import numpy as np

#: Populations that are solved first, and how near to its bound a throughput is taken to stay there.
FIRST, FULL = 256, 1e-13


@np.errstate(all="ignore")
def throughputs(D: np.ndarray, speeds: list[np.ndarray], Z: np.ndarray) -> np.ndarray:
    """X at each population from 1 on (rows) of each system (columns).

    `D` [s] has a row for each station; `speeds` has an array for each station, its speed with as
    many customers as the row says, in units of its speed with one. NaN where floats do not do.
    """
    times = [d / speed for d, speed in zip(D, speeds, strict=True)]
    before = np.array([_before(time) for time in times])
    X, kind = np.empty(times[0].shape), np.ceil(np.log2(1 + before.max(axis=0)) / 2)
    for alike in (kind == k for k in np.unique(kind)):  # as few speeds take less time than many
        most = before[:, alike].max(axis=1).tolist()
        X[:, alike] = _alike([time[:, alike] for time in times], Z[alike], most)
    return np.where(np.isfinite(X) & (X > 0), X, np.nan)


def _before(times: np.ndarray) -> np.ndarray:
    """The most customers with whom the speed of each system still differs from its last speed."""
    other = times[:-1] != times[-1]
    return np.max(other * np.arange(1, len(times))[:, None], axis=0, initial=0)


def _alike(times: list[np.ndarray], Z: np.ndarray, before: list[int]) -> np.ndarray:
    """As `throughputs`, of systems with a similar number of servers. `before` has the highest value
    of `_before` for each station.
    """
    most = len(times[0])
    longest = np.max([time.min(axis=0) for time in times], axis=0)
    full = (Z + sum(time[0] for time in times)) / longest  # customers who would fill a station
    n = int(min(max(FIRST, 1.5 * full[np.isfinite(full)].max(initial=0.0)), most))
    X = _up_to(n, times, Z, longest, before)
    while n < most and (n <= max(before) or not (X[-1] * longest > 1 - FULL).all()):
        n *= 4
        X = _up_to(n, times, Z, longest, before)
    return X[np.minimum(np.arange(most), len(X) - 1)]


def _up_to(most: int, times: list, Z: np.ndarray, longest: np.ndarray, before: list) -> np.ndarray:
    """As `throughputs`, for at most so many customers."""
    n = np.arange(1.0, min(most, len(times[0])) + 1)[:, None]
    r = np.maximum((Z + sum(time[0] for time in times)) / n, longest)
    G = np.cumprod(np.vstack([np.ones_like(Z)[None], Z / n / r]), axis=0)
    for time, same in zip(times, before, strict=True):
        G = _joined(G, time[: len(n)], r, min(same, len(n) - 1))
    return G[:-1] / G[1:] / r


def _joined(g: np.ndarray, times: np.ndarray, r: np.ndarray, same: int) -> np.ndarray:
    """G with one more station, whose customers leave every `times[k - 1]` if k are there, and every
    `times[-1]` if more than `same` are.
    """
    G, f = g.copy(), np.ones_like(g)  # f[n]: f(k) over r(n) r(n - 1) ... of k factors
    for k in range(1, same + 1):
        f[k:] *= times[k - 1] / r[: len(r) - k + 1]
        G[k:] += f[k:] * g[:-k]
    begun = f[same:-1] * g[: -1 - same]
    G[same + 1 :] += _series(times[-1] / r[same:], begun)
    return G


def _series(ratio: np.ndarray, begun: np.ndarray) -> np.ndarray:
    """y with y[i] = ratio[i] (y[i - 1] + begun[i]), from y[-1] = 0 on.

    All columns are solved as one long system of equations. A coefficient of 0 separates the first y
    of each column from the last y of the previous column.
    """
    from scipy.linalg.lapack import dtbtrs

    count, systems = ratio.shape
    matrix = np.empty((systems, count, 2))  # the diagonal, and what is below it
    matrix[:, :, 0] = 1.0
    matrix[:, :-1, 1] = -ratio[1:].T
    matrix[:, -1, 1] = 0.0
    right = (ratio * begun).T.reshape(-1, 1)
    y, _ = dtbtrs(matrix.reshape(-1, 2).T, right, uplo="L", diag="U", overwrite_b=True)
    if systems > 1 and not np.isfinite(y).all():  # 0 times infinity or NaN is NaN
        columns = (np.s_[:, j : j + 1] for j in range(systems))
        return np.hstack([_series(ratio[column], begun[column]) for column in columns])
    return y.reshape(systems, count).T


def per_second(X: np.ndarray, D: np.ndarray) -> np.ndarray:
    """How many customers are at a station of one server, per second of its demand D: Q(n)/D, from
    X(n) by Q(n) = D X(n) (1 + Q(n - 1)) (Reiser and Lavenberg 1980).
    """
    with np.errstate(all="ignore"):
        return np.where(D > 0, _series(D * X, np.ones_like(X)) / np.where(D > 0, D, 1.0), X)

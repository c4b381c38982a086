"""Single stations: how long customers wait for a server.

Customers arrive at rate `lamda`, or after a think time `Z`. Each of `c` servers takes a time `S` on
average, and the first to come is the first to be served. A result is a function `<model>_<result>`
of scalars or arrays of any broadcastable shape, in seconds. The wait of an unstable station is
`inf`.

For every station `R` is `W + S`, and the number present is `operational.little_population` of
throughput and `R`. Throughput is `lamda`, or N/(Z + R) of M/M/c//N.

Kleinrock, Queueing Systems I (1975); Allen, Probability, Statistics, and Queueing Theory (1990).
"""

from inspect import unwrap
from math import log, pi

import numpy as np

from nummodel.arguments import feasible, ordered, station, valid
from nummodel.formula import formula
from nummodel.models import _chain

#: Most servers for which all terms of Erlang B are summed: 1.4**-112 is below rounding.
TERMS = 112
#: Most terms of the shares of a closed system whose percentile is searched for.
STATES = 20_000


def while_stable(rho, value):
    """`value` where the utilisation `rho` is below 1, infinite elsewhere."""
    import sympy as sp

    return sp.Piecewise((value, rho < 1), (sp.oo, True))


@formula("W", valid)
def mm1_waiting(lamda, S):
    """M/M/1: mean wait before service; Poisson arrivals, exponential service, one server.

    >>> mm1_waiting(lamda=[0.0, 0.5, 0.9375, 1.0], S=1.0)
    array([ 0.,  1., 15., inf])
    """
    return while_stable(lamda * S, lamda * S**2 / (1 - lamda * S))


@formula("R", valid)
def mm1_response(lamda, S):
    """M/M/1: mean response time, waiting included."""
    return while_stable(lamda * S, S / (1 - lamda * S))


@formula("W", valid)
def mg1_waiting(lamda, S, cv2):
    """M/G/1: mean wait, where `cv2` is the variance of service over its mean squared.

    The formula of Pollaczek and Khinchine. With constant service (0) the wait is half of that with
    exponential service (1).

    >>> mg1_waiting(lamda=0.5, S=1.0, cv2=[0, 1, 10])
    array([0.5, 1. , 5.5])
    """
    return while_stable(lamda * S, lamda * S**2 / (1 - lamda * S) * (1 + cv2) / 2)


@station
def erlang_b(a, c):
    """Erlang B: share of calls that `c` lines without a queue lose, at an offered load `a`.

    1/B = 1 + c/a + c (c-1)/a^2 + ... + c!/a^c, all terms positive. Where `c` is small or `a` large,
    few terms count and are summed. Elsewhere B is the last probability of a Poisson distribution
    that ends at c, which an incomplete gamma function gives. B has 12 digits, at any load.

    >>> erlang_b(a=95, c=[1, 100, 10_000])
    array([0.98958333, 0.04880421, 0.        ])
    """
    from scipy.special import gammaincc

    a, c = np.broadcast_arrays(a, c)
    near_peak = c * np.log1p((c - a) / a) - (c - a)
    vanish = (a > 1.4 * c) | ((near_peak > 600) & (a > c))  # both factors at the end
    summed, few = (c <= TERMS) | vanish, np.where(vanish, np.ceil(38 / np.log(a / c)), c)
    terms, inverse = np.where(summed, np.minimum(few, c), 0), np.ones(a.shape)
    for left in range(int(terms.max(initial=0)), 0, -1):  # 1 + c/a (1 + (c - 1)/a (1 + ...))
        some = terms >= left
        inverse[some] = inverse[some] * (c[some] - left + 1) / a[some] + 1
    # a^c exp(-a)/c! by Stirling's series, about its peak, so that no digits cancel.
    stirling = (1 - (1 - 2 / (7 * c**2)) / (30 * c**2)) / (12 * c)
    many = np.exp(-near_peak - stirling) / np.sqrt(2 * pi * c) / gammaincc(c + 1, a)
    return np.minimum(np.where(summed, 1 / inverse, many), 1.0)  # which rounding may exceed


@station
def erlang_c(a, c):
    """Erlang C: share of customers that find all `c` servers of M/M/c busy; 1 from a = c on.

    >>> erlang_c(a=[0.5, 8, 12], c=[1, 10, 10])
    array([0.5       , 0.40918015, 1.        ])
    """
    B = unwrap(erlang_b)(a, c)
    return np.where(a < c, np.minimum(B / ((c - a) / c + a / c * B), 1.0), 1.0)


@station
def mmc_waiting(lamda, S, c):
    """M/M/c: mean wait where `c` servers serve one queue.

    >>> mmc_waiting(lamda=[0.9, 1.8, 14.4, 16], S=1.0, c=[1, 2, 16, 16])
    array([9.        , 4.26315789, 0.36958962,        inf])
    """
    a = lamda * S
    return np.where(a < c, unwrap(erlang_c)(a, c) * S / (c - a), np.inf)


@station
def mmc_response(lamda, S, c):
    """M/M/c: mean response time."""
    return S + mmc_waiting(lamda, S, c)


@station
def mmc_waiting_percentile(lamda, S, c, p):
    """M/M/c: the wait that a share `p` does not exceed; 0 for those who find a server free.

    >>> mmc_waiting_percentile(1.8, 1.0, 2, [0.1, 0.5, 0.95])
    array([ 0.        ,  2.66859722, 14.18152268])
    """
    a = lamda * S
    C = unwrap(erlang_c)(a, c)
    later = S / (c - a) * np.maximum(np.log(C) - np.log1p(-p), 0)
    return np.where(C < 1, np.where(1 - p >= C, 0.0, later), np.inf)


@station
def mmc_response_percentile(lamda, S, c, p):
    """M/M/c: the response time that a share `p` does not exceed, found by a root search.

    >>> mmc_response_percentile(1.8, 1.0, 2, [0.5, 0.95])
    array([ 3.76915938, 15.29723894])
    """
    from scipy.optimize.elementwise import find_root
    from scipy.special import exprel

    lamda, S, c, p = np.broadcast_arrays(lamda, S, c, p)
    C, y = unwrap(erlang_c)(lamda * S, c), -np.log1p(-p)
    spare = c - lamda * S  # rate at which the queue drains, service being 1

    def excess(x, C, spare, y):
        """-log P(response > x services) - y; the slower exponential is taken out of P."""
        slow, gap = np.minimum(spare, 1), abs(spare - 1)
        rest = np.where(spare < 1, np.expm1(-gap * x), 0) + C * x * exprel(-gap * x)
        return slow * x - np.log1p(rest) - y

    # At least the percentile of service alone; at most the sum of the percentiles of wait and of
    # service that half of 1 - p exceed.
    half = y + log(2)
    end = half + np.maximum(np.log(C) + half, 0) / spare
    response = S * find_root(excess, (y, end), args=(C, spare, y)).x
    return np.where(S == 0, 0.0, np.where((spare > 0) & (p < 1), response, np.inf))


@formula("W", valid)
def allen_cunneen_waiting(W_mmc, cv2_a, cv2):
    """The wait of M/M/c, scaled by the variability of arrivals and service.

    Exact for M/M/c and M/G/1, else an approximation, good in heavy traffic.
    """
    return W_mmc * (cv2_a + cv2) / 2


@station
def ggc_waiting(lamda, S, c, cv2_a, cv2):
    """G/G/c: mean wait by Allen and Cunneen; with cv2_a = 1 it is M/G/c.

    `cv2_a` and `cv2` are variance over mean squared, of the times between arrivals and of service.
    With c = 1 it is S rho/(1 - rho) (cv2_a + cv2)/2, which many call Kingman's formula. Kingman's
    bound is another (1962, Some inequalities for the queue GI/G/1, Biometrika 49): it has
    cv2_a/rho^2 in the place of cv2_a. With arrivals in batches the wait may be many times this one.

    >>> ggc_waiting(1.8, 1.0, 2, cv2_a=[0, 1, 1], cv2=[0, 0, 1])
    array([0.        , 2.13157895, 4.26315789])
    """
    stable = lamda * S < c
    wait = np.where(stable, mmc_waiting(lamda, S, c), 0.0)
    return np.where(stable, allen_cunneen_waiting(wait, cv2_a, cv2), np.inf)


@station
def mmck_blocking(lamda, S, c, K):
    """M/M/c/K: share of the arrivals turned away because all `K` places are taken.

    >>> mmck_blocking(lamda=4, S=1, c=5, K=[5, 12])
    array([0.19906687, 0.02562322])
    """
    from scipy.special import xlogy

    ordered({"c": c, "K": K}, "c", "K")
    rho, places = lamda * S / c, K - c
    # Of n = c ... K present, over the largest: all places taken, nobody waits, and up to K - 1.
    low, step = np.minimum(rho, 1), np.minimum(rho, 1 / rho)
    full, none = np.exp(xlogy(places, low)), np.exp(-xlogy(places, np.maximum(rho, 1)))
    fewer = np.where(rho == 1, places, np.expm1(xlogy(places, step)) / (step - 1))
    B = unwrap(erlang_b)(lamda * S, c)
    return np.minimum(B * full / (none + B * low * fewer), 1.0)


@station
def repairman_waiting(N, S, c, Z):
    """M/M/c//N: mean wait of `N` threads that think for `Z` between two services, at any load.

    This is the machine repairman: machines that run for `Z` until one of `c` men repairs them.

    >>> repairman_waiting(N=[1, 8, 50, 90], S=4, c=8, Z=10)
    array([ 0.        ,  0.        , 11.00002235, 31.        ])
    """
    N, S, c, Z = np.broadcast_arrays(N, S, c, Z)
    # If at most n could be present: the probability `last` of n, and the means `busy` of servers
    # and `queue` of waiting threads. All of these stay positive and at most N.
    last, busy, queue = np.ones(N.shape), np.zeros(N.shape), np.zeros(N.shape)
    most = min(_chain.THREADS, _chain.FIGURES // max(N.size, 1))
    feasible("N", N.max(initial=0), most, "one step for each; networks.solve takes more")
    for n in range(1, int(N.max(initial=0)) + 1):
        arriving = last * np.maximum(N - n + 1, 0) * S
        leaving = np.minimum(n, c) * Z
        last = np.where(arriving > 0, arriving / (arriving + leaving), 0.0)
        busy = busy + last * (np.minimum(n, c) - busy)
        queue = queue + last * (np.maximum(n - c, 0) - queue)
    return np.where(queue > 0, S * queue / busy, 0.0)


@station
def repairman_waiting_percentile(N, S, c, Z, p):
    """M/M/c//N: the wait that a share `p` does not exceed, first come, first served.

    A thread finds what the N - 1 others make of the system, and waits until all but c - 1 of those
    whom it finds are gone.

    >>> repairman_waiting_percentile(N=[1, 8, 64], S=1.0, c=1, Z=16.0, p=0.95).round(2)
    array([ 0.  ,  3.05, 60.6 ])
    """
    from scipy.optimize.elementwise import find_root
    from scipy.special import gammaincc, gammainccinv

    N, S, c, Z, p = np.broadcast_arrays(N, S, c, Z, p)
    most = int(N.max(initial=1))
    feasible("N", most, STATES // max(N.size, 1), "a root search with one term for each thread")
    found = np.arange(1, max(most, 2)).reshape(-1, *(1,) * N.ndim)
    coming = np.maximum(N - found, 0) * S / (np.minimum(found, c) * np.maximum(Z, 1e-300))
    _, shares = _chain.shares(coming)
    ahead = np.maximum(found - c + 1, 0)  # who has to leave before

    def excess(x, p, *columns):
        ahead, shares = np.split(np.array(columns), 2)
        return (shares * gammaincc(ahead, x)).sum(0) - (1 - p)

    some = (shares * (ahead > 0)).sum(0) > 1 - p
    # At most the wait behind all others, and a little more, so that rounding cannot hide the root.
    end = 1.001 * gammainccinv(np.maximum(N - c, 1), np.maximum(1 - p, 1e-300))
    columns = [*np.broadcast_to(ahead, shares.shape), *shares]
    root = find_root(excess, (0.0 * end + 1e-300, end), args=(p, *columns))
    wait = np.where(some, root.x * S / c, 0.0)
    return np.where(some & (p == 1), np.inf, wait)

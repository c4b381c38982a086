"""Single stations: how long one waits for a server, and how many wait.

Customers arrive at rate `lamda`, or after a think time `Z`; each of `c` servers takes a time `S` on
average; who comes first is served first. A result is a function `<model>_<result>` of scalars or
arrays of any broadcastable shape, in seconds; `R` is `W + S`, and `Q` is throughput times `R`.
What an unstable station waits is `inf`. An argument that makes no sense raises a ValueError that
names it.

Kleinrock, Queueing Systems I (1975); Allen, Probability, Statistics, and Queueing Theory (1990).
"""

from math import log

import numpy as np

from nummodel.arguments import feasible, station, valid
from nummodel.formula import formula
from nummodel.models import _erlang

#: Threads of a repairman's shop, one step for each, and figures for a grid of shops: some seconds.
THREADS, FIGURES = 100_000, 10**8


def while_stable(rho, value):
    """`value` as long as the server is not busy all the time, infinite from there on."""
    import sympy as sp

    return sp.Piecewise((value, rho < 1), (sp.oo, True))


@formula("W", valid)
def mm1_waiting(lamda, S):
    """M/M/1: mean wait before service; Poisson arrivals, exponential service, one server.

    >>> mm1_waiting(lamda=0.5, S=1.0), mm1_waiting(lamda=0.9375, S=1.0)
    (1.0, 15.0)
    >>> mm1_waiting(lamda=[0.0, 1.0], S=1.0)
    array([ 0., inf])
    """
    return while_stable(lamda * S, lamda * S**2 / (1 - lamda * S))


@formula("R", valid)
def mm1_response(lamda, S):
    """M/M/1: mean response time, waiting included.

    >>> mm1_response(lamda=0.5, S=1.0)
    2.0
    """
    return while_stable(lamda * S, S / (1 - lamda * S))


@formula("Q", valid)
def mm1_population(lamda, S):
    """M/M/1: mean number present, the one in service included.

    >>> mm1_population(lamda=0.5, S=1.0)
    1.0
    """
    return while_stable(lamda * S, lamda * S / (1 - lamda * S))


@station
def mm1_waiting_percentile(lamda, S, p):
    """M/M/1: the wait that a share `p` of the customers does not exceed; 0 for p up to 1 - rho.

    >>> mm1_waiting_percentile(0.5, 1.0, [0.5, 0.95])
    array([0.        , 4.60517019])
    """
    return _waiting_percentile(lamda * S, S / (1 - lamda * S), p)


@station
def mm1_response_percentile(lamda, S, p):
    """M/M/1: the response time that a share `p` does not exceed; it is exponential.

    >>> mm1_response_percentile(0.5, 1.0, 0.95)
    5.99146...
    """
    from scipy.special import xlog1py

    return np.where(lamda * S < 1, -xlog1py(S, -p) / (1 - lamda * S), np.inf)


@formula("W", valid)
def mg1_waiting(lamda, S, cv2):
    """M/G/1: mean wait where service varies by `cv2`, its variance over its mean squared.

    Pollaczek and Khinchine. Constant service (0) waits half as long as exponential service (1).

    >>> mg1_waiting(lamda=0.5, S=1.0, cv2=[0, 1, 10])
    array([0.5, 1. , 5.5])
    """
    return while_stable(lamda * S, lamda * S**2 / (1 - lamda * S) * (1 + cv2) / 2)


@formula("R", valid)
def mg1_response(lamda, S, cv2):
    """M/G/1: mean response time.

    >>> mg1_response(lamda=0.5, S=1.0, cv2=10)
    6.5
    """
    return while_stable(lamda * S, S + lamda * S**2 / (1 - lamda * S) * (1 + cv2) / 2)


@formula("Q", valid)
def mg1_population(lamda, S, cv2):
    """M/G/1: mean number present.

    >>> mg1_population(lamda=0.5, S=1.0, cv2=10)
    3.25
    """
    rho = lamda * S
    return while_stable(rho, rho + rho**2 / (1 - rho) * (1 + cv2) / 2)


@formula("W", valid)
def mg1_vacation_waiting(lamda, S, cv2, vacation, cv2_v):
    """M/G/1 whose server, whenever it has nothing to do, is away for vacations, one after another.

    The wait without them, and what is left of a vacation (Bertsekas and Gallager, Data Networks).

    >>> mg1_vacation_waiting(lamda=0.5, S=1.0, cv2=1, vacation=0.2, cv2_v=0)
    1.1
    """
    wait = lamda * S**2 / (1 - lamda * S) * (1 + cv2) / 2
    return while_stable(lamda * S, wait + vacation * (1 + cv2_v) / 2)


@station
def erlang_b(a, c):
    """Share of calls lost by `c` lines without a queue, offered a load of `a` calls at a time.

    >>> erlang_b(a=0.5, c=1)
    0.333333...
    >>> erlang_b(a=95, c=[1, 100, 10_000])
    array([0.98958333, 0.04880421, 0.        ])
    """
    return _erlang.erlang_b(a, c)


@station
def erlang_c(a, c):
    """Share of customers that find all `c` servers of M/M/c busy; all of them from a = c on.

    >>> erlang_c(a=[0.5, 1.0, 2.0], c=1)
    array([0.5, 1. , 1. ])
    >>> erlang_c(a=8, c=10)
    0.409180...
    """
    return _erlang.erlang_c(a, c)


@station
def mmc_waiting(lamda, S, c):
    """M/M/c: mean wait where `c` servers serve one queue.

    >>> mmc_waiting(lamda=[0.9, 1.8, 14.4], S=1.0, c=[1, 2, 16])
    array([9.        , 4.26315789, 0.36958962])
    >>> mmc_waiting(lamda=2.0, S=1.0, c=2)
    inf
    """
    a = lamda * S
    return np.where(a < c, _erlang.erlang_c(a, c) * S / (c - a), np.inf)


@station
def mmc_response(lamda, S, c):
    """M/M/c: mean response time.

    >>> mmc_response(lamda=1.8, S=1.0, c=2)
    5.263157...
    """
    return S + mmc_waiting(lamda, S, c)


@station
def mmc_population(lamda, S, c):
    """M/M/c: mean number present, those in service included.

    >>> mmc_population(lamda=1.8, S=1.0, c=2)
    9.473684...
    """
    a = lamda * S
    return np.where(a < c, a + lamda * mmc_waiting(lamda, S, c), np.inf)


@station
def mmc_waiting_percentile(lamda, S, c, p):
    """M/M/c: the wait that a share `p` does not exceed; 0 for those who find a server free.

    >>> mmc_waiting_percentile(1.8, 1.0, 2, [0.1, 0.5, 0.95])
    array([ 0.        ,  2.66859722, 14.18152268])
    """
    a = lamda * S
    return _waiting_percentile(_erlang.erlang_c(a, c), S / (c - a), p)


@station
def mmc_response_percentile(lamda, S, c, p):
    """M/M/c: the response time that a share `p` does not exceed.

    Solved for, since waiting and service are exponentials of different length; where the two
    coincide nothing special happens.

    >>> mmc_response_percentile(1.8, 1.0, 2, [0.5, 0.95])
    array([ 3.76915938, 15.29723894])
    """
    from scipy.optimize.elementwise import find_root
    from scipy.special import exprel

    lamda, S, c, p = np.broadcast_arrays(lamda, S, c, p)
    known = (lamda * S < c) & (p < 1)
    C = np.where(known, _erlang.erlang_c(lamda * S, c), 0.0)
    spare = np.where(known, c - lamda * S, 1.0)  # rate at which the queue drains, service being 1
    y = np.where(known, -np.log1p(-p), 0.0)

    def excess(x, C, spare, y):
        """-log P(response > x services) - y; the slower exponential is taken out of P."""
        slow, gap = np.minimum(spare, 1), abs(spare - 1)
        rest = np.where(spare < 1, np.expm1(-gap * x), 0) + C * x * exprel(-gap * x)
        return slow * x - np.log1p(rest) - y

    # Longer than service alone; one of wait and service exceeds what half of 1 - p exceed of it.
    half = y + log(2)
    end = half + np.maximum(np.log(C) + half, 0) / spare
    found = S * find_root(excess, (y, end), args=(C, spare, y)).x
    return np.where(known | (S == 0), found, np.inf)


@formula("W", valid)
def allen_cunneen_waiting(W_mmc, cv2_a, cv2):
    """The wait of M/M/c, scaled by the variability of arrivals and service.

    Exact for M/M/c and M/G/1, else an approximation, good in heavy traffic.

    >>> allen_cunneen_waiting(W_mmc=9.0, cv2_a=1, cv2=0)
    4.5
    """
    return W_mmc * (cv2_a + cv2) / 2


@station
def ggc_waiting(lamda, S, c, cv2_a, cv2):
    """G/G/c: mean wait by Allen and Cunneen; with cv2_a = 1 it is M/G/c.

    `cv2_a` and `cv2` are variance over mean squared, of the times between arrivals and of service.
    With c = 1 it is S rho/(1 - rho) (cv2_a + cv2)/2, which many call Kingman's formula. It is not
    his bound (1962, Some inequalities for the queue GI/G/1, Biometrika 49), which has cv2_a/rho^2
    in the place of cv2_a: where arrivals come in batches the wait may be many times this one.

    >>> ggc_waiting(1.8, 1.0, 2, cv2_a=[0, 1, 1], cv2=[0, 0, 1])
    array([0.        , 2.13157895, 4.26315789])
    """
    stable = lamda * S < c
    wait = np.where(stable, mmc_waiting(lamda, S, c), 0.0)
    return np.where(stable, allen_cunneen_waiting(wait, cv2_a, cv2), np.inf)


@station
def ggc_response(lamda, S, c, cv2_a, cv2):
    """G/G/c: mean response time by Allen and Cunneen.

    >>> ggc_response(1.8, 1.0, 2, cv2_a=1, cv2=0)
    3.131578...
    """
    return S + ggc_waiting(lamda, S, c, cv2_a, cv2)


@station
def ggc_population(lamda, S, c, cv2_a, cv2):
    """G/G/c: mean number present by Allen and Cunneen.

    >>> ggc_population(1.8, 1.0, 2, cv2_a=1, cv2=0)
    5.636842...
    """
    a = lamda * S
    return np.where(a < c, a + lamda * ggc_waiting(lamda, S, c, cv2_a, cv2), np.inf)


@station
def mmck_blocking(lamda, S, c, K):
    """M/M/c/K: share of the arrivals turned away because all `K` places are taken.

    >>> mmck_blocking(lamda=4, S=1, c=5, K=[5, 12])
    array([0.19906687, 0.02562322])
    """
    return _erlang.mmck(lamda, S, c, K)[0]


@station
def mmck_throughput(lamda, S, c, K):
    """M/M/c/K: throughput, which is what is not turned away, at any load.

    >>> mmck_throughput(lamda=[4, 1e9], S=1, c=5, K=12)
    array([3.89750712, 5.        ])
    """
    return _erlang.mmck(lamda, S, c, K)[1]


@station
def mmck_waiting(lamda, S, c, K):
    """M/M/c/K: mean wait of those who get in.

    >>> mmck_waiting(lamda=4, S=1, c=5, K=[5, 12])
    array([0.        , 0.31140573])
    """
    return _erlang.mmck(lamda, S, c, K)[2]


@station
def mmck_response(lamda, S, c, K):
    """M/M/c/K: mean response time of those who get in.

    >>> mmck_response(lamda=4, S=1, c=5, K=12)
    1.311405...
    """
    return S + mmck_waiting(lamda, S, c, K)


@station
def mmck_population(lamda, S, c, K):
    """M/M/c/K: mean number present.

    >>> mmck_population(lamda=[4, 1e12], S=1, c=5, K=12)
    array([ 5.11121319, 12.        ])
    """
    return mmck_throughput(lamda, S, c, K) * mmck_response(lamda, S, c, K)


@station
def repairman_waiting(N, S, c, Z):
    """M/M/c//N: mean wait of `N` threads that think for `Z` between two services, at any load.

    Machine repairman: the threads are machines, which run for `Z` until one of `c` men mends them.

    >>> repairman_waiting(N=[1, 8, 50, 90], S=4, c=8, Z=10)
    array([ 0.        ,  0.        , 11.00002235, 31.        ])
    """
    N, S, c, Z = np.broadcast_arrays(N, S, c, Z)
    # With n present: the probability `last`, and the means that `busy` and `queue` would have if
    # no more than n could be. Everything stays positive and below N, so nothing can go wrong.
    last, busy, queue = np.ones(N.shape), np.zeros(N.shape), np.zeros(N.shape)
    most = min(THREADS, FIGURES // max(N.size, 1))
    feasible("N", N.max(initial=0), most, "one step for each; networks.solve takes more")
    for n in range(1, int(N.max(initial=0)) + 1):
        arriving = last * np.maximum(N - n + 1, 0) * S
        leaving = np.minimum(n, c) * Z
        last = np.where(arriving > 0, arriving / (arriving + leaving), 0.0)
        busy = busy + last * (np.minimum(n, c) - busy)
        queue = queue + last * (np.maximum(n - c, 0) - queue)
    return np.where(queue > 0, S * queue / busy, 0.0)


@station
def repairman_response(N, S, c, Z):
    """M/M/c//N: mean response time, thinking not included.

    >>> repairman_response(N=90, S=4, c=8, Z=10)
    35.0
    """
    return S + repairman_waiting(N, S, c, Z)


@station
def repairman_throughput(N, S, c, Z):
    """M/M/c//N: throughput.

    >>> repairman_throughput(N=[1, 10, 90], S=4, c=8, Z=10)
    array([0.07142857, 0.7142777 , 2.        ])
    """
    return np.where(N > 0, N / (Z + repairman_response(N, S, c, Z)), 0.0)


@station
def repairman_population(N, S, c, Z):
    """M/M/c//N: mean number not thinking.

    >>> repairman_population(N=90, S=4, c=8, Z=10)
    70.0
    """
    R = repairman_response(N, S, c, Z)
    return np.where(R > 0, N * R / (Z + R), 0.0)


def _waiting_percentile(C, mean, p):
    """Percentile of a wait that is 0 with probability 1 - C, else exponential; C is 1: unstable."""
    known = np.where(1 - p >= C, 0.0, mean * np.maximum(np.log(C) - np.log1p(-p), 0))
    return np.where(C < 1, known, np.inf)

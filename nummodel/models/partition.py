"""A partition with more logical processors than real ones: the cost of a preempted lock holder.

N logical processors share c real ones, as in a capped LPAR or on an overcommitted host. Each runs
for a while and is then off the real processors for x times as long, where x = N/c - 1. If a
processor is taken away while it holds the lock, it keeps the lock until it is back. The processors
that ask for the lock meanwhile spin, and while they have a real processor, they waste its time.

`spin` is exact for a protocol in which each processor is taken away and comes back by itself, after
exponential times, in the limit of a hold time S that is short beside these times. Two numbers say
how good `spin` is otherwise. A share rho = lamda S (1 + x) of the time somebody has the lock, the
absences of its holder included. While the holder is away, a processor that did not wait would ask
for the lock u = lamda x/(N nu) times. Compared with the protocol for N = 16 (`tests/protocol.py`,
and its Markov chain), `spin` has these errors:

| u | rho = 0.01, x = 1 | rho = 0.1, x = 1 | rho = 0.1, x = 4 |
|---|---|---|---|
| 0.1 | -2 % | -17 % | -12 % |
| 1 | 0 | -5 % | -4 % |
| 10 | 0 | -1 % | -1 % |

Where 12 processors share 3 real ones in turn, times away are regular: there, at rho = 0.1, the
error is +13 % (u = 0.3) and +1 % (u = 1), by a simulation whose half-width is a tenth of the share.
"""

import numpy as np

from nummodel.arguments import continuous, within
from nummodel.formula import formula


def _valid(values):
    """The arguments, checked: c need not be whole, and the lock is in use at most all the time."""
    given = continuous(values)
    within("N", given["N"], 1)
    known = given | {"c": np.minimum(given["N"], given["c"])}
    with np.errstate(all="ignore"):
        requests = given["lamda"] if "lamda" in given else given["v"] * _at_cap(**known)
        in_use = requests * given["S"] * given["N"] / known["c"]
    name = ("lamda" if "lamda" in given else "v X") + " S N/c, the lock's utilisation,"
    within(name, in_use, 0, 1 + 1e-9, empty=True)
    return given


@formula("spin", _valid)
def spin(N, lamda, c, S, nu):
    """Share of N logical processors on c real ones that spin for one lock, its hold time S short.

    With lamda requests per second, the holder is away for a share lamda S x of the time. If
    processors are taken away seldom (`nu` times per second of running), absences are long, and all
    others come to spin: a share lamda S x (1 - 1/N). If processors are taken away often, few ask
    during an absence, and the share grows as lamda^2 x^2.

    >>> spin(N=32, lamda=3e4, c=8, S=1e-6, nu=[0.0, 1e4, 1e8]).round(5)
    array([0.08719, 0.02706, 0.     ])
    >>> spin(N=8, lamda=3e4, c=8, S=1e-6, nu=1.0)  # a real processor for each
    0.0

    Raises ValueError for more requests than the lock can serve, one every S N/c.
    """
    import sympy as sp

    x = N / _real(N, c) - 1
    ask, back = 2 * lamda * x * (1 + x), N * nu * (2 + x)
    share = (1 - 1 / N) * lamda * S * x * ask / (ask + back)
    return sp.Piecewise((share, (N > c) & (lamda > 0)), (0, True))


@formula("X_full", _valid)
def throughput(N, c, D0, g, S, v):
    """Throughput at full utilisation of N logical processors that share c real ones: X N/c.

    A transaction needs `D0`, and `g` times the processor time that is spun meanwhile: of the Q
    processors that spin, a share c/N is dispatched. The cap is used up: c = X (D0 + g (c/N) Q/X),
    with Q of `spin_at_cap`. Without lock requests, throughput grows as N:

    >>> throughput(N=[6, 12], c=6, D0=1e-3, g=2, S=1e-6, v=[[10], [0]]).round(1)
    array([[ 6000. , 10810.8],
           [ 6000. , 12000. ]])

    Raises ValueError where not the cap but the lock would be the limit: v X S N/c above 1.
    """
    real = _real(N, c)
    return _at_cap(N, real, D0, g, S, v) * N / real


@formula("spin", _valid)
def spin_at_cap(N, c, D0, g, S, v):
    """Share of N logical processors that spin where `throughput` runs at its cap: that of `spin`
    with v requests for each transaction, for processors that are taken away seldom.

    >>> spin_at_cap(N=12, c=6, D0=1e-3, g=2, S=1e-6, v=10)
    0.0495...

    Raises ValueError as `throughput` does.
    """
    real = _real(N, c)
    return (1 - 1 / N) * v * _at_cap(N, real, D0, g, S, v) * S * (N / real - 1)


def _real(N, c):
    """Real processors in use: no more than there are logical ones."""
    from sympy import Min

    return Min(N, c)


def _at_cap(N, c, D0, g, S, v):
    """Transactions per second of c real processors, at most N: c = X (D0 + g c/N Q/X), with Q of
    `spin_at_cap`, solved for X.
    """
    return c / (D0 + g * (c / N) * (N - 1) * v * S * (N / c - 1))

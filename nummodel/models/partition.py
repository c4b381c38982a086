"""A partition with more logical processors than real ones: what a lock costs when its holder is
taken away.

N logical processors share c real ones, as in a capped LPAR or on an overcommitted host: each runs
for a while and is then away for x = N/c - 1 times as long. Whoever holds a lock when it is taken
away holds it until it is back, and those who ask for it spin: some of the time on a real processor.

`spin` is exact for the protocol in which each processor is taken away and comes back by itself
after exponential times, as the hold time S goes to zero beside them. Held against that protocol
(`tests/protocol.py`, and its Markov chain), N = 16, it is off by as much as this where the lock is
in use for a share rho = lamda S (1 + x) of the time, absences included; u = lamda x/(N nu) is how
often each would ask while a holder is away:

| u | rho = 0.01, x = 1 | rho = 0.1, x = 1 | rho = 0.1, x = 4 |
|---|---|---|---|
| 0.1 | -2 % | -17 % | -12 % |
| 1 | 0 | -5 % | -4 % |
| 10 | 0 | -1 % | -1 % |

Where 12 processors share 3 real ones in turn, which makes times away regular, it is off by +13 %
(u = 0.3) and +1 % (u = 1) at rho = 0.1, by a simulation whose half-width is a tenth of the share.
"""

import numpy as np

from nummodel.arguments import continuous
from nummodel.formula import formula


def _some(values):
    """The arguments, checked; a cap c need not be whole, N is one at least, and the lock is held
    no longer than there is time.
    """
    given = continuous(values)
    if (given["N"] < 1).any():
        raise ValueError(f"N is {given['N'].min():g}, expected a number of at least 1")
    real = np.minimum(given["N"], given["c"])
    asked = "lamda" if "lamda" in given else "v"
    with np.errstate(all="ignore"):
        each = 1.0 if asked == "lamda" else _at_cap(**given | {"c": real})
        in_use = given[asked] * each * given["S"] * given["N"] / real
    if (in_use > 1 + 1e-9).any():
        found = np.broadcast_to(given[asked], in_use.shape)[in_use > 1][0]
        raise ValueError(
            f"{asked} is {found:g}, expected so few requests that the lock, held for S and for "
            f"absences of its holder, is in use at most all of the time: here {in_use.max():.3g} "
            "times that"
        )
    return given


@formula("spin", _some)
def spin(N, lamda, c, S, nu):
    """Share of N logical processors on c real ones that spin for one lock, its hold time S short.

    With lamda requests per second the lock is held by someone who is away for a share lamda S x of
    the time. If processors are taken away seldom (`nu` per second of running), they are away for
    long, and all others come to ask meanwhile: then that is the share that spins, but for the one.
    If they are taken away often, few ask during an absence, and the share goes with lamda^2 x^2.

    >>> spin(N=32, lamda=3e4, c=8, S=1e-6, nu=[0.0, 1e4, 1e8]).round(5)
    array([0.08719, 0.02706, 0.     ])
    >>> spin(N=8, lamda=3e4, c=8, S=1e-6, nu=1.0)  # a real one for each
    0.0

    Raises ValueError for more requests than the lock can serve, one every S N/c.
    """
    import sympy as sp

    x = N / _real(N, c) - 1
    ask, back = 2 * lamda * x * (1 + x), N * nu * (2 + x)
    share = (1 - 1 / N) * lamda * S * x * ask / (ask + back)
    return sp.Piecewise((share, (N > c) & (lamda > 0)), (0, True))


@formula("X_full", _some)
def throughput(N, c, D0, g, S, v):
    """Throughput at full utilisation of N logical processors that share c real ones: X N/c.

    A transaction needs `D0`, and `g` times the processor time that is spun meanwhile: of the Q that
    spin, as many are dispatched as of the others, c/N. What is used is the cap, c = X (D0 +
    g (c/N) Q/X), with Q of `spin_at_cap`. Without lock requests it grows as N:

    >>> throughput(N=[6, 12], c=6, D0=1e-3, g=2, S=1e-6, v=[[10], [0]]).round(1)
    array([[ 6000. , 10810.8],
           [ 6000. , 12000. ]])

    Raises ValueError where not the cap but the lock would be the limit: v X S N/c above 1.
    """
    real = _real(N, c)
    return _at_cap(N, real, D0, g, S, v) * N / real


@formula("spin", _some)
def spin_at_cap(N, c, D0, g, S, v):
    """Share of N logical processors that spin where `throughput` runs at its cap: that of `spin`
    with v requests for each transaction, processors being taken away seldom.

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
    """Transactions per second: c = X (D0 + g c/N Q/X) with Q of `spin_at_cap`, solved for X; no
    more real processors than logical ones.
    """
    return c / (D0 + g * (c / N) * (N - 1) * v * S * (N / c - 1))

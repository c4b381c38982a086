"""A partition with more logical processors than real ones: what a lock costs when its holder is
taken away.

N logical processors share c real ones, as in a capped LPAR or on an overcommitted host: each runs
for a while and is then away for x = N/c - 1 times as long. Whoever holds a lock when it is taken
away holds it until it is back, and those who ask for it spin: some of the time on a real processor.

`spin` holds where few ask while a holder is away, u = lamda x on/N of each of them, and the lock is
idle nearly always, rho = lamda S (1 + x). It says itself when that is over: the share that spins
is u rho x/(1 + x), so that at 1 % one of the two is 0.1 already. What it leaves out: who asked is
away itself when the lock becomes free, and spins until it is back; and who spins does not ask
again, so that no more than N can. Held against the protocol (`tests/protocol.py`, all times
exponential, who spins and runs takes a free lock), with k of the true S and on and the lamda that
comes about, N = 16 and S much shorter than on (in the last column it is 0.003 on/u), it is off by

| u | x = 1/2 | 1 | 2 | 4 | x = 1, rho = 0.1 |
|---|---|---|---|---|---|
| 0.01 | -10 % | -19 % | -28 % | -35 % | -65 % |
| 0.1 | 0 | -9 % | -18 % | -25 % | -25 % |
| 1 | +95 % | +87 % | +78 % | +71 % | +74 % |
| 10 | +1050 % | +1050 % | +1040 % | +1030 % | +980 % |

A factor goes into k where k is fitted; a power does not. That of lamda, 2 here, falls from 2 to 1
as u grows, and that of x from 2.2 to 1. With a short S the protocol's share is (N - 1)/N lamda S x
times y/(1 + y), y = 2 u (1 + x)/(2 + x): in the end all others spin whenever a holder is away.
Where 12 share 3 real processors in turn (rho = 0.1), `spin` is off by -38 % at u = 0.3 and by
-6 % at 1.
"""

from nummodel.arguments import valid
from nummodel.formula import formula


def _some(values):
    """The arguments, checked; a cap c need not be whole, and N is one at least."""
    given = valid(values, whole=())
    if (given["N"] < 1).any():
        raise ValueError(f"N is {given['N'].min():g}, expected a number of at least 1")
    return given


@formula("spin", _some)
def spin(N, lamda, c, k):
    """Share of N logical processors on c real ones that spin, lamda W/N, where holders of a lock
    lose their processor, and holding it takes next to no time.

    Each is away for x = N/c - 1 times the time it ran; with a real processor for each nobody is.
    With lamda requests per second the wait of `locks.preempted_waiting` is W = lamda k x^2 with
    k = S on (1 + cv2_v)/2, as long as lamda S (1 + x) is small: what S and on are cannot be told
    apart. Those who spin ask no more, which this does not know: far outside its regime (see above)
    the share exceeds one.

    >>> from nummodel.locks import preempted_waiting
    >>> x, S, on, lamda = 3.0, 1e-8, 0.1, 10.0
    >>> W = preempted_waiting(lamda=lamda, S=S, cv2=1, on=on, away=x * on, cv2_v=1)
    >>> round(spin(N=24, lamda=lamda, c=6, k=S * on) / (lamda * W / 24), 4)
    1.0
    """
    return lamda**2 * k * (N / _real(N, c) - 1) ** 2 / N


@formula("X_full", _some)
def throughput(N, c, D0, g, k, v):
    """Throughput at full utilisation of N logical processors that share c real ones: X N/c.

    A transaction needs `D0`, and `g` times the processor time that is spun meanwhile: of the Q that
    spin, as many are dispatched as of the others, c/N. What is used is the cap, c = X (D0 +
    g (c/N) Q/X), with Q of `spin_at_cap`. Without lock requests it grows as N:

    >>> throughput(N=[6, 12], c=6, D0=1e-3, g=2, k=1e-10, v=[[10], [0]]).round(1)
    array([[ 6000. , 11355.3],
           [ 6000. , 12000. ]])
    """
    return _at_cap(N, c, D0, g, k, v) * N / _real(N, c)


@formula("spin", _some)
def spin_at_cap(N, c, D0, g, k, v):
    """Share of N logical processors that spin where `throughput` runs at its cap: that of `spin`
    with v requests for each transaction.

    >>> spin_at_cap(N=12, c=6, D0=1e-3, g=2, k=1e-10, v=10)
    0.0268...
    """
    return (v * _at_cap(N, c, D0, g, k, v)) ** 2 * k * (N / _real(N, c) - 1) ** 2 / N


def _real(N, c):
    """Real processors in use: no more than there are logical ones."""
    from sympy import Min

    return Min(N, c)


def _at_cap(N, c, D0, g, k, v):
    """Transactions per second: c = X (D0 + g c/N Q/X) with Q of `spin_at_cap`, solved for X."""
    u = _real(N, c)
    return 2 * u / (D0 + (D0**2 + 4 * u**2 / N * g * v**2 * k * (N / u - 1) ** 2) ** 0.5)

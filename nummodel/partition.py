"""A partition with more logical processors than real ones: what a lock costs when its holder is
taken away.

N logical processors share c real ones, as in a capped LPAR or on an overcommitted host: each runs
for a while and is then away for x = N/c - 1 times as long. Whoever holds a lock when it is taken
away holds it until it is back, and those who ask for it spin: some of the time on a real processor.
"""

from nummodel.formula import formula


@formula("spin")
def spin(N, lamda, c, k):
    """Share of N logical processors on c real ones that spin, lamda W/N, where holders of a lock
    lose their processor, and holding it takes next to no time.

    Each is away for x = N/c - 1 times the time it ran; with a real processor for each nobody is.
    With lamda requests per second the wait of `locks.preempted_waiting` is W = lamda k x^2 with
    k = S on (1 + cv2_v)/2, as long as lamda S (1 + x) is small: what S and on are cannot be told
    apart.

    >>> from nummodel.locks import preempted_waiting
    >>> x, S, on, lamda = 3.0, 1e-9, 0.1, 1e4
    >>> W = preempted_waiting(lamda=lamda, S=S, cv2=1, on=on, away=x * on, cv2_v=1)
    >>> round(spin(N=24, lamda=lamda, c=6, k=S * on) / (lamda * W / 24), 4)
    1.0
    """
    return lamda**2 * k * (N / _real(N, c) - 1) ** 2 / N


@formula("X_full")
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


@formula("spin")
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

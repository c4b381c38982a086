"""Scaling laws: throughput `X` of `N` processors, threads or clients.

Each law is declared once, as throughput, and so are its peak and its ceiling; the speedup follows.
`sigma` is the serial fraction (contention), `kappa` the cost of pairwise exchange (coherency).
An argument outside the range of its quantity raises ValueError; for a search that goes there a law
is `law.unchecked`.
"""

from collections.abc import Callable

from nummodel.arguments import continuous
from nummodel.formula import Formula, cases, formula


@formula("X", continuous)
def linear_throughput(N, X1):
    """Every processor adds the throughput of the first one."""
    return X1 * N


@formula("X", continuous)
def amdahl_throughput(N, X1, sigma):
    """Amdahl's law: a fraction `sigma` of the work of a fixed size is serial.

    Amdahl (1967), AFIPS 30:483. The throughput rises to X1/sigma.

    >>> amdahl_throughput(N=[1, 20], X1=1.0, sigma=0.05)
    array([ 1.        , 10.25641026])
    """
    return X1 * N / (1 + sigma * (N - 1))


@formula("X", continuous)
def gustafson_throughput(N, X1, sigma):
    """Gustafson's law: the work grows with `N`, and `sigma` of the time on `N` is serial.

    Gustafson (1988), CACM 31:532. The throughput has no ceiling; `sigma` is a share of the parallel
    run, not of the run on one processor.

    >>> gustafson_throughput(N=20, X1=1.0, sigma=0.05)
    19.05
    """
    return X1 * (sigma + (1 - sigma) * N)


@formula("X", continuous)
def usl_throughput(N, X1, sigma, kappa):
    """Universal Scalability Law: queueing for shared things, and exchange between all pairs.

    Gunther (2007), Guerrilla Capacity Planning. At kappa = 0 this is Amdahl's law; otherwise the
    throughput falls from N = sqrt((1 - sigma)/kappa) on.

    >>> usl_throughput(N=16, X1=1.0, sigma=0.05, kappa=0.005)
    5.423728813559322
    """
    return X1 * N / (1 + sigma * (N - 1) + kappa * N * (N - 1))


LAWS = {
    "linear": linear_throughput,
    "amdahl": amdahl_throughput,
    "gustafson": gustafson_throughput,
    "usl": usl_throughput,
}


@formula("N_opt")
def usl_optimum(sigma, kappa):
    """Population of the highest throughput by the USL; that of N = 1 is higher if it is below 1."""
    return ((1 - sigma) / kappa) ** 0.5


@formula("X_max", continuous)
def amdahl_ceiling(X1, sigma):
    """Throughput that Amdahl's law approaches as N grows without end."""
    return X1 / sigma


@formula("X_max", continuous)
def usl_ceiling(X1, sigma, kappa):
    """Throughput at the peak of the USL, or at N = 1 if that is higher."""
    return cases((X1 / (sigma - kappa + 2 * (kappa * (1 - sigma)) ** 0.5), kappa < 1 - sigma), X1)


#: The load of the peak, and the highest throughput at any N >= 1, where a law of `LAWS` has them;
#: by the body of the law, so that the same law with other bounds has them as well.
PEAKS: dict[Callable, tuple[Formula | None, Formula | None]] = {
    linear_throughput.body: (None, None),
    amdahl_throughput.body: (None, amdahl_ceiling),
    gustafson_throughput.body: (None, None),
    usl_throughput.body: (usl_optimum, usl_ceiling),
}


def optimum(law: Formula) -> Formula | None:
    """Population at which a law of `LAWS` is highest, or None for one that never falls.

    Raises ValueError for another law: `fit` finds its peak by numbers.
    """
    return _peaks(law)[0]


def ceiling(law: Formula) -> Formula | None:
    """Highest throughput of a law of `LAWS` at any N >= 1, or None for one that has no limit.

    Raises ValueError as `optimum` does.
    """
    return _peaks(law)[1]


def _peaks(law: Formula) -> tuple[Formula | None, Formula | None]:
    """What is known of a law of `LAWS`. Raises ValueError for another one."""
    if getattr(law, "body", None) not in PEAKS:
        raise ValueError(f"law is {law!r}, expected one of LAWS: {', '.join(LAWS)}")
    return PEAKS[law.body]


def speedup(law: Formula) -> Formula:
    """Relative capacity C(N) = X(N)/X(1) of a law of `LAWS`; ValueError as from `optimum`."""
    _peaks(law)
    expr = (law.expr / law.expr.subs(law.symbols["N"], 1)).simplify()
    name = law.__name__.replace("throughput", "speedup")
    return law.derived("C", expr, name, "Throughput over throughput at N = 1.")

"""Scaling laws: throughput `X` of `N` processors, threads or clients.

Each law is declared once, as throughput; speedup, optimum and ceiling follow by algebra.
`sigma` is the serial fraction (contention), `kappa` the cost of pairwise exchange (coherency).
An argument outside the range of its quantity raises ValueError; for a search that goes there a law
is `law.unchecked`.
"""

from collections.abc import Callable
from functools import cache, wraps
from typing import Any

from nummodel.arguments import continuous
from nummodel.formula import Formula, formula


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


def _of_a_law(derive: Callable) -> Callable[[Formula], Any]:
    """Derives once for each law. Raises ValueError for what is no law, and for a law without N."""
    once = cache(derive)

    @wraps(derive)
    def checked(law: Formula) -> Any:
        if not isinstance(law, Formula):
            raise ValueError(f"law is {law!r}, expected a Formula, such as those of LAWS")
        if "N" not in law.symbols:
            raise ValueError(f"{law.__name__} has no N")
        if not law.algebraic:
            raise ValueError(f"{law.__name__} is no algebra, so it has no {derive.__name__}")
        return once(law)

    return checked


@_of_a_law
def speedup(law: Formula) -> Formula:
    """Relative capacity C(N) = X(N)/X(1) of a law."""
    expr = (law.expr / law.expr.subs(law.symbols["N"], 1)).simplify()
    return law.derived("C", expr, _name(law, "speedup"), "Throughput over throughput at N = 1.")


@_of_a_law
def optimum(law: Formula) -> Formula | None:
    """Population at which a law's throughput is highest, or None for a law that never falls.

    Raises ValueError for a law without N, and for one of which algebra does not find one peak.
    SymPy solves for the peak only if the numerator of the slope is a polynomial of N, of degree 2
    at most, times factors that are never zero. Other equations may keep SymPy busy without an end.
    """
    import sympy as sp

    N = law.symbols["N"]
    slope = sp.nsimplify(law.expr.diff(N), rational=True)  # 0.5 as 1/2, so that terms cancel
    slope = sp.numer(sp.together(slope))
    slope = sp.Mul(*(f for f in sp.Mul.make_args(slope) if f.is_zero is not False))
    roots = [0, 0]  # more than one, or hard to find
    if slope.is_polynomial(N) and sp.degree(slope, N) <= 2:
        roots = sp.solve(slope, N) if slope.has(N) else []
    if len(roots) > 1:
        raise ValueError(f"algebra finds no single peak of {law.__name__}")
    if not roots:
        return None
    return law.derived("N_opt", roots[0], _name(law, "optimum"), "Population of the peak.")


@_of_a_law
def ceiling(law: Formula) -> Formula:
    """Highest throughput at any N >= 1: at the peak, else at 1 or in the limit of N to infinity.

    Raises ValueError as `optimum` does, and where algebra does not find the limit.
    """
    import sympy as sp

    N, peak = law.symbols["N"], optimum(law)
    if peak:
        top = 1 / sp.cancel(sp.radsimp((1 / law.expr.subs(N, peak.expr)).simplify()))
        expr = sp.Piecewise((top, peak.expr > 1), (law.expr.subs(N, 1), True))
    else:
        try:
            expr = sp.limit(law.expr, N, sp.oo)
        except NotImplementedError:  # N to a power of unknown sign
            raise ValueError(f"algebra finds no ceiling of {law.__name__}") from None
        expr = sp.oo if expr.has(sp.oo) else expr  # SymPy adds the sign of what ranges make >= 0
    return law.derived("X_max", expr, _name(law, "ceiling"), "Highest throughput at any N >= 1.")


def _name(law: Formula, result: str) -> str:
    return law.__name__.replace("throughput", result)

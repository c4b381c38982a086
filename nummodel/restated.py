"""A law said again with another quantity among its arguments, by algebra: its height at some load,
its peak or its ceiling in place of one that it was declared with.
"""

from functools import cache
from typing import NamedTuple

from nummodel.formula import Formula


class ByPeak(NamedTuple):
    """Two ways to say a law and its highest throughput with another quantity in place of the one
    that makes the peak: where there is a peak, the reciprocal of its load, as the ceiling has the
    quantity by its square root, whose slope is infinite at zero; and where the curve only falls
    from N = 1 on, what there is beyond that which makes it so.
    """

    load: Formula
    gone: str
    inverse: Formula
    pieces: tuple[tuple[str, Formula, Formula], ...]


@cache
def by_peak(law: Formula) -> ByPeak | None:
    """How to say a law by its peak; None for a law without one."""
    import sympy as sp

    from nummodel import scaling

    peak, N = scaling.optimum(law), law.symbols["N"]
    if not peak:
        return None
    gone = peak.quantities[-1]
    inverse = peak.solved_for(gone, "")
    u, d = (sp.Symbol(name, positive=True) for name in ("u_opt", "d"))
    pieces = []
    for new, top, more in ((u, 1 / u, 0), (d, sp.Integer(1), d)):
        expr = inverse.expr.subs(inverse.symbols["N_opt"], top) + more
        turned = law.expr.subs(law.symbols[gone], expr)
        names = [n if n != gone else new.name for n in law.quantities]
        again = Formula.of(law.result, turned, names, "by_peak", "The law, by its peak.")
        height = turned.subs(N, top).simplify()
        pieces.append((new.name, again, again.derived("X_max", height, "top", "Its height there.")))
    return ByPeak(peak, gone, inverse, tuple(pieces))


@cache
def height_at(law: Formula) -> Formula:
    """The law at another load, N0."""
    load = law.quantities[0]

    def body(**values):
        return law.body(**{load: values.pop("N0")}, **values)

    return Formula.made("X0", body, ["N0", *law.quantities[1:]], "height", "Height of the curve.")


@cache
def through(law: Formula, asked: Formula, free: tuple[str, ...]) -> tuple[Formula, str]:
    """The law with `asked.result` as an argument in place of a free quantity, and which that is."""
    candidates = [n for n in free if n in asked.quantities]
    scales = [n for n in candidates if asked.is_scale(n)]
    if asked.result == "X_max" and not scales:
        raise ValueError("X_max with an interval needs a free scale, such as X1")
    gone = (scales or candidates[::-1])[0]
    inverse = asked.solved_for(gone, "")
    names = dict.fromkeys([*law.quantities, *inverse.quantities])
    names.pop(gone)

    def body(**values):
        by = inverse.body(**{n: values[n] for n in inverse.quantities})
        return law.body(**{n: by if n == gone else values[n] for n in law.quantities})

    again = Formula.made(law.result, body, names, f"by_{asked.result}", "The law, re-expressed.")
    return again, gone

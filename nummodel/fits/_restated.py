"""A law said again with another quantity among its arguments, its height at some load, its peak or
its ceiling in place of one that it was declared with: by algebra, or the load of the peak by
Newton's method, which takes any law.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from nummodel._jets import Jet
from nummodel.formula import Formula
from nummodel.nomenclature import quantity


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

    from nummodel.models import scaling

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
def with_peak(law: Formula, gone: str) -> Formula:
    """The law with the load of its peak, N_opt, as an argument in place of `gone`: NaN where no
    value of that in its range makes the curve level there.
    """
    scales = {n: 1.0 for n in law.quantities if law.is_scale(n)}  # which move no peak
    names = [n if n != gone else "N_opt" for n in law.quantities]

    def body(N_opt, **values):
        moving = {n: v for n, v in values.items() if isinstance(v, Jet) and n not in (*scales, "N")}
        at = {n: v.value if n in moving else v for n, v in values.items() if n != "N"} | scales
        peak, N = (v.value if isinstance(v, Jet) else v for v in (N_opt, values["N"]))
        at["N"] = np.minimum(peak, 1e20 * np.max(N))  # as good as infinite
        with np.errstate(all="ignore"):
            by = level(law, gone, at)
            found = law.jet(("N", gone, *moving), second=True)(**at | {gone: by})
            slopes = found[len(moving) + 3 :]  # of the slope: by N, by N and what is gone, ...
            for i, jet in enumerate([N_opt, *moving.values()]):
                if isinstance(jet, Jet):
                    pair = (i + 1) * (i + 2) // 2 if i else 0
                    by = by + (jet - jet.value) * (-slopes[pair] / slopes[1])
            return law.carried(**values, **{gone: by})

    return Formula.made(law.result, body, names, "by_N_opt", "The law, by the load of its peak.")


def level(law: Formula, gone: str, at: dict[str, Any]) -> np.ndarray:
    """The value of `gone` in its range at which the curve is level; NaN where none is found.

    By Newton's method from the lower end of the range, on the slope of 1/X, in which what slows a
    law down is often linear, and else on that of ln X.
    """
    low, high = quantity(gone)[3:]
    slopes = law.jet(("N", gone), second=True)
    found = np.full(np.broadcast_shapes(*map(np.shape, at.values())), np.nan)
    with np.errstate(all="ignore"):
        for power in (2, 1):
            value, before = np.full(found.shape, low), np.inf
            for _ in range(40):
                X, X_N, X_g, _, X_gN, _ = slopes(**at | {gone: value})
                step = X_N / (X_gN - power * X_N * X_g / X)
                value = value - step
                change = np.abs(step / value)
                size = np.max(change, where=np.isfinite(change), initial=0.0)
                if size <= 1e-12 or (before < 1e-6 and size > before / 2):  # rounding is left
                    break
                before = size
            value = np.clip(value, low, high)  # off by rounding, or wrong by more
            X, X_N, *_ = slopes(**at | {gone: value})
            fits = np.abs(at["N"] * X_N / X) < 1e-6
            found = np.where(np.isnan(found) & fits, value, found)
            if not np.isnan(found).any():
                break
    return found


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

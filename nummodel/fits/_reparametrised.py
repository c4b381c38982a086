"""Reparametrisation: a law with another quantity as an argument in place of one of its own.

A height of the curve takes the place of the law's scale, by division. The load of the peak takes
the place of a quantity that shapes the curve, by Newton's method, which needs no algebra.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from nummodel._jets import Jet
from nummodel.fits._functions import Function
from nummodel.formula import Formula


def _made(
    law: Formula, result: str, body: Callable, names: list, name: str, meaning: str
) -> Formula:
    """A formula that is computed by `law`, a function if this one is no formula."""
    kind = Function if isinstance(law, Function) else Formula
    return kind.made(result, body, names, name, meaning, law.own)


@cache
def height_at(law: Formula) -> Formula:
    """The law at another load, N0."""
    load = law.quantities[0]

    def body(**values):
        return law.body(**{load: values.pop("N0")}, **values)

    names = ["N0", *law.quantities[1:]]
    return _made(law, "X0", body, names, "height", "Height of the curve.")


@cache
def by_height(law: Formula, height: Formula, scale: str, rooted: str = "") -> Formula:
    """The law with `height.result` in place of its `scale`, of which `height` is a multiple as the
    law is; and with the square root of the quantity `rooted`, if one is named, in its place.
    """
    both = dict.fromkeys([height.result, *law.quantities, *height.quantities])
    names = [n if n != rooted else "root" for n in both if n != scale]

    def body(**values):
        result = values.pop(height.result)
        if rooted:
            values[rooted] = values.pop("root") ** 2
        unit = values | {scale: 1.0}
        values[scale] = result / height.body(**{n: unit[n] for n in height.quantities})
        return law.body(**{n: values[n] for n in law.quantities})

    called = f"by_{height.result}"
    return _made(law, law.result, body, names, called, "The law, by its height.")


@cache
def by_peak(law: Formula, eliminated: str) -> Formula:
    """The law with the load of its peak, N_opt, in place of the quantity `eliminated`: NaN where no
    value in the range of that quantity makes the curve level there.
    """
    scales = {n: 1.0 for n in law.quantities if law.is_scale(n)}  # which move no peak
    names = [n if n != eliminated else "N_opt" for n in law.quantities]
    load = law.quantities[0]

    def body(N_opt, **values):
        still = (*scales, load)
        moving = {n: v for n, v in values.items() if isinstance(v, Jet) and n not in still}
        at = {n: v.value if n in moving else v for n, v in values.items() if n != load} | scales
        peak, N = (v.value if isinstance(v, Jet) else v for v in (N_opt, values[load]))
        at[load] = np.minimum(peak, 1e20 * np.max(N))  # as good as infinite
        with np.errstate(all="ignore"):
            value = level(law, eliminated, at)
            solved = at | {eliminated: value}
            derivatives = law.jet((load, eliminated, *moving), second=True)(**solved)
            # How the slope changes: with N, with N and `eliminated`, ..., in pairs of names.
            bends = derivatives[len(moving) + 3 :]
            for i, jet in enumerate([N_opt, *moving.values()]):
                if isinstance(jet, Jet):  # the theorem on implicit functions
                    pair = (i + 1) * (i + 2) // 2 if i else 0
                    value = value + (jet - jet.value) * (-bends[pair] / bends[1])
            return law.carried(**values, **{eliminated: value})

    return _made(law, law.result, body, names, "by_N_opt", "The law, by the load of its peak.")


def level(law: Formula, name: str, at: dict[str, Any]) -> np.ndarray:
    """The value of a quantity, in its range, at which the curve is level; NaN where none is found.

    By Newton's method from the lower end of the range, on the slope of 1/X, in which what slows a
    law down is often linear, and else on that of ln X.
    """
    (low, high), load = law.range_of(name), law.quantities[0]
    slopes = law.jet((load, name), second=True)
    solution = np.full(np.broadcast_shapes(*map(np.shape, at.values())), np.nan)
    with np.errstate(all="ignore"):
        for power in (2, 1):
            value, before = np.full(solution.shape, low), np.inf
            for i in range(40):
                X, X_N, X_g, _, X_gN, _ = slopes(**at | {name: value})
                step = X_N / (X_gN - power * X_N * X_g / X)
                value = value - step
                change = np.abs(step / value)
                # Where the curve is level to the last digit, a further step is but rounding.
                moving = (np.abs(at[load] * X_N / X) > 1e-15) | (i < 8)
                size = np.max(change, where=np.isfinite(change) & moving, initial=0.0)
                if size <= 1e-12 or (before < 1e-6 and size > before / 2):  # only rounding remains
                    break
                before = size
            value = np.clip(value, low, high)  # off by rounding, or wrong by more
            X, X_N, *_ = slopes(**at | {name: value})
            is_level = np.abs(at[load] * X_N / X) < 1e-6
            solution = np.where(np.isnan(solution) & is_level, value, solution)
            if not np.isnan(solution).any():
                break
    return solution

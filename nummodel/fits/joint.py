"""Joint fits: several measured columns, each with a law of its own, that share quantities.

Two columns may determine together what neither determines alone, such as how often a lock spins and
what a spin costs. The laws become the cases of one law, so that the estimates, the intervals and
the rest are those of `fit`.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from nummodel.fits._fit import Fit
from nummodel.fits._fit import fit as fit_one
from nummodel.formula import Formula


class Part(NamedTuple):
    """A law, its columns by quantity, and the relative error of its result beside the others'."""

    law: Formula
    data: Mapping[str, Any]
    error: float = 1.0

    def column(self, name: str) -> np.ndarray:
        """The measurements of a quantity. Raises ValueError without a column of its own for it."""
        if name not in self.data:
            raise ValueError(f"joint fit: no column {name} among {', '.join(self.data)}")
        load, values = self.law.quantities[0], np.asarray(self.data[name], dtype=float)
        count = np.size(self.data[load])
        if values.shape != (count,):
            raise ValueError(
                f"joint fit: {values.size} {name} and {count} {load}, expected as many"
            )
        return values


def fit(parts: Sequence[Part], start: Mapping[str, float], **known: float) -> Fit:
    """Estimate all quantities of the laws of `parts` that are neither columns nor `known`.

    Each law takes its load, its result and its other measured quantities from its own columns.
    Residuals are those of logarithms, divided by the `error` of the part: only the ratios of these
    errors matter, since the fit estimates their common size itself. The search begins at `start`,
    which has a first value for every estimate.

    The values of one law are then `law.at(result.values | {"N": ...})`; the residuals come in the
    order of the parts, each in the unit of its result. Raises ValueError for no parts, laws of
    different loads, errors that are not positive, and as `fit.fit` does.

    >>> from nummodel.models.queueing import mm1_response, mm1_waiting
    >>> response = Part(mm1_response, {"lamda": [2.0, 5.0], "R": [0.125, 0.2]})
    >>> waiting = Part(mm1_waiting, {"lamda": [5.0, 8.0], "W": [0.1, 0.4]}, error=2.0)
    >>> round(fit([response, waiting], start={"S": 0.01}).estimate["S"], 6)
    0.1
    """
    loads = list(dict.fromkeys(part.law.quantities[0] for part in parts))
    if len(loads) != 1:
        raise ValueError(f"joint fit: loads are {', '.join(loads) or 'none'}, expected one for all")
    for part in parts:
        if not (np.ndim(part.error) == 0 and 0 < part.error < np.inf):
            raise ValueError(f"joint fit: error is {part.error}, expected a positive number")
    law = _beside(tuple(part.law for part in parts))
    sizes = [len(part.column(loads[0])) for part in parts]
    measured = [n for n in law.quantities if any(n in part.data for part in parts)]
    # The column of a quantity has ones for the parts whose law has no such quantity.
    data = {
        n: np.concatenate(
            [p.column(n) if n in p.data else np.ones(m) for p, m in zip(parts, sizes, strict=True)]
        )
        for n in measured
    }
    data["part"] = np.repeat(np.arange(1.0, len(parts) + 1), sizes)
    data[law.result] = np.concatenate([part.column(part.law.result) for part in parts])
    errors = np.repeat([float(part.error) for part in parts], sizes)
    return fit_one(law, data, "log", times=errors**-2.0, start=start, **known)


@cache  # to derive and compile a law takes longer than to fit it
def _beside(laws: tuple[Formula, ...]) -> Formula:
    """The laws as one: the first where `part` is 1, the second where it is 2, ..."""
    import sympy as sp

    which = sp.Symbol("part", positive=True)
    expr = sp.Piecewise(*((law.expr, sp.Eq(which, j)) for j, law in enumerate(laws, 1)))
    names = dict.fromkeys(n for law in laws for n in law.quantities)
    return Formula.of("y", expr, [*names, "part"], "joint", "Several laws side by side.")

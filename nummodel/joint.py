"""Joint fits: several measured columns, each by a law of its own, that share quantities.

Two columns may identify together what neither does alone, as the spinning of a lock and what it
costs. The laws are put side by side as one, so that the fit, its intervals and whatever else is
asked of it are those of `fit`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from nummodel.fit import Fit
from nummodel.fit import fit as fit_one
from nummodel.formula import Formula


class Part(NamedTuple):
    """A law, its columns by quantity, and the relative error of its result beside the others'."""

    law: Formula
    data: Mapping[str, Any]
    error: float = 1.0


def fit(parts: Sequence[Part], start: Mapping[str, float], **known: float) -> Fit:
    """Estimate the quantities that the laws of `parts` have, together, and that are not `known`.

    Each law takes its load, its result and whatever else was measured of it from its own columns.
    Residuals are those of logarithms, divided by the error of the part: only the ratios of errors
    matter, for their size is estimated. The search begins at `start`, which names every estimate.

    The values of one law are then `law.at(result.values | {"N": ...})`; the residuals come in the
    order of the parts. Raises ValueError for laws of different loads, and as `fit.fit` does.

    >>> from nummodel.queueing import mm1_response, mm1_waiting
    >>> response = Part(mm1_response, {"lamda": [2.0, 5.0], "R": [0.125, 0.2]})
    >>> waiting = Part(mm1_waiting, {"lamda": [5.0, 8.0], "W": [0.1, 0.4]}, error=2.0)
    >>> round(fit([response, waiting], start={"S": 0.01}).estimate["S"], 6)
    0.1
    """
    laws = [part.law for part in parts]
    loads = dict.fromkeys(law.quantities[0] for law in laws)
    if len(loads) != 1:
        raise ValueError(f"joint fit: loads are {', '.join(loads)}, expected the same")
    for part in parts:
        for name in (part.law.quantities[0], part.law.result):
            if name not in part.data:
                raise ValueError(f"joint fit: no {name} among {', '.join(part.data)}")
        if not (np.isfinite(part.error) and part.error > 0):
            raise ValueError(f"joint fit: error is {part.error}, expected a positive number")
    law = _beside(laws)
    (load,) = loads
    sizes = [len(part.data[load]) for part in parts]
    measured = dict.fromkeys(n for n in law.quantities[1:] for p in parts if n in p.data)
    # What one law has as a column and another does not know is a column of ones there.
    data = {
        n: np.concatenate([p.data.get(n, np.ones(m)) for p, m in zip(parts, sizes, strict=True)])
        for n in (load, *measured)
    }
    data["part"] = np.repeat(np.arange(1.0, len(parts) + 1), sizes)
    data[law.result] = np.concatenate([part.data[part.law.result] for part in parts])
    errors = np.repeat([part.error for part in parts], sizes)
    return fit_one(law, data, "log", times=errors**-2.0, start=start, **known)


def _beside(laws: Sequence[Formula]) -> Formula:
    """The laws as one: the first where `part` is 1, the second where it is 2, ..."""
    import sympy as sp

    which = sp.Symbol("part", positive=True)
    expr = sp.Piecewise(*((law.expr, sp.Eq(which, j)) for j, law in enumerate(laws, 1)))
    names = dict.fromkeys(n for law in laws for n in law.quantities)
    return Formula.of("X", expr, [*names, "part"], "joint", "Several laws side by side.")

"""Joint fits: several measured columns, each with a law of its own, that share quantities.

Two columns may determine together what neither determines alone, such as how often a lock spins and
what a spin costs. The laws become the cases of one law, so that the estimates, the intervals and
the rest are those of `fit`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from nummodel.arguments import FULLEST
from nummodel.fits import _errors
from nummodel.fits._fit import Fit
from nummodel.fits._fit import fit as fit_one
from nummodel.fits._problem import quantile
from nummodel.fits._targets import Target
from nummodel.formula import Formula

#: How often the errors of the parts are estimated again, at most.
ROUNDS = 10
#: The relative error of measurements, from which the search for these errors begins.
USUAL = 0.05


class Part(NamedTuple):
    """A law, its columns by quantity, the relative error of its result beside the others', or None
    if the fit has to find these errors, and the half-width of the rounding of its result.
    """

    law: Formula
    data: Mapping[str, Any]
    error: float | None = 1.0
    half: float = 0.0

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
        if name == self.law.result and not (values > 0).all():
            raise ValueError(f"joint fit: {name} must be positive: errors are in percent of it")
        return values


def fit(parts: Sequence[Part], start: Mapping[str, float] | None = None, **known: Any) -> Fit:
    """Estimate all quantities of the laws of `parts` that are neither columns nor `known`.

    Each law takes its load, its result and its other measured quantities from its own columns.
    Residuals are those of logarithms, divided by the `error` of the part: only the ratios of these
    errors matter, since the fit estimates their common size itself. If none of the parts has an
    error, the ratios are estimated as well (see `_errors_of`). The search begins at `start`, which
    has a first value for every estimate; without it, where `fit.fit` begins.

    The curve of the second law, as an example, is `result.curve(N, part=2)`; the residuals come in
    the order of the parts, each in the unit of its result. Raises ValueError for no parts, laws of
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
    found = [part.error is None for part in parts]
    for part in parts:
        good = all(found) if part.error is None else np.ndim(part.error) == 0 < part.error < np.inf
        if not good:
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
    known["resolution"] = np.repeat([part.half for part in parts], sizes)
    if not all(found):
        errors = np.repeat([part.error for part in parts], sizes)
        return fit_one(law, data, "log", times=errors**-2.0, start=start, **known)
    rounding = (known["resolution"] / data[law.result]) ** 2 / 3
    rough = {"times": 1 / (USUAL**2 + rounding)} if rounding.any() else {}
    result = fit_one(law, data, "log", start=start, **rough, **known)
    if len(parts) > 1 and result.dof > 0:
        for _ in range(ROUNDS):
            before, errors = result, np.repeat(_errors_of(result, sizes), sizes)
            times = 1 / (errors**2 + rounding)
            result = fit_one(law, data, "log", times=times, start=before.estimate, **known)
            if np.allclose(result.w / before.w, (result.w / before.w)[0], rtol=0.02):
                break
        result = fit_one(law, data, "log", times=times, start=start, **known)  # from everywhere
    return Joint(**{field.name: getattr(result, field.name) for field in fields(Fit)})


def measured(
    laws: Mapping[str, Formula],
    data: Mapping[str, Any],
    halves: Mapping[str, float] | None = None,
    **known: Any,
) -> Fit:
    """Fit everything that was measured of a system: each column of `data` that is the result of one
    of the `laws`, in their order, together. `halves` are half-widths of the rounding of columns:
    0.005 of a utilisation in whole percent. A utilisation or a response time of 0 was rounded, and
    is left out. Raises ValueError if there is no column, for a utilisation that is no share, and as
    `fit` does.

    >>> from nummodel.models import systems
    >>> data = {"N": [1, 10, 40], "X": [1.0, 9.6, 19.9], "R": [0.10, 0.14, 1.11]}
    >>> fit = measured(systems.closed(disk=1, cpu=8), data, Z=0.9)
    >>> fit.curve([80], part=1).value.round().tolist()
    [20.0]
    """
    columns = {n: v for n, v in data.items() if n not in laws}
    halves = halves or {}
    parts = []
    for n, law in laws.items():
        if n in data:
            own, seen = columns | {n: data[n]}, np.asarray(data[n]) != 0
            if n.startswith("U_") and np.nanmax(data[n], initial=0.0) > FULLEST:
                most = f"{n} is up to {np.nanmax(data[n]):g}"
                raise ValueError(f"{most}, expected a share of all servers, at most 1")
            if n != "X" and seen.any():
                own = {name: np.asarray(v)[seen] for name, v in own.items()}
            parts.append(Part(law, own, None, halves.get(n, 0.0)))
    if not parts:
        raise ValueError(f"no column of {', '.join(data)} is one of {', '.join(laws)}")
    return fit(parts, **known)


def _errors_of(fit: Fit, sizes: Sequence[int]) -> np.ndarray:
    """The relative error of each part beside that of rounding, by its own residuals: their squares,
    in units of both errors, add up to how many are free, which is how many there are less their
    leverages. An error is taken to be at least a tenth of the largest, as a part of few points may
    be met by chance, and at least that of floats.
    """
    part = np.repeat(np.arange(len(sizes)), sizes)
    leverage = np.sum(np.linalg.qr(fit._slopes)[0] ** 2, axis=1)
    squares = np.log(fit.X / fit.at(fit.N)) ** 2
    free = np.maximum(sizes - np.bincount(part, leverage), 0.5)
    rounding = (fit.half / fit.X) ** 2 / 3
    errors = np.sqrt(np.bincount(part, squares) / free)  # as if nothing was rounded
    for j in np.flatnonzero(np.bincount(part, rounding)):
        errors[j] = _beside_rounding(squares[part == j], rounding[part == j], free[j])
    errors = np.maximum(errors, np.sqrt(np.bincount(part, _errors.rounding("log", fit.X) ** 2)))
    return np.maximum(errors, errors.max() / 10)


def _beside_rounding(squares: np.ndarray, rounding: np.ndarray, free: float) -> float:
    """The error that squares of errors have beside their rounding; 0 if that explains them."""
    from scipy.optimize import brentq

    def more(variance: float) -> float:
        return float(np.sum(squares / (variance + rounding)) - free)

    most = float(squares.sum() / free) * (1 + 1e-9)  # beyond rounding of floats
    return np.sqrt(brentq(more, 0.0, most)) if more(0.0) > 0 else 0.0


@dataclass(frozen=True, eq=False, repr=False)
class Joint(Fit):
    """A fit of several parts, whose errors were estimated together with the rest. A point that is
    off by no more than its `slack` does not speak against the laws.
    """

    slack: Any = 0.0

    def quantiles(self, target: Target, level: float) -> np.ndarray:
        """As those of a `Fit`, but the error of each part is known from that part's residuals only.

        Part j contributes a share w_j of the variance of an estimate, and has nu_j residuals to
        spare. So Student's t has 1/sum(w_j^2/nu_j) degrees of freedom (Satterthwaite 1946), and as
        the weights themselves are estimates, the variance is larger by 4 sum(w_j (1 - w_j)/nu_j)
        (Meier 1953).
        """
        if self.dof <= 0:
            return super().quantiles(target, level)
        part = np.asarray(self.known["part"], dtype=int) - 1
        Q, R = np.linalg.qr(self._slopes)
        spare = np.maximum(np.bincount(part) - np.bincount(part, np.sum(Q**2, axis=1)), 0.5)
        if target.name in self.free:
            moved = np.array([[float(n == target.name) for n in self.inner]])
        else:
            at = {**self.values, **target.columns, self.law.quantities[0]: target.loads}
            moved = self.law.gradient(self.inner)(**at)
        carried = Q @ np.linalg.pinv(R.T) @ moved.T  # what the error of each point moves it by
        shares = np.array([np.sum(carried[part == j] ** 2, axis=0) for j in range(len(spare))])
        if target.weight is not None:  # what the new measurement's own error adds
            new = np.asarray(target.columns["part"], dtype=int) - 1
            np.add.at(shares, (new, np.arange(len(new))), 1 / target.weight)
        total = shares.sum(axis=0)  # 0 on a bound
        shares = np.divide(shares, total, where=total > 0, out=0 * shares + 1 / len(spare))
        dof = 1 / (shares**2 / spare[:, None]).sum(axis=0)
        larger = 1 + 4 * (shares * (1 - shares) / spare[:, None]).sum(axis=0)
        return np.array([quantile(level, nu) for nu in dof]) * np.sqrt(larger)


class Beside(Formula):
    """Several laws as one: the first where the quantity `part` is 1, the second where it is 2."""

    _plain = _symbolic = False

    def __init__(self, laws: tuple[Formula, ...]):
        self.laws = laws
        names = dict.fromkeys(n for law in laws for n in law.quantities)
        own = {n: m for law in laws for n, m in law.own.items()}

        def joint(**values):
            """Several laws side by side."""
            return self.jet(())(**values)[0]

        super().__init__("y", joint, [*names, "part"], meanings=own)
        self.bends = all(law.bends for law in laws)
        self.tries = max(law.tries for law in laws)

    @cache  # noqa: B019
    def jet(self, names: tuple[str, ...], second: bool = False) -> Callable:
        """As `Formula.jet`, each law at its own points."""
        pairs = [(i, j) for i in range(len(names)) for j in range(i + 1)] if second else []

        def computed(**values: Any) -> list:
            arrays = dict(zip(values, np.broadcast_arrays(*values.values()), strict=True))
            found = np.zeros((1 + len(names) + len(pairs), *arrays["part"].shape))
            for j, law in enumerate(self.laws, 1):
                at = arrays["part"] == j
                if not at.any():
                    continue
                own = tuple(n for n in names if n in law.quantities)
                jet = law.jet(own, second)(**{n: arrays[n][at] for n in law.quantities})
                keys = [(), *((n,) for n in own)]
                keys += [(own[i], own[k]) for i in range(len(own)) for k in range(i + 1)]
                theirs = dict(zip(keys, jet, strict=False))
                wanted = [(), *((n,) for n in names), *((names[i], names[k]) for i, k in pairs)]
                for row, key in zip(found, wanted, strict=True):
                    row[at] = theirs.get(key, 0.0)
            return [*found]

        return computed

    @cache  # noqa: B019
    def is_scale(self, name: str) -> bool:
        """As `Formula.is_scale`."""
        return all(name in law.quantities and law.is_scale(name) for law in self.laws)

    def starts(self, free, known, measured) -> dict[str, np.ndarray]:
        """Those of the first law that knows some."""
        for j, law in enumerate(self.laws, 1):
            at = np.broadcast_to(known["part"] == j, measured.shape)
            if not at.any():
                continue
            own = {n: v[at] if np.shape(v) == at.shape else v for n, v in known.items()}
            if points := law.starts(free, own, measured[at]):
                return points
        return {}


@cache  # to derive and compile a law takes longer than to fit it
def _beside(laws: tuple[Formula, ...]) -> Formula:
    """The laws as one, by algebra if all of them are algebra."""
    if not all(law.algebraic for law in laws):
        return Beside(laws)
    import sympy as sp

    which = sp.Symbol("part", positive=True)
    expr = sp.Piecewise(*((law.expr, sp.Eq(which, j)) for j, law in enumerate(laws, 1)))
    names = dict.fromkeys(n for law in laws for n in law.quantities)
    own = {n: meaning for law in laws for n, meaning in law.own.items()}
    return Formula.of("y", expr, [*names, "part"], "joint", "Several laws side by side.", own)

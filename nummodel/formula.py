"""A formula is written once, as the body of a function of its quantities.

    @formula("X")
    def amdahl_throughput(N, X1, sigma):
        return X1 * N / (1 + sigma * (N - 1))

Its LaTeX, its NumPy function, its exact gradient, and what follows from it by algebra (an inverse,
a speedup) are derived from that body. A body of plain arithmetic is called with numbers and arrays,
and with complex ones for its gradient; a body with cases goes through SymPy. SymPy is imported only
where it is needed, since that takes half a second.
"""

import sys
from collections.abc import Callable, Iterable, Mapping
from copyreg import __newobj__  # type: ignore[attr-defined]
from functools import cache, cached_property, update_wrapper
from inspect import Parameter, Signature, signature
from typing import Any

import numpy as np

from nummodel import _differences
from nummodel.arguments import a_figure, aligned, numbers
from nummodel.nomenclature import Quantity, quantity

#: The imaginary step of a slope: so small that its square, which is all that errs, is nothing.
STEP = 1e-30


class Formula:
    """One closed-form law: `result` as a function of `quantities`, its argument names in order.

    Called with numbers or arrays of any broadcastable shape it gives a float or a float array:
    `inf` or `nan` where the law does not hold. `valid` may be a function that checks the arguments:
    it takes them by name, and returns them as arrays or raises ValueError for one that makes no
    sense. A law with such a function raises ArithmeticError for a result that is `nan` or out of
    the range of its quantity. A search has to try arguments that make no sense, too: it calls
    `unchecked`, the same law without these checks.
    """

    __name__: str  # the law's
    #: The starts from which a search descends.
    tries = 12

    def __init__(
        self,
        result: str,
        law: Callable,
        quantities: Iterable[str] | None = None,
        valid: Callable[[dict], dict] | None = None,
        meanings: Mapping[str, Quantity] | None = None,
    ):
        update_wrapper(self, law)  # name, docstring and signature stay the law's
        self.result = result
        self.quantities = tuple(signature(law).parameters if quantities is None else quantities)
        self.own = dict(meanings or {})  # meanings that the nomenclature does not have
        for name in (result, *self.quantities):
            self.meaning(name)  # an unknown name is an error at import
        arguments = [Parameter(n, Parameter.POSITIONAL_OR_KEYWORD) for n in self.quantities]
        self.__signature__ = Signature(arguments)
        self.body = law
        self._valid = valid

    def __reduce__(self) -> Any:
        """A law of a module is sent to other processes by its name, and found there."""
        module = sys.modules.get(self.__module__)
        if getattr(module, self.__name__, None) is self:
            return self.__name__
        return __newobj__, (type(self),), self.__dict__

    def __copy__(self) -> "Formula":
        """Another law, and not the one of that name: it may get other bounds."""
        new = type(self).__new__(type(self))
        new.__dict__.update(self.__dict__)
        return new

    def meaning(self, name: str) -> Quantity:
        """What a name stands for in this law: its own meaning, or that of the nomenclature. Raises
        NameError for a name that neither has.
        """
        return self.own.get(name) or quantity(name)

    def range_of(self, name: str) -> tuple[float, float]:
        """The lowest and the highest value that make sense."""
        return self.meaning(name)[3:]

    @cached_property
    def symbols(self) -> dict:
        """SymPy symbols by name: positive, or real where negative values make sense."""
        import sympy as sp

        return {
            name: sp.Symbol(name, **{"positive" if self.range_of(name)[0] >= 0 else "real": True})
            for name in self.quantities
        }

    @cached_property
    def expr(self):
        """The law as a SymPy expression of `symbols`."""
        import sympy as sp

        return sp.sympify(self.body(**self.symbols)).xreplace({sp.Float(0.5): sp.Rational(1, 2)})

    @cached_property
    def _plain(self) -> bool:
        """Whether the body is arithmetic alone, which takes complex numbers as it takes real ones,
        and whose slopes follow from them (Squire and Trapp 1998, SIAM Review 40:110).
        """
        points = self._somewhere(0.3), self._somewhere(0.4, 40)
        at = {n: np.array([point[n] for point in points]) for n in self.quantities}
        try:
            with np.errstate(all="ignore"):
                found = [np.asarray(self.body(**at | {n: at[n] + 1j * STEP})) for n in at]
        except Exception:  # SymPy or the body cannot compute with complex numbers
            return False
        if not found or any(value.dtype.kind not in "fc" or value.ndim > 1 for value in found):
            return False
        ranges = [self.range_of(n) for n in at]
        value, *slopes = _differences.jet(self.body, self.quantities, ranges)(**at)
        units = [abs(value) / np.maximum(abs(x), 1e-3) for x in at.values()]
        return all(
            (abs(np.imag(moved) / STEP - slope) <= 1e-5 * (abs(slope) + unit)).all()
            for moved, slope, unit in zip(found, slopes, units, strict=True)
        )

    @cached_property
    def _symbolic(self) -> bool:
        """Whether SymPy can follow the body."""
        try:
            return bool(self.expr.free_symbols <= set(self.symbols.values()))
        except Exception:  # loops, comparisons, functions of NumPy: of any kind
            return False

    @property
    def algebraic(self) -> bool:
        """Whether the law is arithmetic that SymPy can follow, so at any load as quick as at 1."""
        return self._plain or self._symbolic

    @cached_property
    def _called(self) -> Callable:
        """The body for arrays: element by element, if it does not do that by itself."""
        return _differences.elementwise(self.body, self._somewhere(0.3), self._somewhere(0.4, 40))

    def _somewhere(self, share: float, load: float = 1.0) -> dict[str, np.float64]:
        """Values inside the ranges of all quantities, at different places. N, and a load that the
        nomenclature does not have, is above `load`.
        """
        ends = {n: self.range_of(n) for n in self.quantities}
        loads = [n for n in ends if n == "N"] or [n for n in self.quantities[:1] if n in self.own]
        ends |= dict.fromkeys(loads, (load, np.inf))
        places = [share * (1 + i / len(ends)) for i in range(len(ends))]
        lows = {
            n: low if low > -np.inf else min(high - 1.0, 0.0) for n, (low, high) in ends.items()
        }
        return {
            n: np.float64(lows[n] + min(ends[n][1] - lows[n], 1.0) * place)
            for n, place in zip(ends, places, strict=True)
        }

    def __call__(self, *args, **kwargs):
        values = self.__signature__.bind(*args, **kwargs).arguments
        if not self._valid:
            values = {n: numbers(n, v) for n, v in values.items()}
            aligned(values)
            return self.unchecked(**values)
        values = self._valid(values)
        value = self.unchecked(**values)
        a_figure(self.__name__, np.asarray(value), values, *self.range_of(self.result))
        return value

    def unchecked(self, **values):
        """The value at any arguments, by keyword, whether they make sense or not."""
        shape = np.broadcast_shapes(*map(np.shape, values.values()))
        value = np.broadcast_to(self.jet(())(**values)[0], shape)
        return value.copy() if shape else float(value)

    def at(self, values: Mapping[str, Any]):
        """The value at `values`, which may have more quantities than the law."""
        return self(**{n: values[n] for n in self.quantities})

    def gradient(self, names: Iterable[str]) -> Callable:
        """Function of all quantities, by keyword, giving d(law)/d(name): one column per name."""
        names = tuple(names)
        jet = self.jet(names)

        def columns(**values):
            shape = np.broadcast_shapes(*map(np.shape, values.values()))
            slopes = np.empty((*shape, len(names)))
            for i, slope in enumerate(jet(**values)[1:]):
                slopes[..., i] = slope  # a scalar if it lacks the array variable (SymPy #9725)
            return slopes

        return columns

    @cache  # noqa: B019 (formulas live as long as the program)
    def jet(self, names: tuple[str, ...]) -> Callable:
        """Function of all quantities, by keyword, giving [law, d(law)/d(name), ...] as computed:
        a slope that does not depend on an array is a scalar.
        """
        ranges = [self.range_of(n) for n in names]
        if not self.algebraic:
            return _differences.jet(self._called, names, ranges)
        if not self._plain:
            import sympy as sp

            all_of_them = [self.expr, *(self.expr.diff(self.symbols[n]) for n in names)]
            modules = [{"select": _select}, "numpy"]
            compiled = sp.lambdify(list(self.symbols.values()), all_of_them, modules, cse=True)

        def computed(**values: Any) -> list:
            arrays = {n: np.array(v, dtype=float) for n, v in values.items()}
            with np.errstate(all="ignore"):
                if not self._plain:
                    return compiled(*(arrays[n] for n in self.quantities))
                try:
                    moved = [self.body(**arrays | {n: arrays[n] + 1j * STEP}) for n in names]
                    value = self.body(**arrays)
                except (ArithmeticError, ValueError):  # at some of the points
                    return _differences.jet(self._called, names, ranges)(**values)
            return [value, *(np.imag(v) / STEP for v in moved)]

        return computed

    @classmethod
    def made(
        cls,
        result: str,
        body: Callable,
        quantities: Iterable[str],
        name: str,
        meaning: str,
        meanings: Mapping[str, Quantity] | None = None,
    ) -> "Formula":
        """The formula of a `body` that takes its quantities by keyword only."""

        def law(**values):
            return body(**values)

        law.__name__ = law.__qualname__ = name
        law.__doc__ = meaning
        return cls(result, law, quantities, meanings=meanings)

    @classmethod
    def of(
        cls, result: str, expr, quantities: Iterable[str], name: str, meaning: str, meanings=None
    ) -> "Formula":
        """The formula of `result` that is `expr`, a SymPy expression of `quantities`."""

        def body(**values):
            return expr.subs({symbol: values[symbol.name] for symbol in expr.free_symbols})

        return cls.made(result, body, quantities, name, meaning, meanings)

    def derived(self, result: str, expr, name: str, meaning: str) -> "Formula":
        """The formula of `result` that is `expr`, of those of this law's quantities that it has."""
        names = {symbol.name for symbol in expr.free_symbols}
        kept = [n for n in self.quantities if n in names]
        return Formula.of(result, expr, kept, name, meaning, self.own)

    def solved_for(self, name: str, meaning: str) -> "Formula":
        """This law solved for `name`, a function of its other quantities and of its result.

        >>> from nummodel.models.operational import utilisation
        >>> utilisation.solved_for("D", "Service demand.")(X=50.0, c=4, rho=0.5)
        0.04
        """

        def body(**values):
            if self.is_scale(name):
                result = values.pop(self.result)
                return result / self.body(**values, **{name: 1.0})
            import sympy as sp

            roots = sp.solve(self.expr - values[self.result], self.symbols[name])
            if len(roots) != 1:
                count = f"{len(roots)} solutions for {name}, expected one"
                raise ValueError(f"{self.__name__} has {count}")
            return roots[0]

        quantities = [n for n in (*self.quantities, self.result) if n != name]
        called = f"{self.__name__}_{name}"
        inverse = Formula.made(name, body, quantities, called, meaning, self.own)
        inverse._valid = self._valid
        return inverse

    def starts(self, free, known, X) -> dict[str, np.ndarray]:
        """Points from which a search may begin, if the law knows better ones than a mesh."""
        return {}

    @cache  # noqa: B019
    def is_scale(self, name: str) -> bool:
        """Whether the law is `name` times a function of the other quantities."""
        if self._plain or not self._symbolic:  # twice the scale makes twice the result
            points = [self._somewhere(0.2), self._somewhere(0.45), self._somewhere(0.3, 40)]
            call = self.body if self._plain else self._called
            with np.errstate(all="ignore"):
                once = [float(call(**at)) for at in points]
                twice = [float(call(**at | {name: 2 * at[name]})) for at in points]
            return bool(np.allclose(twice, np.multiply(2, once), rtol=1e-12, atol=0))
        symbol = self.symbols[name]
        return not self.expr.diff(symbol).has(symbol) and self.expr.subs(symbol, 0) == 0

    @property
    def latex(self) -> str:
        """The law as LaTeX, without dollar signs."""
        import sympy as sp

        names = {symbol: self.meaning(n).latex for n, symbol in self.symbols.items()}
        return f"{self.meaning(self.result).latex} = {sp.latex(self.expr, symbol_names=names)}"

    def _repr_markdown_(self) -> str:
        """In a notebook: the law, what it says, and what its quantities mean."""
        rows = [f"$$\n{self.latex}\n$$"] if self._symbolic else []
        rows += [(self.__doc__ or "").partition("\n\n")[0]]
        rows += ["", "| | meaning | unit | range |", "|---|---|---|---|"]
        for name in (self.result, *self.quantities):
            latex, unit, meaning, low, high = self.meaning(name)
            unit = "" if unit == "-" else unit
            rows.append(f"| ${latex}$ | {meaning} | {unit} | {low:g} to {high:g} |")
        return "\n".join(rows).replace("to inf", "or more")


def _select(conditions: list, choices: list, default: float):
    """As numpy.select, on which a law with cases spends its time, in a seventh of that time."""
    value: Any = default
    for condition, choice in zip(conditions[::-1], choices[::-1], strict=True):
        value = np.where(condition, choice, value)
    return value


def cases(case: tuple[Any, Any], otherwise: Any) -> Any:
    """A value where a condition holds, and another one elsewhere: of symbols, or of numbers and
    arrays, also of the complex ones from which slopes follow.
    """
    value, condition = case
    if isinstance(condition, (bool, np.bool_, np.ndarray)):
        return np.where(condition, value, otherwise)[()]
    import sympy as sp

    return sp.Piecewise((value, condition), (otherwise, True))


def formula(
    result: str, valid: Callable[[dict], dict] | None = None
) -> Callable[[Callable], Formula]:
    """Decorator: turn a function of named quantities into the Formula of `result`."""
    return lambda law: Formula(result, law, valid=valid)

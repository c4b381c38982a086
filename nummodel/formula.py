"""A formula is written once, as the body of a function of its quantities.

    @formula("X")
    def amdahl_throughput(N, X1, sigma):
        return X1 * N / (1 + sigma * (N - 1))

Its LaTeX, its NumPy function, its exact gradient, and whatever follows from it by algebra (an
inverse, a limit, an optimum) are derived from that body. SymPy is imported when the first of them
is needed: it takes half a second.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cache, cached_property, update_wrapper
from inspect import Parameter, Signature, signature
from typing import Any

import numpy as np

from nummodel.nomenclature import quantity


class Formula:
    """One closed-form law: `result` as a function of `quantities`, its argument names in order.

    Called with numbers or arrays of any broadcastable shape it gives a float or a float array.
    Outside its validity it is `inf` or `nan`, as the mathematics has it. `valid` takes the
    arguments by name and returns them as arrays, or raises where one makes no sense.
    """

    def __init__(
        self,
        result: str,
        law: Callable,
        quantities: Iterable[str] | None = None,
        valid: Callable[[dict], dict] | None = None,
    ):
        update_wrapper(self, law)  # name, docstring and signature stay the law's
        self.result = result
        self.quantities = tuple(signature(law).parameters if quantities is None else quantities)
        for name in (result, *self.quantities):
            quantity(name)  # an unknown name is an error at import
        arguments = [Parameter(n, Parameter.POSITIONAL_OR_KEYWORD) for n in self.quantities]
        self.__signature__ = Signature(arguments)
        self._law = law
        self._valid = valid

    @cached_property
    def symbols(self) -> dict:
        """SymPy symbols by name, all of them positive."""
        import sympy as sp

        return {name: sp.Symbol(name, positive=True) for name in self.quantities}

    @cached_property
    def expr(self):
        """The law as a SymPy expression of `symbols`."""
        import sympy as sp

        return sp.sympify(self._law(**self.symbols))

    @cached_property
    def _value(self) -> Callable:
        return self._compiled(self.expr)

    def _compiled(self, expr) -> Callable:
        """NumPy function of all quantities, by keyword."""
        import sympy as sp

        modules = [{"select": _select}, "numpy"]
        inner = sp.lambdify(list(self.symbols.values()), expr, modules, cse=True)

        def value(**values):
            with np.errstate(all="ignore"):
                return inner(*(np.asarray(values[n], dtype=float) for n in self.quantities))

        return value

    def __call__(self, *args, **kwargs):
        values = self.__signature__.bind(*args, **kwargs).arguments
        if self._valid:
            values = self._valid(values)
        shape = np.broadcast_shapes(*map(np.shape, values.values()))
        value = np.broadcast_to(self._value(**values), shape)
        return value.copy() if shape else float(value)

    def at(self, values: Mapping[str, Any]):
        """The value with the quantities that `values` has, which may be more than the law's."""
        return self(**{n: values[n] for n in self.quantities})

    def gradient(self, names: Iterable[str]) -> Callable:
        """Function of all quantities, by keyword, giving d(law)/d(name): one column per name."""
        jet = self.jet(tuple(names))

        def columns(**values):
            shape = np.broadcast_shapes(*map(np.shape, values.values()))
            # A slope without the array variable comes back as a scalar (SymPy #9725).
            return np.stack([np.broadcast_to(s, shape) for s in jet(**values)[1:]], axis=-1)

        return columns

    @cache  # noqa: B019 (formulas live as long as the program)
    def jet(self, names: tuple[str, ...], second: bool = False) -> Callable:
        """Function of all quantities, by keyword, giving [law, d(law)/d(name), ...] as computed:
        a slope that does not depend on an array is a scalar. If `second`, derivatives by a name and
        each name up to it follow.
        """
        by = [self.symbols[n] for n in names]
        slopes = [self.expr.diff(a) for a in by]
        bends = [slopes[i].diff(b) for i in range(len(by)) for b in by[: i + 1]] if second else []
        return self._compiled([self.expr, *slopes, *bends])

    @classmethod
    def of(cls, result: str, expr, quantities: Iterable[str], name: str, meaning: str) -> "Formula":
        """The formula that algebra has made: `result` is `expr`, an expression of `quantities`."""

        def law(**values):
            return expr.subs({symbol: values[symbol.name] for symbol in expr.free_symbols})

        law.__name__ = law.__qualname__ = name
        law.__doc__ = meaning
        return cls(result, law, quantities)

    def derived(self, result: str, expr, name: str, meaning: str) -> "Formula":
        """What `expr` has left of this formula's quantities, as the formula of `result`."""
        left = {symbol.name for symbol in expr.free_symbols}
        return Formula.of(result, expr, [n for n in self.quantities if n in left], name, meaning)

    def solved_for(self, name: str, meaning: str) -> "Formula":
        """This law read the other way: `name` as a function of the others and of the result.

        >>> from nummodel.operational import utilisation
        >>> utilisation.solved_for("D", "Service demand.")(X=50.0, c=4, rho=0.5)
        0.04
        """

        def law(**values):
            import sympy as sp

            if self.is_scale(name):
                return values[self.result] / self.expr.subs(self.symbols[name], 1)
            (root,) = sp.solve(self.expr - values[self.result], self.symbols[name])
            return root

        law.__name__ = law.__qualname__ = f"{self.__name__}_{name}"  # type: ignore[attr-defined]
        law.__doc__ = meaning
        return Formula(name, law, [n for n in (*self.quantities, self.result) if n != name])

    @cache  # noqa: B019
    def is_scale(self, name: str) -> bool:
        """Whether the law is `name` times a function of the other quantities."""
        symbol = self.symbols[name]
        return not self.expr.diff(symbol).has(symbol) and self.expr.subs(symbol, 0) == 0

    @property
    def latex(self) -> str:
        """The law as LaTeX, without dollar signs."""
        import sympy as sp

        names = {symbol: quantity(n).latex for n, symbol in self.symbols.items()}
        return f"{quantity(self.result).latex} = {sp.latex(self.expr, symbol_names=names)}"

    def _repr_markdown_(self) -> str:
        """In a notebook: the law, what it says, and what its quantities mean."""
        rows = [f"$$\n{self.latex}\n$$", (self.__doc__ or "").partition("\n\n")[0]]
        rows += ["", "| | meaning | unit | range |", "|---|---|---|---|"]
        for name in (self.result, *self.quantities):
            latex, unit, meaning, low, high = quantity(name)
            unit = "" if unit == "-" else unit
            rows.append(f"| ${latex}$ | {meaning} | {unit} | {low:g} to {high:g} |")
        return "\n".join(rows).replace("to inf", "or more")


def _select(conditions: list, choices: list, default: float):
    """What numpy.select gives, in a seventh of the time, which a law with cases spends there."""
    value: Any = default
    for condition, choice in zip(conditions[::-1], choices[::-1], strict=True):
        value = np.where(condition, choice, value)
    return value


def formula(
    result: str, valid: Callable[[dict], dict] | None = None
) -> Callable[[Callable], Formula]:
    """Decorator: turn a function of named quantities into the Formula of `result`."""
    return lambda law: Formula(result, law, valid=valid)

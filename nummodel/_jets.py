"""Numbers that carry their derivatives: a law whose body is given jets computes its slopes too.

A jet has a value and its first and second derivatives by a few quantities, which are numbered
(Griewank and Walther 2008, chapter 13). Arithmetic follows the product and the chain rule, exactly,
for arrays as for numbers; derivatives that are zero are not kept.

>>> x = Jet.of(3.0, 0)
>>> y = 2 / x**2
>>> [round(n, 12) for n in (9 * y.value, 27 * y.first[0], 81 * y.second[0, 0])]
[2.0, -4.0, 12.0]
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(eq=False, slots=True)
class Jet:
    """A value, its slopes `first[i]`, and its second derivatives `second[i, j]`, i >= j."""

    __array_ufunc__ = None  # an array on the left leaves the operation to the jet on the right

    value: Any
    first: Mapping[int, Any]
    second: Mapping[tuple[int, int], Any]

    def __eq__(self, other: object) -> bool:
        raise TypeError("a law whose body compares quantities has no derivative everywhere")

    def __bool__(self) -> bool:
        raise TypeError("a law whose body asks for a truth value has no derivative everywhere")

    @classmethod
    def of(cls, value: Any, i: int) -> "Jet":
        """The quantity number `i` itself."""
        return cls(value, {i: 1.0}, {})

    def _chain(self, value: Any, slope: Any, bend: Any) -> "Jet":
        """A function of this jet, with its value, slope and second derivative at this value."""
        first = {i: slope * a for i, a in self.first.items()}
        second = {pair: slope * b for pair, b in self.second.items()}
        for i, a in self.first.items():
            for j, b in self.first.items():
                if i >= j:
                    _add(second, (i, j), bend * (a * b))  # of the load alone, often
        return Jet(value, first, second)

    def _scaled(self, by: Any) -> "Jet":
        first = {i: by * a for i, a in self.first.items()}
        return Jet(by * self.value, first, {pair: by * b for pair, b in self.second.items()})

    def __add__(self, other: Any) -> "Jet":
        if not isinstance(other, Jet):
            return Jet(self.value + other, self.first, self.second)
        first, second = dict(self.first), dict(self.second)
        for i, a in other.first.items():
            _add(first, i, a)
        for pair, b in other.second.items():
            _add(second, pair, b)
        return Jet(self.value + other.value, first, second)

    def __mul__(self, other: Any) -> "Jet":
        if not isinstance(other, Jet):
            return self._scaled(other)
        left, right = self._scaled(other.value), other._scaled(self.value)
        product = left + Jet(0.0, right.first, right.second)
        second = dict(product.second)
        for i, a in self.first.items():
            for j, b in other.first.items():
                _add(second, (max(i, j), min(i, j)), 2.0 * a * b if i == j else a * b)
        return Jet(left.value, product.first, second)

    def __pow__(self, power: Any) -> "Jet":
        if isinstance(power, Jet):
            inverse = 1.0 / self.value
            exponent = power * self._chain(np.log(self.value), inverse, -inverse * inverse)
            value = self.value**power.value
            return exponent._chain(value, value, value)
        if np.ndim(power) == 0 and power == 1:  # whose bend would be 0 times infinity at 0
            return self
        slope, bend = power * self.value ** (power - 1), power * (power - 1)
        return self._chain(self.value**power, slope, bend * self.value ** (power - 2))

    def __rpow__(self, base: Any) -> "Jet":
        value, log = base**self.value, np.log(base)
        return self._chain(value, log * value, log * log * value)

    def _reciprocal(self) -> "Jet":
        value = 1.0 / self.value
        square = value * value
        return self._chain(value, -square, 2.0 * square * value)

    def __neg__(self) -> "Jet":
        return self._scaled(-1.0)

    def __sub__(self, other: Any) -> "Jet":
        return self + -other

    def __rsub__(self, other: Any) -> "Jet":
        return -self + other

    def __truediv__(self, other: Any) -> "Jet":
        return self * (other._reciprocal() if isinstance(other, Jet) else 1.0 / other)

    def __rtruediv__(self, other: Any) -> "Jet":
        return self._reciprocal() * other

    __radd__, __rmul__ = __add__, __mul__


def _add(terms: dict, key: Any, term: Any) -> None:
    terms[key] = terms[key] + term if key in terms else term

"""How far measurements are from a curve: squares that a fit makes small, by the kind of weights.

- "absolute": errors have the same size everywhere, and the squares are those of X less the curve;
- "relative": errors are in proportion to the curve, which is the mean of X. The squares are those
  of the gamma deviance, whose least sum is where weighted least squares with weights of 1/curve^2
  come to rest (McCullagh and Nelder 1989, chapter 8). Weights of 1/X^2 would favour the points that
  came out low;
- "log": the same, but the curve is the median of X, and the squares are those of ln(X/curve).
"""

import numpy as np

#: Of a float, relative to it, what the rounding of some operations may make wrong.
ROUNDING = 2.0**-48


def percent(kind: str) -> bool:
    """Whether errors are in proportion to the curve."""
    return kind in ("relative", "log")


def squares(kind: str, X: np.ndarray, curve: np.ndarray) -> np.ndarray:
    """The squares of the errors of X."""
    if kind == "log":
        return np.log(X / curve) ** 2
    return _gamma(X / curve - 1) if kind == "relative" else (X - curve) ** 2


def _gamma(e: np.ndarray) -> np.ndarray:
    """2 (e - ln(1 + e)), where e is small by the series of atanh(e / (2 + e)), as a difference of
    what is nearly equal has few digits left.
    """
    v = e / (2 + e)
    odd = v**3 * np.polynomial.Polynomial([1 / 3, 1 / 5, 1 / 7, 1 / 9, 1 / 11, 1 / 13])(v * v)
    return np.where(np.abs(e) < 0.1, 4 * (v * v / (1 - v) - odd), 2 * (e - np.log1p(e)))


def slope(kind: str, X: np.ndarray, curve: np.ndarray) -> np.ndarray:
    """Half the slope of the squares by the curve or, of errors in proportion, by its logarithm."""
    if kind == "log":
        return np.log(curve / X)
    return 1 - X / curve if kind == "relative" else curve - X


def mean(kind: str, X: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """The curve at one load, or one factor of a curve, that is nearest to the last axis of X."""
    if kind == "log":
        return np.exp(mean("absolute", np.log(X), weight))
    return np.sum(weight * X, axis=-1) / np.sum(weight, axis=-1)


def relative_to(kind: str, size, X):
    """Sizes in the unit of X in that of the errors."""
    return size / X if percent(kind) else size


def rounding(kind: str, X: np.ndarray) -> np.ndarray:
    """How large the errors may be by rounding of floats alone."""
    size = np.ones_like(X) if kind == "relative" else np.abs(np.log(X) if kind == "log" else X)
    return ROUNDING * size

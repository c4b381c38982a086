"""How far measurements are from a curve: squares that a fit makes small, by the kind of weights.

- "absolute": errors have the same size everywhere, and the squares are those of X less the curve;
- "relative": errors are in proportion to the curve, which is the mean of X. The squares are those
  of the gamma deviance, whose least sum is where weighted least squares with weights of 1/curve^2
  come to rest (McCullagh and Nelder 1989, chapter 8). Weights of 1/X^2 would favour the points that
  came out low;
- "log": the same, but the curve is the median of X, and the squares are those of ln(X/curve).
"""

import numpy as np

#: The relative error that the rounding of a few operations on floats may leave.
ROUNDING = 2.0**-48


def percent(kind: str) -> bool:
    """Whether errors are in proportion to the curve."""
    return kind in ("relative", "log")


def squares(kind: str, X: np.ndarray, curve: np.ndarray) -> np.ndarray:
    """The squares of the errors of X."""
    if kind == "log":
        return np.log(X / curve) ** 2
    return _gamma(X / curve) if kind == "relative" else (X - curve) ** 2


def _gamma(u: np.ndarray) -> np.ndarray:
    """2 (u - 1 - ln u). Near u = 1 by the series of atanh v with v = (u - 1)/(u + 1), as u - 1 and
    ln u are nearly equal there, and few digits of their difference are left.
    """
    v = (u - 1) / (u + 1)
    odd = v**3 * np.polynomial.Polynomial([1 / 3, 1 / 5, 1 / 7, 1 / 9, 1 / 11, 1 / 13])(v * v)
    return np.where(np.abs(u - 1) < 0.1, 4 * (v * v / (1 - v) - odd), 2 * (u - 1 - np.log(u)))


def slope(kind: str, X: np.ndarray, curve: np.ndarray) -> np.ndarray:
    """Half the slope of the squares by the curve or, of errors in proportion, by its logarithm."""
    if kind == "log":
        return np.log(curve / X)
    return 1 - X / curve if kind == "relative" else curve - X


def factor(kind: str, X: np.ndarray, curve: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """The factor of the curve that makes the sum of the squares along the last axis least."""
    if not percent(kind):
        return np.sum(weight * curve * X, axis=-1) / np.sum(weight * curve**2, axis=-1)
    ratio = X / curve
    weight = np.broadcast_to(weight, ratio.shape)
    if kind == "log":
        return np.exp(np.average(np.log(ratio), axis=-1, weights=weight))
    return np.average(ratio, axis=-1, weights=weight)


def rounding(kind: str, X: np.ndarray) -> np.ndarray:
    """How large the errors may be by rounding of floats alone."""
    size = np.ones_like(X) if kind == "relative" else np.abs(np.log(X) if kind == "log" else X)
    return ROUNDING * size

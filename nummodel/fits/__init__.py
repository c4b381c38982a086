"""What measurements say of laws: estimates, intervals, predictions, and which law they support."""

from nummodel.fits import admissible, closed, laws
from nummodel.fits._estimates import Fit, quantile, shared
from nummodel.fits._fit import bootstrap, fit
from nummodel.fits._forecast import (
    FURTHEST,
    STEEPEST,
    Outlook,
    Trend,
    chance,
    forecast,
    largest_load,
    outlook,
    smallest_load,
)
from nummodel.fits.laws import LackOfFit, choose, lack_of_fit, next_load

__all__ = [
    "FURTHEST",
    "STEEPEST",
    "Fit",
    "LackOfFit",
    "Outlook",
    "Trend",
    "admissible",
    "bootstrap",
    "chance",
    "choose",
    "closed",
    "fit",
    "forecast",
    "lack_of_fit",
    "largest_load",
    "laws",
    "next_load",
    "outlook",
    "quantile",
    "shared",
    "smallest_load",
]


def __dir__() -> list[str]:
    return __all__

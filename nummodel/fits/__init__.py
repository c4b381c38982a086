"""What measurements say of laws: estimates, intervals, predictions, and which law they support."""

from nummodel.fits import admissible, compare, joint, laws
from nummodel.fits._adequacy import LackOfFit, cautions, lack_of_fit
from nummodel.fits._bootstrap import bootstrap
from nummodel.fits._fit import Fit, fit, refit
from nummodel.fits._forecast import CHECKED, FELL, chance, forecast, largest_load, smallest_load
from nummodel.fits._next import next_load
from nummodel.fits._remarks import EXTRAPOLATION, advice, answer, remarks
from nummodel.fits.compare import choose

__all__ = [
    "CHECKED",
    "EXTRAPOLATION",
    "FELL",
    "Fit",
    "LackOfFit",
    "admissible",
    "advice",
    "answer",
    "bootstrap",
    "cautions",
    "chance",
    "choose",
    "compare",
    "fit",
    "forecast",
    "joint",
    "lack_of_fit",
    "largest_load",
    "laws",
    "next_load",
    "refit",
    "remarks",
    "smallest_load",
]


def __dir__() -> list[str]:
    return __all__

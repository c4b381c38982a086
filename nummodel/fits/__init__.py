"""What measurements say of laws: estimates, intervals, predictions, and which law they support."""

from nummodel.fits import admissible, compare, joint, laws
from nummodel.fits._bootstrap import bootstrap
from nummodel.fits._fit import Fit, fit, refit
from nummodel.fits._remarks import EXTRAPOLATION, answer, remarks
from nummodel.fits.compare import choose

__all__ = [
    "EXTRAPOLATION",
    "Fit",
    "admissible",
    "answer",
    "bootstrap",
    "choose",
    "compare",
    "fit",
    "joint",
    "laws",
    "refit",
    "remarks",
]


def __dir__() -> list[str]:
    return __all__

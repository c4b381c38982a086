"""Models of Extra-P 4.2.5 (Calotoiu and others 2013), in an environment of their own, as it needs
older libraries than this package. `forecast.py` runs it.

Reads a list of curves from stdin as JSON, each with loads N, throughputs X and later loads `at`;
prints for each the throughputs there. Extra-P models how times grow, so it is given N/X.
"""

import json
import sys
import warnings

from extrap.entities.callpath import Callpath
from extrap.entities.coordinate import Coordinate
from extrap.entities.measurement import Measurement
from extrap.entities.metric import Metric
from extrap.modelers.single_parameter.basic import SingleParameterModeler

warnings.simplefilter("ignore")  # it wants five points, and models fewer


def modelled(N: list[float], X: list[float], at: list[float]) -> list[float]:
    """Throughputs at the loads `at`."""
    points = [
        Measurement(Coordinate(n), Callpath("all"), Metric("time"), [n / x])
        for n, x in zip(N, X, strict=True)
    ]
    time = SingleParameterModeler().create_model(points).hypothesis.function
    return [n / float(time.evaluate(n)) for n in at]


json.dump([modelled(**curve) for curve in json.load(sys.stdin)], sys.stdout)

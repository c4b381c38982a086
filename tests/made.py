"""A closed system made up for tests: two stations, and users who think."""

import numpy as np

from nummodel.models import systems

N = np.array([10.0, 20, 40, 80, 160, 300])
VALUES = {"D_cpu": 0.03, "D_lock": 0.005, "Z": 1.0}


def measured(error=0.0, **values):
    """N, X and R of a closed system, with relative errors."""
    random = np.random.default_rng(1)
    laws = systems.closed(cpu=4, lock=1)
    X, R = (
        laws[r](N=N, **VALUES | values) * np.exp(error * random.standard_normal(len(N)))
        for r in ("X", "R")
    )
    return {"N": N, "X": X, "R": R}

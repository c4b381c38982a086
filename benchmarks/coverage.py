"""Do the intervals cover what they say? Simulated measurements with known truths.

For every cell (law, truth, loads, noise), sets of measurements are fitted, and for each estimate,
the peak, the ceiling, and the curve at the middle load, at the last and at twice the last, it is
counted how often the interval holds the truth. Of laws of X alone that is how often holding the
quantity there costs less than the F threshold, and the first replicates of every cell check that
this is the same as lying between the ends of the interval. Of columns that are fitted together the
costs may have several valleys, so that the ends are asked for where the truth costs more. Run by
`make coverage`; the table goes to data/coverage.csv.

The promise is that of `log` weights under log-normal noise. A fifth as many replicates show the
other weights: `relative` and `absolute` under the same noise, whose size `absolute` gets wrong, and
`absolute` under the noise that it is meant for.

The load for a throughput needs no count of its own: its interval holds the loads at which the
interval of the curve holds that throughput.
"""

from collections.abc import Callable, Iterator
from datetime import date
from functools import partial
from itertools import product
from pathlib import Path

import click
import numpy as np
import pandas as pd
from scipy.special import ndtri
from scipy.stats import f as F

from nummodel.fits import Fit, _intervals, _targets, fit, joint
from nummodel.fits._leastsquares import Batch, Solution
from nummodel.fits._search import descend
from nummodel.models import scaling, systems
from nummodel.models.scaling import LAWS
from nummodel.nomenclature import quantity
from nummodel.sweeps import sweep

GRIDS = {
    6: np.array([1.0, 2, 4, 8, 16, 32]),
    7: np.array([1.0, 2, 4, 8, 16, 32, 64]),
    16: np.array([1.0, 2, 3, 4, 6, 8, 10, 12, 16, 20, 24, 28, 32, 40, 48, 64]),
}
TRUTHS = {
    "amdahl": [{"sigma": s} for s in (0.2, 0.05, 0.01, 0.0)],
    "usl": [
        {"sigma": s, "kappa": k}
        for s, k in (
            (0.2, 0.01),
            (0.1, 0.003),
            (0.05, 0.0005),
            (0.02, 0.0),
            (0.0, 0.001),
            (0.0, 0.0),
        )
    ],
}
NOISES = (0.02, 0.05, 0.10)
#: Weights of the fit, the noise of the measurements, and the part of all replicates.
STUDIES = (
    ("log", "log-normal", 1.0),
    ("relative", "log-normal", 0.2),
    ("absolute", "log-normal", 0.2),
    ("absolute", "normal", 0.2),
)
#: A closed system with 4 processors and a lock, the loads at which it is measured, the columns that
#: are fitted together, the size of their errors, and the part of all replicates.
SYSTEM = {"D_cpu": 0.03, "D_lock": 0.005, "Z": 1.0}
LOADS = {
    8: np.array([10.0, 20, 40, 60, 80, 120, 200, 300]),
    16: np.array([10.0, 15, 20, 25, 30, 40, 50, 60, 80, 100, 120, 140, 160, 200, 250, 300]),
}
COLUMNS = (("X", "R"), ("X", "R", "U_cpu"))
ERRORS = {"X": 1.0, "R": 2.0, "U_cpu": 1.0}
JOINT, JOINT_NOISES = 0.1, (0.01, 0.03)
#: Sets of a joint cell whose intervals are searched for even if the cost of the truth is low.
CHECKED = 25
HEADER = "weights,error,law,truth,n,noise_pct,near_bound,quantity,covered_pct,replicates"


def cell(seed: int, replicates: int, at: tuple) -> list[tuple]:
    """Rows (near bound, quantity, covered) of one cell."""
    i, (weights, error, part), (name, truth), n, noise = at
    random, count = np.random.default_rng([seed, i]), round(part * replicates)
    law, N, true = LAWS[name], GRIDS[n], {"X1": 100.0, **truth}
    exact = law(N=N, **true)
    drawn = noise * random.standard_normal((count, n))
    spread = noise * (exact if error == "log-normal" else np.full(n, exact.mean()))
    X = exact * np.exp(drawn) if error == "log-normal" else exact + drawn * exact.mean()
    rows = []
    label = " ".join(f"{q}={v:g}" for q, v in truth.items())
    base = fit(law, {"N": N, "X": exact}, weights)
    near = any(d < 3 for d in _standard_errors(base, spread, true))
    for asked, held in covered(law, N, true, X, weights):
        share = f"{100 * held.mean():.4g}"
        rows.append((weights, error, name, label, n, 100 * noise, near, asked, share, count))
    return rows


def table(cell: np.ndarray, study: Callable, seed: int, replicates: int, cells: list):
    """The rows of one cell, for `sweep`."""
    rows = study(seed, replicates, cells[cell[0]])
    return pd.DataFrame(rows, columns=HEADER.split(","))


def joint_cell(seed: int, replicates: int, at: tuple) -> list[tuple]:
    """Rows as those of `cell`, of a closed system that is fitted to several columns together. The
    errors of a column are `noise` times those that `ERRORS` has.
    """
    i, columns, n, noise = at
    random, count = np.random.default_rng([seed, 1, i]), round(JOINT * replicates)
    laws, N = systems.closed(cpu=4, lock=1), LOADS[n]
    exact = {name: laws[name](N=N, **SYSTEM) for name in columns}
    far = 2 * N[-1]
    asked = SYSTEM | {"twice": float(laws["X"](N=far, **SYSTEM))}
    held = dict.fromkeys(asked, 0)
    for k in range(count):
        data = {"N": N} | {
            name: X * np.exp(noise * ERRORS[name] * random.standard_normal(n))
            for name, X in exact.items()
        }
        found = joint.measured(laws, data)
        for name, value in asked.items():
            held[name] += _holds(found, name, far, value, k < CHECKED)
    names = " ".join(f"{q}={v:g}" for q, v in SYSTEM.items())
    label = f"{' '.join(columns)} with {names}"
    same = ("joint", "log-normal", "closed", label, n, 100 * noise, False)
    return [(*same, q, f"{100 * h / count:.4g}", count) for q, h in held.items()]


def _holds(found: Fit, name: str, far: float, value: float, check: bool) -> bool:
    """Whether an interval holds a value. It does if the value costs less than the threshold; what
    costs more may still lie between two minima that both belong to the interval.
    """
    height = _targets.height(found, np.array([far]), {"part": np.ones(1)})
    target = height if name == "twice" else _targets.of(found, name)
    cost = _intervals.cost(found, target, np.array([value]), np.array([0]))[0]
    cheap = bool(cost <= found.quantiles(target, 0.95)[0] ** 2)
    if cheap and not check:
        return True
    low, high = _intervals.interval(found, target, 0.95)
    inside = bool(low[0] <= value <= high[0])
    assert inside or not cheap, (name, value, low, high)
    return inside


def estimated(base: Fit, X: np.ndarray) -> Solution:
    """Searched from one place for all truths, as a user would who knows none."""
    begin = {"X1": abs(X[:, 0]) / base.N[0], "sigma": np.full(len(X), 0.05), "kappa": 1e-3}
    start = np.column_stack([np.broadcast_to(begin[q], len(X)) for q in base.free])
    batch = Batch(base.law, base.free, {"N": base.N}, X, np.ones_like(X), base.weights)
    return descend(batch, None, 0, start)


def covered(
    law, N: np.ndarray, true: dict, X: np.ndarray, weights: str
) -> Iterator[tuple[str, np.ndarray]]:
    """Of each thing asked for, whether the interval of each row of X holds the truth."""
    base = fit(law, {"N": N, "X": law(N=N, **true)}, weights)
    best = estimated(base, X)
    begin = dict(zip(base.free, best.estimate.T, strict=True))
    limit = best.rss * (1 + F.ppf(0.95, 1, base.dof) / base.dof)
    for asked, value in _asked(law, true, N).items():
        target, held = _held(base, asked, value, N)

        def left(rows, grid, target=target, held=held):
            known = {"N": N} | {q: np.full((len(rows), 1), v) for q, v in held.items()}
            start = {q: v[rows] for q, v in begin.items()}
            w = np.ones((1, len(N)))
            return _intervals.squares(base, target, known, X[rows], w, start, grid).rss

        inside = left(np.arange(len(X)), False) <= limit
        out = np.flatnonzero(~inside)  # what a search from the estimates alone makes too dear
        if len(out):
            inside[out] = left(out, True) <= limit[out]
        _agree_with_ends(law, N, X[:5], weights, asked, value, inside[:5])
        yield asked, inside


def _asked(law, true: dict, N: np.ndarray) -> dict[str, float]:
    """What is asked for, and the truth of it."""
    asked = {q: true[q] for q in law.quantities[1:]}
    for q, derived in (("N_opt", scaling.optimum(law)), ("X_max", scaling.ceiling(law))):
        if derived:
            asked[q] = abs(derived.at(true))
    return asked | {where: float(law(N=at, **true)) for where, at in _loads(N).items()}


def _loads(N: np.ndarray) -> dict[str, float]:
    return {"middle": N[len(N) // 2], "end": N[-1], "twice": 2 * N[-1]}


def _held(base: Fit, asked: str, value: float, N: np.ndarray) -> tuple[_targets.Target, dict]:
    """What is asked for, as a target, and the figures at which it is held."""
    if np.isinf(value):  # a peak or a ceiling at infinity: what it takes is nothing of these
        none = [q for q in ("sigma", "kappa")[asked == "N_opt" :] if q in base.free]
        target = _targets.of(base, none[-1])
        free = tuple(q for q in base.free if q not in none)
        return target._replace(free=free), dict.fromkeys(none, 0.0)
    if asked in _loads(N):
        target = _targets.height(base, np.array([_loads(N)[asked]]))
    else:
        target = _targets.of(base, asked)
    loads = {} if target.loads is None else {"N0": float(target.loads[0])}
    return target, {target.name: value} | loads


def _standard_errors(base: Fit, spread: np.ndarray, true: dict) -> list[float]:
    """How many standard errors each truth lies from its nearest bound."""
    J = base.law.gradient(base.free)(N=base.N, **true) / spread[:, None]
    stderr = np.sqrt(np.diag(np.linalg.inv(J.T @ J)))
    ends = [np.array(quantity(q)[3:]) for q in base.free]
    return [np.abs(e - true[q]).min() / s for e, q, s in zip(ends, base.free, stderr, strict=True)]


def _agree_with_ends(law, N, X, weights, asked, value, covered) -> None:
    for x, inside in zip(X, covered, strict=True):
        one = fit(law, {"N": N, "X": x}, weights)
        if asked in _loads(N):
            low, high = one.curve([_loads(N)[asked]])[["low", "high"]].iloc[0]
        else:
            low, high = one.interval(asked)
        assert (low <= value <= high) == inside, (asked, value, low, high, inside)


@click.command()
@click.option("--seed", default=2026, show_default=True)
@click.option("--replicates", default=10_000, show_default=True)
@click.option("--jobs", default=2, show_default=True)
@click.option("--output", default="data/coverage.csv", show_default=True, type=Path)
def main(seed: int, replicates: int, jobs: int, output: Path) -> None:
    """Count how often 95 % intervals hold the truth."""
    truths = [(name, truth) for name in TRUTHS for truth in TRUTHS[name]]
    cells = [(i, *at) for i, at in enumerate(product(STUDIES, truths, GRIDS, NOISES))]
    together = [(i, *at) for i, at in enumerate(product(COLUMNS, LOADS, JOINT_NOISES))]
    rows = []
    for study, some in ((cell, cells), (joint_cell, together)):
        # Kept until `make clean`, so that a study that was stopped goes on.
        folder = Path(__file__).parent / ".sweeps" / f"{study.__name__}-{seed}-{replicates}"
        model = partial(table, study=study, seed=seed, replicates=replicates, cells=some)
        found = sweep(model, {"cell": range(len(some))}, folder, jobs, chunk=1)
        rows += [tuple(row.values()) for row in found.to_table().to_pylist()]
    lines = [",".join(f"{v:g}" if isinstance(v, float) else str(v) for v in row) for row in rows]
    output.write_text("\n".join([HEADER, *lines]) + "\n")
    click.echo(f"{date.today()}, seed {seed}")
    for weights, error, part in STUDIES:
        some = [row for row in rows if row[:2] == (weights, error)]
        summarise(some, f"{weights} weights, {error} noise", round(part * replicates))
    some = [row for row in rows if row[0] == "joint"]
    summarise(some, "columns of a closed system together", round(JOINT * replicates))


def summarise(rows, what: str, replicates: int) -> None:
    """The extremes, beside the Monte Carlo error that the extreme of so many cells has."""
    click.echo(f"{what}, {replicates} replicates a cell")
    for near, wanted in ((False, "94 to 96"), (True, "at least 93")):
        values = np.array([float(row[8]) for row in rows if row[6] == near])
        if not len(values):
            continue
        spread = 100 * np.sqrt(0.05 * 0.95 / replicates) * ndtri(1 - 0.025 / len(values))
        where = "within 3 standard errors of a bound" if near else "interior"
        click.echo(
            f"  {where}: {len(values)} coverages, {values.min():.2f} to {values.max():.2f} %, "
            f"wanted {wanted} % with a joint Monte Carlo error of {spread:.2f}"
        )


if __name__ == "__main__":
    main()

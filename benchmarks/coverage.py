"""Do the intervals cover what they say? Simulated measurements with known truths.

For every cell (law, truth, loads, noise), sets of measurements are fitted, and for each estimate,
the peak, the ceiling, and the curve at the middle load, at the last and at twice the last, it is
counted how often the interval holds the truth: how often holding the quantity there costs less
than the F threshold. That this is the same as lying between the ends of the interval is checked on
the first replicates of every cell. Run by `make coverage`; the table goes to data/coverage.csv.

The promise is that of `log` weights under log-normal noise. A fifth as many replicates show the
other weights: `relative` and `absolute` under the same noise, whose size `absolute` gets wrong, and
`absolute` under the noise that it is meant for.

The load for a throughput needs no count of its own: its interval holds the loads at which the
interval of the curve holds that throughput.
"""

from concurrent.futures import ProcessPoolExecutor
from datetime import date
from functools import partial
from itertools import product
from pathlib import Path

import click
import numpy as np
from scipy.special import ndtri
from scipy.stats import f as F
from tqdm import tqdm

from nummodel.fits import Fit, _intervals, fit
from nummodel.fits._leastsquares import Batch, descend
from nummodel.models import scaling
from nummodel.models.scaling import LAWS
from nummodel.nomenclature import quantity

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
    base = fit(law, {"N": N, "X": exact}, weights)
    # Searched from one place for all truths, as a user would who knows none.
    begin = {"X1": abs(X[:, 0]) / N[0], "sigma": np.full(count, 0.05), "kappa": 1e-3}
    start = np.column_stack([np.broadcast_to(begin[q], count) for q in base.free])
    batch = Batch(law, base.free, {"N": N}, X, np.ones_like(X), weights)
    best = descend(batch, None, 0, start)
    begin = dict(zip(base.free, best.estimate.T, strict=True))
    near = any(d < 3 for d in _standard_errors(base, spread, true))
    threshold = F.ppf(0.95, 1, base.dof)
    rows = []
    for asked, value in _asked(law, true, N).items():
        target, held = _held(base, asked, value, N)

        def left(rows, grid, target=target, held=held):
            known = {"N": N} | {q: np.full((len(rows), 1), v) for q, v in held.items()}
            start = {q: v[rows] for q, v in begin.items()}
            return _intervals.squares(base, target, known, X[rows], np.ones((1, n)), start, grid)

        limit = best.rss * (1 + threshold / base.dof)
        covered = left(np.arange(count), False) <= limit
        out = np.flatnonzero(~covered)  # what a search from the estimates alone makes too dear
        if len(out):
            covered[out] = left(out, True) <= limit[out]
        _agree_with_ends(law, N, X[:5], weights, asked, value, covered[:5])
        label = " ".join(f"{q}={v:g}" for q, v in truth.items())
        share = 100 * covered.mean()
        rows.append(
            (weights, error, name, label, n, 100 * noise, near, asked, f"{share:.4g}", count)
        )
    return rows


def _asked(law, true: dict, N: np.ndarray) -> dict[str, float]:
    """What is asked for, and the truth of it."""
    asked = {q: true[q] for q in law.quantities[1:]}
    for q, derived in (("N_opt", scaling.optimum(law)), ("X_max", scaling.ceiling(law))):
        if derived:
            asked[q] = abs(derived.at(true))
    return asked | {where: float(law(N=at, **true)) for where, at in _loads(N).items()}


def _loads(N: np.ndarray) -> dict[str, float]:
    return {"middle": N[len(N) // 2], "end": N[-1], "twice": 2 * N[-1]}


def _held(base: Fit, asked: str, value: float, N: np.ndarray) -> tuple[_intervals.Target, dict]:
    """What is asked for, as a target, and the figures at which it is held."""
    if np.isinf(value):  # a peak or a ceiling at infinity: what it takes is nothing of these
        none = [q for q in ("sigma", "kappa")[asked == "N_opt" :] if q in base.free]
        target = _intervals.of(base, none[-1])
        free = tuple(q for q in base.free if q not in none)
        return target._replace(free=free), dict.fromkeys(none, 0.0)
    if asked in _loads(N):
        target = _intervals.height(base, np.array([_loads(N)[asked]]))
    else:
        target = _intervals.of(base, asked)
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
    with ProcessPoolExecutor(jobs) as pool:
        found = pool.map(partial(cell, seed, replicates), cells)
        rows = [row for rows in tqdm(found, total=len(cells), unit="cell") for row in rows]
    lines = [",".join(f"{v:g}" if isinstance(v, float) else str(v) for v in row) for row in rows]
    output.write_text("\n".join([HEADER, *lines]) + "\n")
    click.echo(f"{date.today()}, seed {seed}")
    for weights, error, part in STUDIES:
        some = [row for row in rows if row[:2] == (weights, error)]
        summarise(some, f"{weights} weights, {error} noise", round(part * replicates))


def summarise(rows, what: str, replicates: int) -> None:
    """The extremes, beside the Monte Carlo error that the extreme of so many cells has."""
    click.echo(f"{what}, {replicates} replicates a cell")
    for near, wanted in ((False, "94 to 96"), (True, "at least 93")):
        values = np.array([float(row[8]) for row in rows if row[6] == near])
        spread = 100 * np.sqrt(0.05 * 0.95 / replicates) * ndtri(1 - 0.025 / len(values))
        where = "within 3 standard errors of a bound" if near else "interior"
        click.echo(
            f"  {where}: {len(values)} coverages, {values.min():.2f} to {values.max():.2f} %, "
            f"wanted {wanted} % with a joint Monte Carlo error of {spread:.2f}"
        )


if __name__ == "__main__":
    main()

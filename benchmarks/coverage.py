"""Do the intervals cover what they say? Simulated measurements with known truths.

For every cell (law, truth, loads, noise), `replicates` sets of log-normal measurements are fitted,
and for each estimate and for the curve at the middle load, at the last and at twice the last, it is
counted how often the interval holds the truth: how often holding the quantity there costs less
than the F threshold. That this is the same as lying between the ends of the interval is checked on
the first replicates of every cell. Run by `make coverage`; the table goes to data/coverage.csv.
"""

from datetime import date
from pathlib import Path

import click
import numpy as np
from scipy.stats import f as F
from tqdm import tqdm

from nummodel import profile
from nummodel.fit import Fit, fit
from nummodel.leastsquares import solve
from nummodel.scaling import LAWS

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
HEADER = "law,truth,n,noise_pct,near_bound,quantity,covered_pct,replicates"


def cell(name: str, truth: dict, n: int, noise: float, replicates: int, random, weights: str):
    """Rows (near bound, quantity, covered) of one cell."""
    law, N, true = LAWS[name], GRIDS[n], {"X1": 100.0, **truth}
    exact = law(N=N, **true)
    X = exact * np.exp(noise * random.standard_normal((replicates, n)))
    base = fit(law, {"N": N, "X": exact}, weights)
    w = X**-2.0 if weights == "relative" else np.ones_like(X)
    # Searched from one place for all truths, as a user would who knows none.
    begin = {"X1": X[:, 0] / N[0], "sigma": np.full(replicates, 0.05), "kappa": 1e-3}
    start = np.column_stack([np.broadcast_to(begin[q], replicates) for q in base.free])
    best = solve(law, base.free, {"N": N}, X, w, start, base.log)
    distance = _standard_errors(base, noise, true)
    near = any(d < 3 for d in distance)
    threshold = F.ppf(0.95, 1, base.dof)
    for quantity, target, value in _asked(base, true, N):
        rest = best.estimate[:, [base.free.index(q) for q in target.free]]
        known = {"N": N, target.name: np.array([value])} | {
            q: v[None, :] for q, v in target.given.items()
        }
        held = solve(target.law, target.free, known, X, w, rest, base.log)
        cost = (held.rss - best.rss) / (best.rss / base.dof)
        covered = cost <= threshold
        _agree_with_ends(law, N, X[:5], weights, quantity, value, covered[:5])
        yield near, quantity, covered.mean()


def _asked(base: Fit, true: dict, N: np.ndarray):
    for q in base.free:
        yield q, profile.of(base, q), true[q]
    for where, at in (("middle", N[len(N) // 2]), ("end", N[-1]), ("twice", 2 * N[-1])):
        height = float(base.law(N=at, **true))
        yield where, profile.height(base, np.array([at])), height


def _standard_errors(base: Fit, noise: float, true: dict) -> list[float]:
    """How many standard errors each truth lies from its nearest bound."""
    from nummodel.nomenclature import quantity

    J = base.law.gradient(base.free)(N=base.N, **true) / base.at(base.N)[:, None]
    spread = noise * np.sqrt(np.diag(np.linalg.inv(J.T @ J)))
    ends = [np.array(quantity(q)[3:]) for q in base.free]
    return [np.abs(e - true[q]).min() / s for e, q, s in zip(ends, base.free, spread, strict=True)]


def _agree_with_ends(law, N, X, weights, quantity, value, covered) -> None:
    for x, inside in zip(X, covered, strict=True):
        one = fit(law, {"N": N, "X": x}, weights)
        if quantity in one.free:
            low, high = one.interval(quantity)
        else:
            at = {"middle": N[len(N) // 2], "end": N[-1], "twice": 2 * N[-1]}[quantity]
            low, high = one.curve([at])[["low", "high"]].iloc[0]
        assert (low <= value <= high) == inside, (quantity, value, low, high, inside)


@click.command()
@click.option("--seed", default=2026, show_default=True)
@click.option("--replicates", default=10_000, show_default=True)
@click.option("--weights", default="log", show_default=True, type=click.Choice(["log", "relative"]))
@click.option("--output", default="data/coverage.csv", show_default=True, type=Path)
def main(seed: int, replicates: int, weights: str, output: Path) -> None:
    """Count how often 95 % intervals hold the truth."""
    cells = [
        (name, truth, n, noise)
        for name, truths in TRUTHS.items() for truth in truths for n in GRIDS for noise in NOISES
    ]  # fmt: skip
    rows = []
    for i, (name, truth, n, noise) in enumerate(tqdm(cells, unit="cell")):
        random = np.random.default_rng([seed, i])
        label = " ".join(f"{q}={v:g}" for q, v in truth.items())
        for near, quantity, covered in cell(name, truth, n, noise, replicates, random, weights):
            rows.append((name, label, n, 100 * noise, near, quantity, 100 * covered, replicates))
    lines = [",".join(f"{v:g}" if isinstance(v, float) else str(v) for v in row) for row in rows]
    output.write_text("\n".join([HEADER, *lines]) + "\n")
    summarise(rows, replicates, seed, weights)


def summarise(rows, replicates: int, seed: int, weights: str) -> None:
    """The extremes, beside the Monte Carlo error that the extreme of so many cells has."""
    from scipy.special import ndtri

    click.echo(f"{date.today()}, seed {seed}, {replicates} replicates a cell, {weights} weights")
    for near, wanted in ((False, "94 to 96"), (True, "at least 93")):
        values = np.array([row[6] for row in rows if row[4] == near])
        spread = 100 * np.sqrt(0.05 * 0.95 / replicates) * ndtri(1 - 0.025 / len(values))
        where = "within 3 standard errors of a bound" if near else "interior"
        click.echo(
            f"{where}: {len(values)} coverages, {values.min():.2f} to {values.max():.2f} %, "
            f"wanted {wanted} % with a joint Monte Carlo error of {spread:.2f}"
        )


if __name__ == "__main__":
    main()

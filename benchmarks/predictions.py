"""Do the intervals of predictions hold new measurements as often as they say?

Measurements are simulated from known truths and fitted; one more measurement is drawn at the last
load, and at 2, 10 and 100 times that; it is counted how often its interval holds it: how often
adding it to the points fitted costs less than the F threshold (`Fit.predict`). Printed by
`python benchmarks/predictions.py`, in some minutes.
"""

import click
import numpy as np

from nummodel.fits import fit, quantile
from nummodel.fits._squares import solve, starts
from nummodel.models.scaling import LAWS

GRIDS = {
    7: np.array([1.0, 2, 4, 8, 16, 32, 64]),
    16: np.array([1.0, 2, 3, 4, 6, 8, 10, 12, 16, 20, 24, 28, 32, 40, 48, 64]),
}
TRUTHS = (
    ("amdahl", {"sigma": 0.0}),
    ("amdahl", {"sigma": 0.01}),
    ("usl", {"sigma": 0.0, "kappa": 0.0}),
    ("usl", {"sigma": 0.05, "kappa": 0.0}),
    ("usl", {"sigma": 0.05, "kappa": 1e-5}),
    ("usl", {"sigma": 0.05, "kappa": 5e-4}),
)
NOISES = (0.02, 0.1)
TIMES = (1, 2, 10, 100)


def fitted(law, N, X, start):
    """The estimates of each row of X, in columns, and their sums of squares: the lowest of those
    that `start` and the places of a mesh lead to.
    """
    problem = fit(law, {"N": N, "X": X[0]}, "log").problem
    best, least = solve(problem, start, X.T)
    for p in starts(problem).T[:3]:
        more, rss = solve(problem, np.tile(p[:, None], len(X)), X.T)
        best, least = np.where(rss < least, more, best), np.minimum(rss, least)
    return best, least


def covered(random, count: int, name: str, truth: dict, N, noise: float) -> list[float]:
    """The share of new measurements inside their intervals, at each of `TIMES`."""
    law, found = LAWS[name], []
    loads = np.concatenate([N, np.array(TIMES) * N[-1]])
    drawn = np.exp(noise * random.standard_normal((count, len(loads))))
    X = law(N=loads, X1=100.0, **truth) * drawn
    start = np.array([X[:, 0], *(np.full(count, v + 1e-4) for v in truth.values())])
    points = X[:, : len(N)]
    alone, least = fitted(law, N, points, start)
    dof = len(N) - len(law.quantities) + 1
    for i in range(len(N), len(loads)):
        rss = fitted(law, np.append(N, loads[i]), np.column_stack([points, X[:, i]]), alone)[1]
        cost = (rss - least) / (least / dof)
        found.append(100 * float(np.mean(cost <= quantile(0.95, dof) ** 2)))
    return found


@click.command()
@click.option("--seed", default=2026, show_default=True)
@click.option("--replicates", default=10_000, show_default=True)
def main(seed: int, replicates: int) -> None:
    """Count how often 95 % intervals of predictions hold a new measurement."""
    random = np.random.default_rng(seed)
    click.echo("law,truth,n,noise_pct," + ",".join(f"at_{k}_times_pct" for k in TIMES))
    for name, truth in TRUTHS:
        for n, N in GRIDS.items():
            for noise in NOISES:
                shares = covered(random, replicates, name, truth, N, noise)
                label = " ".join(f"{q}={v:g}" for q, v in truth.items())
                figures = ",".join(f"{share:.1f}" for share in shares)
                click.echo(f"{name},{label},{n},{100 * noise:g},{figures}")


if __name__ == "__main__":
    main()

"""How right are the networks? Random ones against arithmetic of 60 digits, and Schweitzer's
approximation against the exact solution. Run by `make networks` (SEED=2026): two tables on stdout.
"""

import sys
from pathlib import Path

import click
import numpy as np
from tqdm import tqdm

from nummodel.models import networks

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
import exact

TOTALS = ((2, 5), (6, 20), (21, 60), (61, 200))


@click.command()
@click.option("--seed", default=2026)
@click.option("--count", default=200, help="networks solved with 60 digits")
@click.option("--largest", default=300, help="largest population of those")
def main(seed: int, count: int, largest: int) -> None:
    rng = np.random.default_rng(seed)
    errors = [
        exact.worst_error(*exact.random_network(rng, largest)) for _ in tqdm(range(count), "exact")
    ]
    print(f"{count} networks of one class, N to {largest}, seed {seed}: X, Q and R are within")
    print(f"{max(errors):.1e} of 60-digit arithmetic, half of the networks {np.median(errors):.1e}")
    print("\nSchweitzer's error in X and R of a class, 500 networks of 1 to 5 stations, two to")
    print("four classes (two, where there are more than 60 customers)")
    print("customers   X median   95 %   worst   R median   95 %   worst")
    for low, high in TOTALS:
        found = np.array([_schweitzer_errors(rng, low, high) for _ in tqdm(range(500), "approx")])
        worst = [np.percentile(found[:, i], p) for i in (0, 1) for p in (50, 95, 100)]
        print(f"{low:3} to {high:3}  " + "  ".join(f"{w:7.2%}" for w in worst))


def _schweitzer_errors(rng, low: int, high: int) -> tuple[float, float]:
    """Largest error of a class, in X and in R."""
    total = int(rng.integers(low, high + 1))
    classes = int(rng.integers(2, 1 + min(total, 4 if high < 100 else 2)))
    N = tuple(int(n) for n in 1 + rng.multinomial(total - classes, np.ones(classes) / classes))
    demands = 10 ** rng.uniform(-2, 0, (rng.integers(1, 6), classes))
    stations = [networks.queue(d) for d in demands]
    Z = rng.choice([0.0, 1.0]) * 10 ** rng.uniform(-1, 1, classes)
    truth = networks.solve(stations, N, Z)
    guess = networks.schweitzer(stations, N, Z)
    assert truth.exact
    return np.abs(guess.X / truth.X - 1).max(), np.abs(guess.R / truth.R - 1).max()


if __name__ == "__main__":
    main()

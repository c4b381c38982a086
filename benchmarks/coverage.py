"""Do the intervals cover what they say? Simulated measurements with known truths.

For every cell (law, truth, loads, noise), sets of measurements are fitted, and for each estimate,
the peak, the ceiling, and the curve at the middle load, at the last and at twice the last, it is
counted how often the interval holds the truth. Of laws of X alone that is how often holding the
quantity there costs less than the F threshold, and the first replicates of every cell check that
this is the same as lying between the ends of the interval. Of columns that are fitted together the
ends are asked for, unless all that is true together costs less than the threshold. Run by
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

from nummodel.fits import Fit, fit, quantile
from nummodel.fits._squares import Problem, solve, starts
from nummodel.formula import Formula
from nummodel.models import scaling, systems
from nummodel.models.scaling import LAWS
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
#: Sets of a joint cell whose intervals are searched for even if the truth costs little.
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
        found = fit(laws, data)
        for name in asked:
            held[name] += _holds(found, name, far, asked, k < CHECKED)
    names = " ".join(f"{q}={v:g}" for q, v in SYSTEM.items())
    label = f"{' '.join(columns)} with {names}"
    same = ("joint", "log-normal", "closed", label, n, 100 * noise, False)
    return [(*same, q, f"{100 * h / count:.4g}", count) for q, h in held.items()]


def _holds(found: Fit, name: str, far: float, truth: dict, check: bool) -> bool:
    """Whether an interval holds the truth."""
    twice, p = name == "twice", np.array([[truth[n]] for n in found.free])
    e, _ = found.problem.weighted(p, found.problem.X, found.problem.w)
    moved = found.slopes_at(np.array([far]))[0] if twice else np.array(found.inner) == name
    limit = found.quantile(0.95, moved) ** 2 * found.variance
    cheap = bool(np.sum(e**2) - found.rss <= limit)
    if cheap and not check:
        return True
    low, high = found.curve([far]).iloc[0, 2:] if twice else found.interval(name)
    inside = bool(low <= truth[name] <= high)
    assert inside or not cheap, (name, truth[name], low, high)
    return inside


def estimated(base: Fit, X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The estimates of each row of X, in columns, and their sums of squares. Searched from one
    place for all truths, as a user would who knows none.
    """
    begin = {"X1": abs(X[:, 0]) / base.N[0], "sigma": np.full(len(X), 0.05), "kappa": 1e-3}
    start = np.array([np.broadcast_to(begin[q], len(X)) for q in base.free])
    return solve(base.problem, start, X.T)


def covered(
    law, N: np.ndarray, true: dict, X: np.ndarray, weights: str
) -> Iterator[tuple[str, np.ndarray]]:
    """Of each thing asked for, whether the interval of each row of X holds the truth."""
    base = fit(law, {"N": N, "X": law(N=N, **true)}, weights)
    best, rss = estimated(base, X)
    limit = rss * (1 + quantile(0.95, base.dof) ** 2 / base.dof)
    for asked, value in _asked(law, true, N).items():
        held = _held(base, asked, value, N)
        inside = solve(held, best[[base.free.index(q) for q in held.free]], X.T)[1] <= limit
        for start in starts(held).T:  # what a search from the estimates alone makes too dear
            out = np.flatnonzero(~inside)
            start = np.tile(start[:, None], len(out))
            inside[out] = solve(held, start, X[out].T)[1] <= limit[out]
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


def _held(base: Fit, asked: str, value: float, N: np.ndarray) -> Problem:
    """The fit of those curves alone of which what is asked for has this value."""
    law, (column,) = base.law, base.columns
    if asked in base.free or np.isinf(value):  # a peak or a ceiling at infinity: without these
        none = ("sigma", "kappa")[asked == "N_opt" :]
        known = {q: 0.0 for q in none if q in base.free} if np.isinf(value) else {asked: value}
        free = tuple(q for q in base.free if q not in known)
        return base.problem._replace(free=free, known=known)
    gone = "kappa" if asked == "N_opt" else "X1"
    rest = tuple(q for q in law.quantities if q != gone)

    def body(N, **values):
        if asked == "N_opt":
            return law.body(N=N, kappa=(1 - values["sigma"]) / value**2, **values)
        ceiling = scaling.ceiling(law)
        known = {"N": _loads(column.N).get(asked), "X1": 1.0, **values}
        once = ceiling if asked == "X_max" else law
        X1 = value / once.body(**{q: known[q] for q in once.quantities})
        return law.body(N=N, X1=X1, **values)

    held = Formula.made("X", body, rest, f"{law.__name__}_{asked}", "")
    return base.problem._replace(columns=(column._replace(law=held),), free=rest[1:])


def _standard_errors(base: Fit, spread: np.ndarray, true: dict) -> list[float]:
    """How many standard errors each truth lies from its nearest bound."""
    J = base.law.gradient(base.free)(N=base.N, **true) / spread[:, None]
    stderr = np.sqrt(np.diag(np.linalg.inv(J.T @ J)))
    truths = np.array([true[q] for q in base.free])
    return (np.abs(base.problem.ends - truths).min(axis=0) / stderr).tolist()


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

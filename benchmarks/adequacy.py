"""How often tests of a fit notice what is wrong, how often they raise a false alarm, and whether
`weights="auto"` does better than weights chosen beforehand.

Measurements are simulated and fitted as in `coverage.py`: all sets of a cell in one call. Run by
`make adequacy`, which writes benchmarks/ADEQUACY.md.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import date
from functools import partial
from pathlib import Path

import click
import numpy as np
from coverage import GRIDS, covered, estimated
from numpy.linalg import slogdet
from scipy.linalg import cholesky, null_space, solve
from scipy.special import logsumexp, xlogy

from nummodel.answers.remarks import CLOSE
from nummodel.fits import Fit, fit, laws
from nummodel.fits._fit import _restricted
from nummodel.models import networks
from nummodel.models.scaling import LAWS
from nummodel.sweeps import sweep

OUTPUT = Path(__file__).parent / "ADEQUACY.md"
AMDAHL, USL = ("amdahl", {"sigma": 0.05}), ("usl", {"sigma": 0.05, "kappa": 0.0005})
EDGE = ("usl", {"sigma": 0.02, "kappa": 0.0})
TESTS = ("repeats", "bends", "errors")
FAULTS = ("weights", "outlier", "runs")
#: The loads of a study; `7 x 3` are three runs with the same seven loads.
LOADS = {str(n): N for n, N in GRIDS.items()} | {
    f"7 x {runs}": np.tile(GRIDS[7], runs) for runs in (3, 5, 10)
}
SPREAD = 0.05


def drawn(random, law: str, true: dict, N: np.ndarray, noise: str, count: int) -> np.ndarray:
    """Measurements, a row for each set, all positive: of percentage or of absolute noise."""
    exact = LAWS[law](N=N, X1=100.0, **true)
    error = SPREAD * random.standard_normal((2 * count, len(N)))
    X = exact * np.exp(error) if noise == "percentage" else exact + exact.mean() * error
    return X[(X > 0).all(axis=1)][:count]


def fitted(law: str, N: np.ndarray, X: np.ndarray, weights: str) -> Iterator[Fit]:
    """The fit of each row of X."""
    base = fit(LAWS[law], {"N": N, "X": X[0]}, weights)
    (column,) = base.columns
    for x, p in zip(X, estimated(base, X)[0].T.tolist(), strict=True):
        problem = base.problem._replace(columns=(column._replace(X=x),))
        yield replace(base, problem=problem, estimate=dict(zip(base.free, p, strict=True)))


def p_values(one: Fit) -> tuple[list[float], str]:
    """Of each of the TESTS, NaN for one that the points do not allow, and the likeliest fault."""
    lack = laws.lack_of_fit(one)
    repeats = lack.p if lack and "repeated" in lack.how else np.nan
    bends = laws._bends(one) if np.isnan(repeats) else np.nan
    errors, fault = laws.errors(one)
    return [repeats, bends, errors], fault


def cautioned(p: np.ndarray) -> np.ndarray:
    """Which tests lead to a caution."""
    return p < [laws.WRONG] * 2 + [laws.ODD]


def size(sets: int, at: tuple) -> str:
    """A row of the table of false alarms."""
    i, (law, true), loads, weights = at
    N, random = LOADS[loads], np.random.default_rng([1, i])
    noise = "absolute" if weights == "absolute" else "percentage"
    X = drawn(random, law, true, N, noise, sets)
    p = np.array([p_values(f)[0] for f in fitted(law, N, X, weights)])
    alarms = [f"{100 * np.mean(q < 0.05):.1f}" if np.isfinite(q).all() else "" for q in p.T]
    return _row(_name(law, true), loads, weights, *alarms, _share(cautioned(p).any(axis=1)))


def power(sets: int, at: tuple) -> str:
    """A row of the table of power: a closed system, fitted by a law that is wrong of it."""
    i, law, runs = at
    stations = [networks.queue(0.03, 4), networks.queue(0.005)]
    N = np.array([10.0, 20, 40, 80, 120, 160, 200, 300])
    exact = np.tile(networks.solve(stations, N.astype(int), 1.0).X, runs)
    N, random = np.tile(N, runs), np.random.default_rng([2, i])
    X = exact * np.exp(0.01 * random.standard_normal((sets, len(N))))
    p = [laws.lack_of_fit(f) for f in fitted(law, N, X, "log")]
    noticed = [_share([one.p < level for one in p]) for level in (0.05, laws.WRONG)]
    return _row(law, runs, *noticed, p[0].how)


def faults() -> list[tuple]:
    """Truth, loads, weights, noise, and the size of a fault in units of the noise."""
    rows = []
    for truth in (AMDAHL, USL):
        for loads in ("7", "16", "7 x 3"):
            for noise, right in (("percentage", "log"), ("absolute", "absolute")):
                wrong = "absolute" if right == "log" else "log"
                rows += [(truth, loads, right, noise, "", 0), (truth, loads, wrong, noise, "", 0)]
    for loads in ("7", "16", "7 x 3"):
        rows += [(USL, loads, "log", "percentage", "outlier", k) for k in (4, 8, 16)]
    for loads in ("7 x 3", "7 x 5", "7 x 10"):
        rows += [(USL, loads, "log", "percentage", "runs", k) for k in (0.5, 1, 2)]
    return rows


def noticed(sets: int, at: tuple) -> str:
    """A row of the table of cautions."""
    i, (law, true), loads, weights, noise, fault, k = at
    N, random = LOADS[loads], np.random.default_rng([3, i])
    X = drawn(random, law, true, N, noise, sets)
    if fault == "outlier":
        place = random.integers(len(N), size=len(X))
        X[np.arange(len(X)), place] *= np.exp(k * SPREAD * random.choice([-1, 1], len(X)))
    elif fault == "runs":
        own = np.repeat(random.standard_normal((len(X), len(N) // 7)), 7, axis=1)
        X = X * np.exp(k * SPREAD * own)
    hold = dict(covered(LAWS[law], N, {"X1": 100.0, **true}, X, weights))
    worst = min(hold, key=lambda asked: hold[asked].mean())
    p, likeliest = zip(*map(p_values, fitted(law, N, X, weights)), strict=True)
    which = cautioned(np.array(p))
    told = [which[:, 2] & (np.array(likeliest) == name) for name in FAULTS]
    tests = [_share(those) for those in (which[:, :2].any(axis=1), *told)]
    what = f"{noise} noise" + f", {fault} of {k:g}" * bool(fault)
    interval = f"{_share(hold[worst])} ({worst})"
    wrong = fault or (weights == "log") != (noise == "percentage")
    most = _share(at_most([at[1:]])) if wrong else ""
    return _row(law, loads, weights, what, interval, *tests, _share(which.any(axis=1)), most)


def pooled(rows: list[str]) -> str:
    """What the table of cautions says of all sets whose intervals are broken."""
    cells = [[cell.strip() for cell in row.split("|")[1:-1]] for row in rows]
    faulty = [i for i, row in enumerate(cells) if row[-1]]
    broken = [i for i in faulty if float(cells[i][4].split()[0]) < 92]
    told, most = np.array([[float(cells[i][-2]), float(cells[i][-1])] for i in broken]).T
    alike: dict[str, list[tuple]] = {}
    for i in broken:
        alike.setdefault(str(faults()[i][:3]), []).append(faults()[i])
    together = 100 * np.mean([share for some in alike.values() for share in at_most(some)])
    return (
        f"Coverage is below 92 % in {len(broken)} rows. Cautions are printed in {told.mean():.1f} "
        f"% of the sets of these rows. No test can print them in more than {most.mean():.1f} %, "
        "even if it is told in which row it is. No test that is not told this can print them in "
        f"more than {together:.1f} %, even if it is told which rows have the same law, points and "
        "weights, with the size of each fault, and looks for nothing else. Row by row, "
        f"{np.sum(told >= 95)} have cautions in 95 % of the sets, and in {np.sum(most < 95)} "
        "others no test can do that."
    )


def auto(sets: int, at: tuple) -> str:
    """A row of the table of weights found from the data."""
    i, (law, true), loads, noise = at
    N, random = LOADS[loads], np.random.default_rng([4, i])
    X = drawn(random, law, true, N, noise, sets)
    hold, likely, chosen = {}, {}, {}
    for weights in ("absolute", "log"):
        hold[weights] = dict(covered(LAWS[law], N, {"X1": 100.0, **true}, X, weights))
        fits = {name: list(fitted(name, N, X, weights)) for name in LAWS}
        likely[weights] = {name: np.array([_restricted(f) for f in fits[name]]) for name in LAWS}
        each = [dict(zip(fits, some, strict=True)) for some in zip(*fits.values(), strict=True)]
        chosen[weights] = np.array([laws.choose(some)[0] == law for some in each])
    log = {name: likely["log"][name] > likely["absolute"][name] for name in LAWS}
    hold["auto"] = {q: np.where(log[law], hold["log"][q], hold["absolute"][q]) for q in hold["log"]}
    chosen["auto"] = np.where(log["usl"], chosen["log"], chosen["absolute"])
    found = log[law] == (noise == "percentage")
    close = abs(likely["log"][law] - likely["absolute"][law]) < CLOSE
    lowest = [min(map(np.mean, hold[weights].values())) for weights in hold]
    shares = [f"{100 * share:.1f}" for share in lowest]
    rights = [_share(chosen[weights]) for weights in hold]
    return _row(_name(law, true), loads, noise, *shares, _share(found), _share(close), *rights)


def at_most(rows: list[tuple]) -> list[float]:
    """Shares of sets in which each of some faults is noticed by the test that notices them most
    often on average, of all that raise false alarms in 10 % of sets and give the same answer for
    another curve of the law and another size of the errors.

    The faults have the same law, loads and weights; the test knows which they are, and of which
    size. It is the mean of the likelihoods that they give to the errors which the curve leaves,
    divided by their length (Neyman and Pearson; King 1987, Econometric Reviews 6:169), for normal
    errors and a law that is linear in its estimates. Simulated, to half a point.
    """
    faulty, likely = zip(*map(alternative, rows), strict=True)

    def mean(e: np.ndarray) -> np.ndarray:
        e = e / np.linalg.norm(e, axis=1)[:, None]
        return logsumexp([one(e) for one in likely], axis=0)

    right = np.random.default_rng(5).standard_normal(faulty[0].shape)
    enough = np.quantile(mean(right), 0.9)
    return [float(np.mean(mean(e) > enough)) for e in faulty]


def alternative(row: tuple) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
    """Errors with a fault, as the curve leaves them, and the logarithm of how much likelier the
    fault makes errors of length 1 than right errors are. An outlier is equally likely at each point
    and in both directions.
    """
    (law, true), loads, weights, noise, fault, k = row
    N, draws = LOADS[loads], 10_000
    exact = LAWS[law](N=N, X1=100.0, **true)
    left = null_space(fit(LAWS[law], {"N": N, "X": exact}, weights).slopes.T)
    spare, random = left.shape[1], np.random.default_rng([6, int(4 * k)])
    if fault == "outlier":
        e = random.standard_normal((draws, spare)) + k * left[random.integers(len(N), size=draws)]
        size = np.linspace(0, 2 * k + 10, 100)[1:]  # of the errors, which is not known
        own = xlogy(spare - 1, size) - size**2 / 2
        own -= logsumexp(own)
        far = k**2 * (left**2).sum(axis=1) / 2 + np.log(len(N))

        def outlier(e: np.ndarray) -> np.ndarray:
            shift = k * (e @ left.T)
            both = shift[:, :, None] * size  # up or down
            each = logsumexp(own + np.logaddexp(both, -both) - np.log(2), axis=2)
            return logsumexp(each - far, axis=1)

        return e, outlier
    grow = {"log": 1, "absolute": 0}
    right_weights = "log" if noise == "percentage" else "absolute"
    really = (exact / exact.mean()) ** (grow[right_weights] - grow[weights])
    run = np.arange(len(N)) // 7
    V = np.diag(really**2) + k**2 * (run[:, None] == run) * (fault == "runs")
    A = left.T @ V @ left

    def covariance(e: np.ndarray) -> np.ndarray:
        squares = np.einsum("ij,ji->i", e, solve(A, e.T))
        return -(slogdet(A)[1] + spare * np.log(squares)) / 2

    return random.standard_normal((draws, spare)) @ cholesky(A), covariance


def _name(law: str, true: dict) -> str:
    return " ".join([law, *(f"{q}={v:g}" for q, v in true.items())])


def _share(those) -> str:
    return f"{100 * np.mean(those):.1f}"


def _row(*cells) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def studies(sets: int) -> Iterator[tuple[str, str, tuple[str, ...], partial, list[tuple]]]:
    """Title, what a reader must know, columns, function and cells of each table."""
    some = max(sets // 10, 1)
    truths, loads, kinds = (AMDAHL, USL, EDGE), ("7", "16", "7 x 3"), ("log", "absolute")
    cells = [(t, n, w) for t in truths for n in loads for w in kinds]
    cells += [(USL, "7", "relative")]
    yield (
        "False alarms",
        f"Shares in percent of {sets:,} sets of a right law with right weights and independent "
        "errors of 5 %: p values below 5 %, test by test, and sets with any caution.",
        ("truth", "points", "weights", *TESTS, "any caution"),
        partial(size, sets),
        cells,
    )
    yield (
        "A closed system fitted by a scaling law",
        f"{some:,} sets: 4 processors of 30 ms, a lock of 5 ms, think time 1 s, errors of 1 %, "
        "eight loads from 10 to 300. Shares of sets in percent in which lack of fit is noticed.",
        ("law", "runs", "p < 5 %", "p < 1 %", "how"),
        partial(power, some),
        [(law, runs) for law in LAWS for runs in (1, 3)],
    )
    yield (
        "Faults, intervals and cautions",
        f"{some:,} sets a row; shares in percent. The coverage is the lowest among estimates, "
        "peak, ceiling and curve, of intervals that promise 95 %. An outlier is one point that is "
        "off by so many standard deviations of the noise; runs have a factor of their own, with "
        "so many times the standard deviation of the noise. One test looks for wrong weights, an "
        "outlier and runs together; their columns say how often each was named as the likeliest. "
        "The last column is a bound: a test "
        "that knows neither the curve nor the size of the errors, and has false alarms in 10 % of "
        "sets, notices this fault in no more sets, even if it is told the size of the fault and "
        "looks for no other (computed for normal errors and a law that is linear in its estimates, "
        "to half a point). Few points leave much unnoticed.",
        (
            *("law", "points", "weights", "errors", "coverage", "law misses"),
            *(*FAULTS, "any caution", "at most"),
        ),
        partial(noticed, some),
        faults(),
    )
    truths = (AMDAHL, ("amdahl", {"sigma": 0.2}), USL, ("usl", {"sigma": 0.1, "kappa": 0.003}))
    cells = [(t, n, e) for t in truths for n in loads for e in ("percentage", "absolute")]
    names = ("absolute", "log", "auto")
    yield (
        "Weights found from the data",
        f"{some:,} sets a row; shares in percent: the lowest coverage of intervals, how often "
        "`auto` finds the right kind, how often it says that the points hardly tell which kind is "
        "right, and how often the right law is chosen of all.",
        (
            *("truth", "points", "noise"),
            *(f"coverage, {name}" for name in names),
            *("right kind", "hardly told"),
            *(f"right law, {name}" for name in names),
        ),
        partial(auto, some),
        cells,
    )


def line(cell: np.ndarray, study: partial, cells: list[tuple]) -> dict[str, np.ndarray]:
    """The row of one cell, for `sweep`."""
    return {"row": np.array([study(cells[cell[0]])])}


@click.command()
@click.option("--seed", default=2026, show_default=True)
@click.option("--sets", default=10_000, show_default=True)
@click.option("--jobs", default=2, show_default=True)
@click.option("--output", default=OUTPUT, show_default=True, type=Path)
def main(seed: int, sets: int, jobs: int, output: Path) -> None:
    """Write how often what is wrong is noticed."""
    lines = ["# What tests of a fit notice", "", f"Simulated on {date.today()} with seed {seed}."]
    for title, what, columns, study, cells in studies(sets):
        numbered = [(seed + i, *cell) for i, cell in enumerate(cells)]
        # Kept until `make clean`, so that a study that was stopped goes on.
        folder = Path(__file__).parent / ".sweeps" / f"{study.func.__name__}-{seed}-{sets}"
        model = partial(line, study=study, cells=numbered)
        found = sweep(model, {"cell": range(len(cells))}, folder, jobs, chunk=1)
        rows = found.to_table()["row"].to_pylist()
        lines += [
            "",
            f"## {title}",
            "",
            what,
            "",
            _row(*columns),
            _row(*["---"] * len(columns)),
        ]
        lines += rows
        if study.func is noticed:
            lines += ["", pooled(rows)]
        output.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()

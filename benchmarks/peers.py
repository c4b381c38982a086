"""What other tools do as well: fits, closed networks, waits. How fast are they, and who is wrong?

Called by `run.py`. A tool that is not installed is named as absent.
"""

from collections.abc import Callable
from functools import partial
from importlib import import_module

import numpy as np
from sidebyside import (
    PATIENCE,
    ROUNDS,
    Peer,
    Work,
    by_octave,
    by_r,
    commas,
    line_function,
    matrix,
    table,
    timed,
    versions,
)

from nummodel.fits import fit
from nummodel.models import queueing, scaling
from nummodel.models.networks import Solution, queue, solve
from nummodel.records import columns

#: Of a million waits, those that are left to tools that take them one at a time.
SAMPLE = 1000

#: What was tried for the goals, measured in turn on one machine, on an earlier day than the table.
TRIED = (
    "lmfit gets a start near the solution and descends once. Our fit searches for starts, descends "
    "from several of them, and respects bounds. "
    "Two changes were measured when they were made, old and new code in turn. One population of "
    "10,000 took 0.85 ms when a filter computed the queues of all smaller populations as well, and "
    "0.56 ms when only its own queues were computed, as sums of polynomials. A million waits took "
    "0.185 s, also when the same loop ran in smaller pieces, and 0.129 s when they were computed "
    "in order of c, with two operations for each server instead of five."
)

FIVE, THINK = np.array([0.005, 0.03, 0.027, 0.01, 0.02]), 1.0
TWO_CLASSES = np.array([[0.1, 0.3], [0.2, 0.05], [0.05, 0.1], [0.07, 0.12], [0.15, 0.02]])
MULTISERVER, SERVERS = np.array([1.0, 0.04, 0.03]), (32, 1, 1)


def compared() -> list[str]:
    """Who is here and who is absent, the table, and a simulation."""
    found = versions()
    absent = [tool for tool, number in found.items() if not number]
    present = [f"{tool} {number}" for tool, number in found.items() if number]
    said = f"Compared with {', '.join(present)}."
    said += f" Not installed: {', '.join(absent)}." * bool(absent)
    about = (
        f"The times are medians of {ROUNDS} rounds. In each round every tool runs once, but a tool "
        f"that has taken more than {PATIENCE:g} s does not run again. The range of a ratio stands "
        "behind the ratio. The last column is the largest relative difference from our figures, in "
        "bold where the peer is wrong. Tests compare our figures with published ones and 60-digit "
        "arithmetic."
    )
    curious = ["", simulated()] if found["ciw"] else []
    return [said, "", *table(works(), found), "", about, "", TRIED, *curious]


def works() -> list[Work]:
    """What is compared, in order."""
    return [*fits(), *one_class(), two_classes(), many_servers(), waits()]


def fits() -> list[Work]:
    """The USL fitted to 7 points, alone and with intervals of its three estimates."""
    points, law = columns.read("specsdm91"), scaling.usl_throughput

    def ours():
        return fit(law, {"N": points.N, "X": points.X})

    def bounds() -> np.ndarray:
        found = ours()
        return np.array([found.interval(q) for q in found.estimate]).ravel()

    def theirs():
        def usl(N, X1, sigma, kappa):
            return X1 * N / (1 + sigma * (N - 1) + kappa * N * (N - 1))

        lmfit = import_module("lmfit")
        return lmfit.Model(usl).fit(points.X, N=points.N, X1=60, sigma=0.05, kappa=1e-4)

    def their_bounds() -> np.ndarray:
        found = theirs().conf_interval(sigmas=[0.95])
        return np.array([(ends[0][1], ends[-1][1]) for ends in found.values()]).ravel()

    return [
        Work(
            "USL fitted to 7 points",
            lambda: np.array(list(ours().estimate.values())),
            [
                Peer(
                    "lmfit",
                    "`Model.fit`",
                    partial(timed, lambda: np.array(list(theirs().values.values()))),
                    0.5,
                )
            ],
        ),
        Work(
            "the same, with profile intervals",
            bounds,
            [Peer("lmfit", "`conf_interval`", partial(timed, their_bounds), 1)],
        ),
    ]


def figures(found: Solution) -> np.ndarray:
    """X, and Q and R of every station (and class)."""
    return np.concatenate([np.atleast_1d(found.X), found.Q.ravel(), found.R_k.ravel()])


def five_stations(N) -> Solution:
    return solve([queue(d) for d in FIVE], N, Z=THINK)


def one_class() -> list[Work]:
    """Five stations and 10,000 customers, and all populations up to that."""

    def line() -> np.ndarray:
        X, _, Q, _, R, *_ = line_function("pfqn.mva", "pfqn_mva")(FIVE[:, None], [10_000], [THINK])
        return np.concatenate([X.ravel(), Q.ravel(), R.ravel()])

    def last() -> np.ndarray:
        found = five_stations(np.arange(1, 10_001))
        return np.concatenate([found.X[-1:], found.Q[:, -1], found.R_k[:, -1]])

    octave = partial(
        by_octave,
        f"S = {matrix(FIVE)}; V = ones(1, 5); qncsmva(2, S, V, V, 1);",
        f"[U R Q X] = qncsmva(10000, S, V, V, {THINK});",
        "X(1), Q, R",
    )
    line_mva = Peer("LINE", "`pfqn_mva`", partial(timed, line), 40)
    return [
        Work(
            "5 stations, N = 10,000: X, Q, R",
            lambda: figures(five_stations(10_000)),
            [line_mva, Peer("Octave", "`qncsmva`", octave)],
        ),
        Work(
            "the same for all N to 10,000 (LINE: only the last N)",
            last,
            [line_mva._replace(goal=None)],
        ),
    ]


def two_classes_solved() -> Solution:
    return solve([queue(d) for d in TWO_CLASSES], (100, 100))


def two_classes() -> Work:
    """Two classes of 100 customers at five stations."""

    def line() -> np.ndarray:
        X, _, Q, _, R, *_ = line_function("pfqn.mva", "pfqn_mva")(TWO_CLASSES, [100, 100], [0, 0])
        return np.concatenate([X.ravel(), Q.ravel(), R.ravel()])

    octave = partial(
        by_octave,
        f"S = {matrix(TWO_CLASSES.T)}; V = ones(2, 5); qncmmva([2 2], S, V);",
        "[U R Q X] = qncmmva([100 100], S, V);",
        "X(:, 1), Q, R",  # printed column by column: stations first
    )
    return Work(
        "2 classes of 100, 5 stations: X, Q, R",
        lambda: figures(two_classes_solved()),
        [Peer("LINE", "`pfqn_mva`", partial(timed, line), 40), Peer("Octave", "`qncmmva`", octave)],
    )


def many_servers_solved(N) -> Solution:
    stations = [queue(d, c) for d, c in zip(MULTISERVER, SERVERS, strict=True)]
    return solve(stations, N)


def many_servers() -> Work:
    """A station of 32 servers, two others and 1,000 customers."""
    N = 1000
    capacity = np.minimum(np.arange(1.0, N + 1), np.array(SERVERS)[:, None])
    n = f"min(1:{N}, {SERVERS[0]})"

    def constant(N: int) -> float:
        demands = MULTISERVER[:, None]
        return line_function("pfqn.ncld", "pfqn_ncld")(demands, [N], [0.0], capacity[:, :N]).lG

    octave = partial(
        by_octave,
        f"S = {matrix(MULTISERVER)}; qncscmva(2, S(2:3), S(1) ./ [1 2], [1 1 1]);",
        f"[U R Q X] = qncscmva({N}, S(2:3), S(1) ./ {n}, [1 1 1]);",
        "X(1)",
    )
    wrong = partial(
        by_octave,
        f"S = {matrix(MULTISERVER)}; V = [1 1 1]; m = {matrix(SERVERS)}; qncsmva(2, S, V, m);",
        f"[U R Q X] = qncsmva({N}, S, V, m);",
        "X(1)",
    )
    line = partial(timed, lambda: np.exp([constant(N - 1) - constant(N)]))
    return Work(
        "32 servers and 2 stations, N = 1,000: X (ours: Q and R as well)",
        lambda: figures(many_servers_solved(N)),
        [
            Peer("LINE", "`pfqn_ncld`, twice", line, 10),
            Peer("Octave", "`qncscmva`", octave),
            Peer("Octave", "`qncsmva`", wrong),
        ],
    )


def arrivals(count: int) -> tuple[np.ndarray, np.ndarray]:
    """Rates and servers of stations with up to 64 of them, whose service takes 1."""
    random = np.random.default_rng(1)
    c = random.integers(1, 65, count)
    return c * random.uniform(0.05, 0.99, count), c


def waits() -> Work:
    """A million waits of M/M/c."""
    lamda, c = arrivals(1_000_000)
    few, servers = lamda[:SAMPLE], c[:SAMPLE]
    scaled = len(lamda) // SAMPLE

    def line() -> np.ndarray:
        mmk = line_function("qsys", "qsys_mmk")
        pairs = zip(few.tolist(), servers.tolist(), strict=True)
        return np.array([mmk(rate, 1.0, k)["Wq"] for rate, k in pairs])

    octave = partial(
        by_octave,
        f"a = {matrix(few)}; c = {matrix(servers)}; o = ones(size(a)); qsmmm(0.5, 1, 1);",
        "[U R Q X p0 busy] = qsmmm(a, o, c);",
        "busy ./ (c - a)",
    )
    r = partial(
        by_r,
        f"a <- c({commas(few)}); k <- c({commas(servers)}); "
        "W <- function(a, k) Wq(QueueingModel(NewInput.MMC(lambda = a, mu = 1, c = k))); "
        "w <- W(0.5, 1)",
        "w <- mapply(W, a, k)",
        "w",
    )

    def some(run: Callable[[], tuple[float, np.ndarray]]) -> tuple[float, np.ndarray]:
        took, values = run()
        return scaled * took, values

    part = f"{SAMPLE:,} of them, times {scaled:,}"
    return Work(
        "a million M/M/c waits, c to 64 (goal 150 ms, or 50 times R's speed)",
        lambda: queueing.mmc_waiting(lamda, 1.0, c),
        [
            Peer("LINE", f"`qsys_mmk`, {part}", partial(some, partial(timed, line))),
            Peer("Octave", f"`qsmmm`, {part}", partial(some, octave)),
            Peer("R", f"`NewInput.MMC`, {part}", partial(some, r), 50),
        ],
    )


def simulated() -> str:
    """A sentence: what ciw takes to simulate what a formula says, to 1 %."""
    ciw = import_module("ciw")
    exponential = ciw.dists.Exponential
    network = ciw.create_network(
        arrival_distributions=[exponential(1.0)],
        service_distributions=[exponential(1.0)],
        number_of_servers=[2],
    )

    def mean(seed: int) -> float:
        ciw.seed(seed)
        run = ciw.Simulation(network)
        run.simulate_until_max_time(16_000)
        records = run.get_all_records(only=["service"])
        return np.mean([r.exit_date - r.arrival_date for r in records if r.arrival_date > 200])

    took, means = timed(lambda: np.array([mean(seed) for seed in range(20)]))
    half = 2.093 * means.std(ddof=1) / np.sqrt(20) / means.mean()  # Student's t, 19 degrees
    ours, R = timed(lambda: queueing.mmc_response(1.0, 1.0, 2))
    return (
        f"For comparison, ciw simulates the mean response time of M/M/2 at half load: "
        f"{means.mean():.4f}, with a half-width of {100 * half:.2f} %, in {took:.1f} s. "
        f"`queueing.mmc_response` computes {R:.4f} in {1e6 * ours:.0f} microseconds."
    )

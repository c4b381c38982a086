"""What a program's throughputs on one node, or on some, say about its locks on more nodes.

The program is a closed system: threads think for Z, then hold the lock for S, and N_sat = 1 + Z/S
threads would keep the lock busy if they never met. The kinds of locks differ in what makes a
hand-over longer on more nodes:

- **queue**: a share 1 - 1/nodes of the hand-overs crosses nodes, and each crossing takes longer, as
  farther nodes join.
- **ticket**: as the queue lock, and each waiter reads the line again after a release.
- **tas**, test-and-set: each waiter writes the line. On more nodes its write takes longer: not at
  all if the requests are answered node by node, in proportion to the distance if as they come.
- **ttas**, test-and-test-and-set: each waiter reads, and then tries to write: between the two.
- **backoff**: waiters ask seldom, and cost little.
- **cohort** and **hierarchical**: hand-overs hardly cross (`locks.cohort_grant`).

All work, in the lock and outside, is slower by a share of 1 - 1/nodes, as some of its memory is on
other nodes: this is why a cohort lock slows down, too.

Each number of this model is unknown, but not any value is likely. `PRIOR` says which are,
and throughputs narrow this down. So `outlook` gives the range that holds the throughput on more
nodes in nine of ten cases. The model misses something as well, and more with every doubling of the
nodes: how much was settled with `benchmarks/locks.py`, whose table tells how well the ranges hold.
"""

from collections.abc import Iterator, Mapping
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from nummodel.arguments import count, feasible, ordered, within
from nummodel.models import _chain, locks

#: Kinds of locks. Those that stay hand over in their node while somebody waits there; the waiters
#: of those that slow down make each hand-over longer.
KINDS = ("queue", "ticket", "tas", "ttas", "backoff", "cohort", "hierarchical")
STAY, SLOWED = ("cohort", "hierarchical"), ("ticket", "tas", "ttas")
#: What a throughput may be off by itself: about the standard error of a median of five runs.
NOISE = 0.02
#: Threads that the lock feeds, over those of a node: up to the first number, any power of ten is as
#: likely as another; beyond, where the lock would hardly slow the program on ten nodes, each double
#: number is half as likely; the second is the largest that is tried.
FEEDS, MOST = 10.0, 1000.0
#: Most standard deviations from its mean that a number is tried, where throughputs contradict it.
FARTHEST = 6.0
#: Mean and standard deviation of each unknown number, as the protocols and latencies of common
#: machines say: nothing was fitted here, but the tables of `benchmarks/locks.py` were known.
PRIOR = {
    "reader": (np.log(5e-8), 1.0),  # log of what a waiter that reads adds to a unit of work [s]
    "writer": (np.log(2.0), 0.5),  # log of what a waiter that writes adds, over that
    "far": (np.log(2.0), 0.8),  # log of what a crossing on two nodes adds, over the reader
    "reader_growth": (0.0, 0.3),  # exponents of nodes: as h_reader * nodes**reader_growth
    "writer_growth": (0.5, 0.5),  # 0 if requests are answered node by node, about 1 as they come
    "far_growth": (0.5, 0.5),
    "memory": (0.2, 0.2),  # share by which work is slower if all of memory is on other nodes
    "ticket": (0.0, 0.4),  # log of a waiter of the ticket lock, over the reader
    "ttas": (0.5, 0.3),  # a waiter of test-and-test-and-set: from reading, 0, to writing, 1
    "backoff": (np.log(0.1), 0.7),  # log of a waiter that backs off, over the reader
}
#: With latencies known: log of the reader over half a hand-over, for one to some uses in a unit.
USES = (0.5, 0.8)


class Widths(NamedTuple):
    """Standard deviations of logs: what the model misses. `benchmarks/locks.py` settles them."""

    level: float  # of a hold time on one node, over the queue lock's
    drift: float  # of a throughput for each doubling of the nodes
    drift_slowed: float  # the same, for locks whose waiters slow them


WIDTHS = Widths(0.12, 0.065, 0.141)

#: An interval that is to hold nine in ten, and its middle.
ENDS = (0.5, 0.05, 0.95)
#: Most threads, over all numbers of nodes that were measured, which takes half a minute; and most
#: threads that are predicted.
MEASURED, PREDICTED = 400, 6000


class Ratio(NamedTuple):
    """Throughput over that of one node: the median, and the ends of the 90 % range."""

    middle: float
    low: float
    high: float


def outlook(X: Mapping, N: int, nodes: int, h=None, h_remote=None) -> dict[str, Ratio]:
    """Throughput on several nodes, N threads each, over that on one node, for each lock of `X`.

    `X` has the throughputs of N threads on one node [1/s], by the kinds of locks above; "queue"
    must be among them. Or `X` has such mappings for several numbers of nodes, 1 among them. Instead
    of a throughput there may be two numbers, a mean and its standard error.

    `h` is a hand-over inside a node and `h_remote` one across nodes [s], if they are known.
    `h_remote` may be a matrix with a row and a column for each node, for machines on which some
    nodes are farther than others; the first `nodes` of them are in use. If `h` is not given, it is
    the mean of the diagonal; if `h` is given, the diagonal may be 0.

    On as many nodes as were measured, the figure is the measured one, and its range is as wide as
    the standard errors tell: without any, nothing is open.

    >>> X = {1: {"queue": 1e6, "tas": 9e5}, 2: {"queue": 9e5, "tas": 6e5}}
    >>> outlook(X, 8, nodes=2)["queue"]
    Ratio(middle=0.9, low=0.9, high=0.9)
    >>> eight = outlook(X, 8, nodes=8)
    >>> eight["queue"].low > eight["tas"].high
    True

    In this model, a lock seldom feeds more than ten times the threads of a node, unless X on
    several nodes shows it. So from one node, ranges may be too low for a program that hardly uses
    its lock.

    The numbers are random draws, always the same. Others would move an end of a range by some 1 to
    3 %, and the lower end for test-and-set by up to 8 % (standard deviations of eight seeds).

    Raises ValueError for a throughput that even a full lock cannot reach, and for one thread.
    """
    x, number, nodes = _measured(X), count("N", N, least=2), count("nodes", nodes)
    feasible("N", number, MEASURED // sum(x), "the nodes in X are solved thousands of times")
    feasible("nodes", nodes, PREDICTED // number, f"{number} threads on each")
    h, h_remote = _latencies(h, h_remote, max(nodes, *x))
    if h is not None:
        within("X on one node, times h,", max(mean for mean, _ in x[1].values()) * h, 0, 1)
    there = {kind: _beside(figure, x[1][kind], nodes) for kind, figure in x.get(nodes, {}).items()}
    if set(there) == set(x[1]):
        return there
    program = Program(x, number, h, h_remote)
    logs = program.predicted(program.draws(), nodes) - program.y[1][:, None]
    ends = np.exp(np.quantile(logs, ENDS, axis=1).T)
    ratios = [Ratio(*row) for row in ends.tolist()]
    return dict(zip(program.kinds, ratios, strict=True)) | there


def _beside(there: tuple[float, float], here: tuple[float, float], nodes: int) -> Ratio:
    """A measured throughput over that of one node, with the range that both errors leave."""
    (x, error), (one, own) = there, here
    sd = np.hypot(error / x, own / one) if nodes > 1 else 0.0
    ends = np.array([0.0, -1.0, 1.0]) * NormalDist().inv_cdf(ENDS[2]) * sd
    return Ratio(*map(float, x / one * np.exp(ends)))


def _measured(X: Any) -> dict[int, dict[str, tuple[float, float]]]:
    """Means and standard errors by nodes and kinds, checked."""
    if not isinstance(X, Mapping) or not X:
        raise ValueError(f"X is {X!r}, expected throughputs by locks, or by nodes and locks")
    by_nodes = X if all(isinstance(x, Mapping) for x in X.values()) else {1: X}
    whole: dict[int, Mapping] = {1: {}}
    whole |= {count("the number of nodes in X", n): x for n, x in by_nodes.items()}
    for n, there in whole.items():
        kinds = KINDS if n == 1 else whole[1]
        if not there or not set(there) <= set(kinds) or "queue" not in whole[1]:
            listed, rule = ", ".join(map(str, there)) or "none", "and queue on one node"
            raise ValueError(f"X[{n}] has {listed}, expected any of {', '.join(kinds)}, {rule}")
    return {n: {k: _figure(f"X[{n}][{k!r}]", v) for k, v in x.items()} for n, x in whole.items()}


def _figure(name: str, value: Any) -> tuple[float, float]:
    """A throughput and its standard error, which is 0 where it is not given."""
    mean, error = value if isinstance(value, tuple) and len(value) == 2 else (value, 0.0)
    return _one(name, mean), float(within(f"error of {name}", error, 0, 1e30, ndim=(0,)))


def _latencies(h: Any, h_remote: Any, nodes: int) -> tuple[float | None, Any]:
    """A hand-over inside a node, and those across nodes: one figure, or a matrix."""
    if h_remote is None:
        return None if h is None else _one("h", h), None
    far = within("h_remote", h_remote, 0, 1e30, ndim=(0, 2))
    if far.ndim and (len(set(far.shape)) > 1 or len(far) < max(nodes, 2)):
        raise ValueError(f"h_remote is {far.shape}, expected a row and a column for {nodes} nodes")
    if h is None and far.ndim == 0:
        raise ValueError("h is None, expected a hand-over inside a node beside h_remote")
    h = _one("h", np.diag(far).mean() if h is None else h)
    ordered({"h": h, "h_remote": _across(far)}, "h", "h_remote")
    return h, far


def _across(h_remote: np.ndarray, nodes: int | None = None) -> np.ndarray:
    """The hand-overs between different nodes, of the first `nodes` of them."""
    first = h_remote[:nodes, :nodes] if h_remote.ndim else h_remote
    return first[~np.eye(len(first), dtype=bool)] if first.ndim else first


def _one(name: str, value: Any) -> float:
    """One measured number: figures beyond these ends cannot be read with floats."""
    return float(within(name, value, 1e-30, 1e30, ndim=(0,)))


class Program:
    """N threads on each node and log throughputs `y` by nodes, nan where none was measured."""

    def __init__(
        self,
        X: Mapping[int, Mapping[str, tuple[float, float]]],
        N: int,
        h: float | None = None,
        h_remote: Any = None,
        widths: Widths = WIDTHS,
    ):
        self.N, self.h, self.h_remote, self.kinds = N, h, h_remote, list(X[1])
        rows = {n: np.array([X[n].get(k, (np.nan, 0.0)) for k in self.kinds]) for n in sorted(X)}
        self.y = {n: np.log(row[:, 0]) for n, row in rows.items()}
        self.noise = {n: np.hypot(NOISE, row[:, 1] / row[:, 0]) for n, row in rows.items()}
        self.drift = np.where(np.isin(self.kinds, SLOWED), widths.drift_slowed, widths.drift)
        self.log_N_sat = np.linspace(0, np.log(MOST * N), 2000)
        busy = locks.solve(lambda n: 1.0, N, np.expm1(self.log_N_sat)).X
        self.log_S = np.log(busy) - self.y[1][self.kinds.index("queue")]
        prior = dict(PRIOR)
        if h is not None:
            prior["reader"] = (np.log(h / 2) + USES[0], USES[1])
        if h is not None and h_remote is not None:
            prior["far"] = (np.log(2 / h), PRIOR["far"][1])
        if np.ndim(h_remote):  # which tells how the distance grows
            prior["far_growth"] = (0.0, PRIOR["far_growth"][1])
        mean, sd = np.array(list(prior.values())).T
        level = np.where(np.array(self.kinds) == "queue", 0.0, widths.level)
        self.mean = np.concatenate([mean, np.zeros(len(level))])
        self.sd = np.concatenate([sd, np.hypot(level, self.noise[1])])

    def log_throughput(self, unknown: np.ndarray, nodes: int) -> np.ndarray:
        """Log X of each kind and draw. Columns: those of `PRIOR`, levels, the log of N_sat."""
        at = dict(zip(PRIOR, unknown.T, strict=False))
        level, N_sat = unknown[:, len(PRIOR) : -1].T, np.exp(unknown[:, -1])
        S = np.exp(np.interp(unknown[:, -1], self.log_N_sat, self.log_S))
        reader = np.minimum(np.exp(at["reader"]), S / 2)  # whose hand-over is in S
        read = reader * nodes ** at["reader_growth"]
        write = reader * np.exp(at["writer"]) * nodes ** at["writer_growth"]
        costs = {
            "ticket": read * np.exp(at["ticket"]),
            "tas": write,
            "ttas": read ** (1 - at["ttas"]) * write ** at["ttas"],
            "backoff": read * np.exp(at["backoff"]),
        }
        waiter = np.array([costs.get(k, np.zeros_like(S)) for k in self.kinds])
        far = reader * np.exp(at["far"]) * (nodes / 2) ** at["far_growth"] * self.distance(nodes)
        slower = 1 + np.maximum(at["memory"], 0) * (1 - 1 / nodes)
        hold, Z = S * np.exp(level) * slower, np.maximum((N_sat - 1) * S * slower, _chain.NEVER)
        present = np.arange(1, self.N * nodes + 1)[:, None]
        stays = locks.cohort_grant(present, 0.0, 0.0, 1.0, nodes)
        crossing = np.where(np.isin(self.kinds, STAY), stays, 1 - 1 / nodes)[..., None]
        grant = hold + waiter * (present[..., None] - 1) + far * crossing
        return np.log(_chain.walked(zip(range(len(grant), 0, -1), grant, strict=True), Z)[0])

    def distance(self, nodes: int) -> float:
        """How much longer hand-overs take across nodes [s], on average; 1 if that is not known."""
        if self.h_remote is None:
            return 1.0
        return float(np.mean(_across(self.h_remote, max(nodes, 2)))) - (self.h or 0.0)

    def steps(self, unknown: np.ndarray) -> Iterator[tuple[int, np.ndarray, float, float]]:
        """From one number of nodes to the next: the kind, error, variance of noise, doublings."""
        before: dict[int, tuple] = {}
        for nodes, y in self.y.items():
            error = y[:, None] - self.log_throughput(unknown, nodes)
            for k in map(int, np.flatnonzero(~np.isnan(y))):
                noise = self.noise[nodes][k] ** 2
                last, its_error, its_noise = before.get(k, (nodes, 0.0, 0.0))
                yield k, error[k] - its_error, noise + its_noise, float(np.log2(nodes / last))
                before[k] = nodes, error[k], noise

    def log_posterior(self, unknown: np.ndarray) -> np.ndarray:
        """Up to a constant, for each draw."""
        z, log_N_sat = (unknown[:, :-1] - self.mean) / self.sd, unknown[:, -1]
        inside = (log_N_sat >= 0) & (log_N_sat <= self.log_N_sat[-1])
        inside &= (abs(z) < FARTHEST).all(axis=1)
        total = -0.5 * (z**2).sum(axis=1)
        total -= np.maximum(log_N_sat - np.log(FEEDS * self.N), 0.0)
        unknown = np.where(inside[:, None], unknown, np.append(self.mean, 0.0))
        for k, error, noise, doublings in self.steps(unknown):
            total -= 0.5 * error**2 / (noise + self.drift[k] ** 2 * doublings)
        return np.where(inside, total, -np.inf)

    def draws(self, walkers: int = 200, steps: int = 600, seed: int = 1) -> np.ndarray:
        """Draws of the unknown numbers. Each half of the walkers steps along differences between
        two of the other half: differential evolution (ter Braak 2006).
        """
        rng, half = np.random.default_rng(seed), walkers // 2
        at = self.mean + self.sd * rng.standard_normal((8 * walkers, len(self.mean)))
        at = np.column_stack([at, rng.uniform(0, self.log_N_sat[-1], len(at))])
        at = rng.permutation(at[np.argsort(-self.log_posterior(at))[:walkers]])
        p, kept = self.log_posterior(at), []
        for step in range(steps):
            for own, other in ((slice(half), slice(half, None)), (slice(half, None), slice(half))):
                first, second = at[other][rng.integers(half, size=(2, half))]
                length = 2.38 / np.sqrt(2 * at.shape[1]) * rng.uniform(0.5, 1, (half, 1))
                new = at[own] + (first - second) * (length if step % 10 else 1.0)
                new += 1e-4 * rng.standard_normal(new.shape)
                p_new = self.log_posterior(new)
                taken = np.log(rng.random(half)) < p_new - p[own]
                at[own] = np.where(taken[:, None], new, at[own])
                p[own] = np.where(taken, p_new, p[own])
            if step >= steps // 2 and step % 20 == 0:
                kept.append(at.copy())
        return np.concatenate(kept)

    def predicted(self, unknown: np.ndarray, nodes: int, seed: int = 2) -> np.ndarray:
        """Draws of log X of each kind, from the last number of nodes on which it was measured."""
        rng, result = np.random.default_rng(seed), []
        model = {n: self.log_throughput(unknown, n) for n in {nodes, *self.y} if n <= nodes}
        for k in range(len(self.kinds)):
            last = max(n for n, y in self.y.items() if n <= nodes and not np.isnan(y[k]))
            drift = self.drift[k] ** 2 * np.log2(nodes / last)
            sd = np.sqrt(drift + self.noise[last][k] ** 2 + NOISE**2)
            change = model[nodes][k] - model[last][k] + sd * rng.standard_normal(len(unknown))
            result.append(self.y[last][k] + change)
        return np.array(result)

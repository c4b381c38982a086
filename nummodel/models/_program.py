"""A program with a lock, on one node and on several: its unknown numbers, and which are likely.

The numbers of `PRIOR`, a level for each lock and N_sat make a closed system (see `locks.solve`) of
any number of nodes. `Program.draws` draws these numbers, given the throughputs that were measured,
and `Program.predicted` the throughputs on more nodes that follow from them.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

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


class Program:
    """N threads on each node and log throughputs `y` by nodes, nan where none was measured."""

    def __init__(
        self,
        X: Mapping[int, Mapping[str, tuple[float, float]]],
        N: int,
        h: float | None = None,
        h_remote: np.ndarray | None = None,
        widths: Widths = WIDTHS,
    ):
        self.N, self.h, self.h_remote, self.kinds = N, h, h_remote, list(X[1])
        table = {n: [X[n].get(k, (np.nan, 0.0)) for k in self.kinds] for n in sorted(X)}
        self.y = {n: np.log([x for x, _ in row]) for n, row in table.items()}
        self.noise = {n: np.array([np.hypot(NOISE, sd / x) for x, sd in table[n]]) for n in table}
        slowed = np.isin(self.kinds, SLOWED)
        self.drift = np.where(slowed, widths.drift_slowed, widths.drift)
        self.cross: dict[int, np.ndarray] = {}
        self.log_N_sat = np.linspace(0, np.log(MOST * N), 2000)
        busy = locks.solve(lambda n: 1.0, N, np.expm1(self.log_N_sat)).X
        self.log_S = np.log(busy) - self.y[1][self.kinds.index("queue")]
        prior = dict(PRIOR)
        if h is not None:
            prior["reader"] = (np.log(h / 2) + USES[0], USES[1])
        if h is not None and h_remote is not None:
            prior["far"] = (np.log(2 / h), prior["far"][1])
            if h_remote.ndim:  # tells how the distance grows
                prior["far_growth"] = (0.0, prior["far_growth"][1])
        level = np.array([0.0 if k == "queue" else widths.level for k in self.kinds])
        mean, sd = np.array(list(prior.values())).T
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
        far = reader * np.exp(at["far"]) * (nodes / 2) ** at["far_growth"]
        far = far * self.distance(nodes)
        slower = 1 + np.maximum(at["memory"], 0) * (1 - 1 / nodes)
        hold, Z = S * np.exp(level) * slower, (N_sat - 1) * S * slower

        waiters = np.arange(self.N * nodes)[:, None, None]
        grant = hold + waiter * waiters + far * self.crossing(nodes)
        return np.log(_chain.throughput(grant, Z))

    def distance(self, nodes: int) -> float:
        """How much longer hand-overs take across nodes [s], on average; 1 if that is not known."""
        if self.h_remote is None:
            return 1.0
        first = self.h_remote[:nodes, :nodes] if self.h_remote.ndim else self.h_remote
        apart = first[~np.eye(nodes, dtype=bool)] if self.h_remote.ndim and nodes > 1 else first
        return float(np.mean(apart)) - (self.h or 0.0)

    def crossing(self, nodes: int) -> np.ndarray:
        """Crossings of a hand-over with 1 to N * nodes threads at the lock, for each kind."""
        if nodes not in self.cross:
            n = np.arange(1, self.N * nodes + 1)[:, None]
            stay = locks.cohort_grant(n, 0.0, 0.0, 1.0, nodes)
            everyone = locks.queue_grant(n, 0.0, 0.0, 1.0, nodes)
            kinds = np.where(np.isin(self.kinds, STAY), stay, everyone)
            self.cross[nodes] = kinds[..., None]
        return self.cross[nodes]

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
        top = self.log_N_sat[-1]
        inside = (unknown[:, -1] >= 0) & (unknown[:, -1] <= top)
        z = (unknown[:, :-1] - self.mean) / self.sd
        inside &= (abs(z) < FARTHEST).all(axis=1)
        total = -0.5 * (z**2).sum(axis=1)
        total -= np.maximum(unknown[:, -1] - np.log(FEEDS * self.N), 0.0)
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
        rng, model = np.random.default_rng(seed), {nodes: self.log_throughput(unknown, nodes)}
        result = []
        for k in range(len(self.kinds)):
            last = max(n for n, y in self.y.items() if n <= nodes and not np.isnan(y[k]))
            if last == nodes:
                result.append(np.full(len(unknown), self.y[last][k]))
                continue
            model[last] = model.get(last, self.log_throughput(unknown, last))
            drift = self.drift[k] ** 2 * np.log2(nodes / last)
            sd = np.sqrt(drift + self.noise[last][k] ** 2 + NOISE**2)
            change = model[nodes][k] - model[last][k] + sd * rng.standard_normal(len(unknown))
            result.append(self.y[last][k] + change)
        return np.array(result)

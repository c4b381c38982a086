"""Nodes that load one another: reads simulated one by one, limits."""

import heapq

import numpy as np
import pytest

from nummodel.models import networks, numa

LATENCY = np.array([[80.0, 140.0], [150.0, 90.0]])
#: A line passes a memory in 1 (of the unit of time of LATENCY) if it has one channel.
ONE_LINE = float(numa.LINE)


def simulated(shares, latency, S, N, count=60_000, seed=1):
    """Throughput of each node. Each of N reads goes to a memory, on the way for the idle latency
    without the service there; memories serve one at a time, exponential times with the mean S.
    """
    rng = np.random.default_rng(seed)
    nodes = len(shares)
    free, done = np.zeros(nodes), np.zeros(nodes)
    events = [(rng.uniform(0, 100), i, -1) for i in range(nodes) for _ in range(N)]
    heapq.heapify(events)
    start = 0.0
    for step in range(count):
        now, node, at = heapq.heappop(events)
        start = now if step == count // 5 else start
        if at < 0:  # sets out
            to = int(rng.choice(nodes, p=shares[node]))
            heapq.heappush(events, (now + latency[node, to] - S, node, to))
            continue
        free[at] = max(free[at], now) + rng.exponential(S)
        heapq.heappush(events, (free[at], node, -1))
        done[node] += step > count // 5
    return done / (now - start)


@pytest.mark.parametrize("placed", ["interleaved", "one home", "first touch"])
def test_reads_wait_as_simulated(placed):
    access = np.array([[3.0, 1.0], [1.0, 2.0]])
    copies = {
        "interleaved": [numa.striped(2)] * 2,
        "one home": [numa.striped(2, over=[0])] * 2,
        "first touch": (access / access.sum(0)).T,
    }[placed]
    S, N = 5.0, 12
    shares = numa._paths(access, copies)
    shares = shares / shares.sum(1, keepdims=True)
    stations = numa.memories(access, copies, LATENCY, B_max=ONE_LINE / S)
    exact, near = networks.solve(stations, (N, N)), networks.schweitzer(stations, (N, N))
    assert exact.exact and exact.X == pytest.approx(simulated(shares, LATENCY, S, N), rel=0.03)
    assert near.X == pytest.approx(exact.X, rel=0.1)


def test_one_read_meets_nobody():
    for channels in (1, 3):
        for copies, expected in ((np.eye(2), 80.0), (np.eye(2)[::-1], 140.0)):
            stations = numa.memories(np.eye(2), copies, LATENCY, ONE_LINE, channels)
            alone = networks.schweitzer(stations, (1, 0))
            assert alone.R[0] == pytest.approx(expected)


def test_full_memories_deliver_their_bandwidth():
    """All from one memory: together as much as this memory has. Replicated: each its own."""
    everyone = np.ones((2, 1))
    home = numa.memories(everyone, [numa.striped(2, over=[0])], LATENCY, ONE_LINE)
    copied = numa.memories(everyone, [np.ones(2)], LATENCY, ONE_LINE)
    X = networks.schweitzer(home, (3000, 3000)).X
    assert sum(X) == pytest.approx(1.0, rel=0.01)
    assert networks.schweitzer(copied, (3000, 3000)).X == pytest.approx([1.0, 1.0], rel=0.01)


def test_replicas_are_each_node_by_itself():
    stations = numa.memories(np.ones((2, 1)), [np.ones(2)], LATENCY, ONE_LINE / 4)
    both = networks.solve(stations, (30, 20))
    for node, N, t in ((0, 30, 80.0), (1, 20, 90.0)):
        alone = networks.solve([networks.queue(4.0), networks.delay(t - 4.0)], N)
        assert both.X[node] == pytest.approx(alone.X)


@pytest.mark.parametrize(
    "call, named",
    [
        (lambda: numa.memories(np.eye(2), np.eye(2), np.ones((3, 3)), 1e9), "latency has"),
        (lambda: numa.memories(np.eye(2), np.eye(2), np.ones((2, 2)), 1.0), "latency is 1"),
        (lambda: numa.memories([[1.0], [0.0]], [[0.5, 0.5]], LATENCY, 64.0), "access"),
        (lambda: numa.memories(np.eye(2), np.eye(2), LATENCY, 64.0, channels=0), "channels is 0"),
    ],
)
def test_bad_input_is_named(call, named):
    with pytest.raises(ValueError, match=named):
        call()

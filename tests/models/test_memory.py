"""Memory under load: the posterior on a grid, reads simulated one by one."""

import ast
import heapq
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.special import logsumexp

from nummodel.models import memory, networks, numa
from nummodel.records import data

ROOT = Path(__file__).parents[2]
THREE = {"R0": 80e-9, "B_max": 2e11, "B_mid": 1.4e11, "R_mid": 110e-9}
TWO = THREE | {"B_mid": [1.4e11, 2e11], "R_mid": [110e-9, 240e-9]}

# --- three figures ----------------------------------------------------------------------------


def test_the_law_is_that_of_numa():
    """Times as shares of the idle latency, and the bandwidth as a share of the greatest."""
    B = 2e11 * np.linspace(0, 1, 30)
    machine = {"R0": 80e-9, "t_row": 30e-9, "channels": 8, "B_max": 2e11, "lines": 800}
    channel, full = 8 * 64 / 2e11, 800 * 64 / 2e11
    times = np.array([30e-9, channel, full - 110e-9])
    R = 80e-9 * memory._law(B / 2e11, np.log(times / 80e-9))
    assert pytest.approx(numa.loaded_latency(B=B, **machine)) == R


def grid(u, r):
    """The posterior by brute force: a grid of figures in deviations of the population."""
    steps = np.linspace(-3.5, 3.5, 61)
    z = np.stack(np.meshgrid(steps, steps, steps), -1).reshape(-1, 3)
    figures = memory.MACHINES.mean + z @ np.linalg.cholesky(memory.MACHINES.covariance).T
    log = -(z**2).sum(1) / 2
    errors = np.log(memory._law(u, figures.T)) - np.log(r)
    return figures, log - (errors / memory.NOISE) ** 2 / 2


@pytest.mark.parametrize("u, r", [(0.5, 1.2), (0.7, 1.5), (0.9, 2.0), (1.0, 1.5)])
def test_the_posterior_is_that_of_a_grid(u, r):
    """The mode is as good as any point of the grid. The latency of a full memory has the grid's
    mean and deviation, as far as a tangent tells: the deviation is up to 1.7 times as large."""
    figures, log = grid(u, r)
    mode, covariance = memory._posterior(memory._law, memory.MACHINES, u, r)
    deviation = np.linalg.solve(
        np.linalg.cholesky(memory.MACHINES.covariance), mode - memory.MACHINES.mean
    )
    error = (np.log(memory._law(u, mode)) - np.log(r)) / memory.NOISE
    assert -(deviation**2).sum() / 2 - error**2 / 2 >= log.max() - 1e-9
    weight = np.exp(log - logsumexp(log))
    full = np.log(memory._law(1.0, figures.T))
    mean = weight @ full
    sd = np.sqrt(weight @ (full - mean) ** 2 + memory.NOISE**2)
    told, width = memory._predicted(memory._law, mode, covariance, 1.0)
    assert told == pytest.approx(mean, abs=0.3 * width) and 0.9 < width / sd < 1.7


@pytest.mark.parametrize("B_mid, R_mid", [(1e11, 100e-9), (1.4e11, 110e-9), (1.9e11, 170e-9)])
def test_the_curve_passes_through_the_given_figures(B_mid, R_mid):
    point = THREE | {"B_mid": B_mid, "R_mid": R_mid}
    assert memory.loaded_range(0.0, **point).middle == pytest.approx(80e-9)
    middle, low, high = memory.loaded_range(B_mid, **point)
    assert middle == pytest.approx(R_mid, rel=memory.NOISE) and low < R_mid < high
    curve = memory.loaded_range(np.linspace(0, 2e11, 30), **point)
    assert all((np.diff(end) > 0).all() for end in (curve.middle, curve.high))
    assert (curve.low < curve.middle).all() and (curve.middle < curve.high).all()


def test_a_second_point_is_met_and_narrows_the_range():
    one, two = (memory.loaded_range([1.9e11, 2e11], **points) for points in (THREE, TWO))
    assert two.middle[1] == pytest.approx(240e-9, rel=memory.NOISE)
    assert (two.high / two.low < one.high / one.low).all()


def test_latencies_have_the_unit_of_those_that_are_given():
    """Ten times as slow at a tenth of the bandwidth, the lines under way stay the same."""
    slow = {"R0": 800e-9, "B_max": 2e10, "B_mid": 1.4e10, "R_mid": 1100e-9}
    for end, other in zip(
        memory.loaded_range(1e11, **THREE), memory.loaded_range(1e10, **slow), strict=True
    ):
        assert other == pytest.approx(10 * end)


def test_a_longer_pause_at_the_same_bandwidth_means_more_threads_and_a_longer_wait():
    full = [memory.loaded_range(2e11, **THREE, delay=delay).middle for delay in (100, 200, 400)]
    assert (np.diff(full) > 0).all()


def test_two_machines_alike_at_medium_load_differ_when_full():
    """Haswell at 70 % and Denverton between two rows, and both at their greatest bandwidth: what
    one figure for both would miss at least."""
    others = dict(iter(data.load("loaded-latency-others").groupby("machine")))
    idle = data.load("idle-latency-others").groupby("machine")["R"].min()
    medium, full = [], []
    for name in ("Haswell", "Denverton"):
        table = others[name].sort_values("delay").reset_index(drop=True)
        peak = table["B"].idxmax()
        rows = table[peak:].sort_values("B")
        medium.append(np.interp(0.7011, rows["B"] / rows["B"].max(), rows["R"]) / idle[name])
        full.append(table["R"][peak] / idle[name])
    assert max(medium) / min(medium) < 1.03
    assert (max(full) - min(full)) / sum(full) > 0.33


def test_the_constants_are_those_of_the_study():
    text = (ROOT / "benchmarks" / "MEMORY.md").read_text(encoding="utf-8")
    said = dict(re.findall(r"^(mean|covariance|places|WIDTH) (.*)$", text, re.M))
    assert memory.MACHINES.mean.tolist() == ast.literal_eval(said["mean"])
    assert memory.MACHINES.covariance.tolist() == ast.literal_eval(said["covariance"])
    assert list(memory.MACHINES.places) == ast.literal_eval(said["places"])
    assert float(said["WIDTH"]) == memory.WIDTH


def test_the_module_tells_the_errors_of_the_study():
    """And the goal, 4 % and 15 %, is met where the latency of a full memory is known."""
    text = (ROOT / "benchmarks" / "MEMORY.md").read_text(encoding="utf-8")
    row = r"^\| rows, channels and lines \(`numa.*?\) \| (\d+ %) \| (.*) \|$"
    rules = {
        rule: [float(v) for v in cells.split(" | ")] for rule, cells in re.findall(row, text, re.M)
    }
    said = " ".join(memory.__doc__.split())
    mean, worst, mean_delay, worst_delay, *with_full = rules["70 %"]
    assert f"mean error is {mean:.0f} % and the worst {worst:.0f} %;" in said
    assert f"the delay of this point, {mean_delay} % and {worst_delay:.0f} %." in said
    assert "at the greatest bandwidth, it is {} % and {:.0f} %".format(*rules["100 %"]) in said
    assert with_full[0] <= 4 and with_full[1] <= 15
    assert rules["100 %"][0] <= 4 and rules["100 %"][1] <= 15


# --- nodes that load one another ---------------------------------------------------------------

LATENCY = np.array([[80.0, 140.0], [150.0, 90.0]])
#: A line passes a memory in 1 (of the unit of time of LATENCY) if it has one channel.
ONE_LINE = float(numa.LINE)


def simulated(shares, latency, S, N, link=0.0, count=60_000, seed=1):
    """Throughput of each node. Each of N reads goes to a memory, on the way for the idle latency
    without the services there and on the link back; memories serve one at a time, exponential times
    with the mean S, and so do links from one node to another, with the mean `link`.
    """
    rng = np.random.default_rng(seed)
    nodes = len(shares)
    free, done = (
        np.zeros((nodes + 1, nodes)),
        np.zeros(nodes),
    )  # links in rows, memories in the last
    across = link * (1 - np.eye(nodes))
    events = [(rng.uniform(0, 100), i, -1, -1) for i in range(nodes) for _ in range(N)]
    heapq.heapify(events)
    start = 0.0
    for step in range(count):
        now, node, row, at = heapq.heappop(events)
        start = now if step == count // 5 else start
        if at < 0:  # sets out
            to = int(rng.choice(nodes, p=shares[node]))
            way = latency[node, to] - S - across[node, to]
            heapq.heappush(events, (now + way, node, nodes, to))
            continue
        free[row, at] = max(free[row, at], now) + rng.exponential(S if row == nodes else link)
        back = row == nodes and across[node, at]  # a line from another node passes the link, too
        heapq.heappush(events, (free[row, at], node, node, at if back else -1))
        done[node] += step > count // 5 and not back
    return done / (now - start)


@pytest.mark.parametrize("placed", ["interleaved", "one home", "first touch"])
def test_reads_wait_as_simulated(placed):
    access = np.array([[3.0, 1.0], [1.0, 2.0]])
    copies = {
        "interleaved": [numa.striped(2)] * 2,
        "one home": [numa.striped(2, over=[0])] * 2,
        "first touch": numa.first_touch(access),
    }[placed]
    S, N = 5.0, 12
    shares = numa.paths(access, copies)
    shares = shares / shares.sum(1, keepdims=True)
    stations = memory.memories(access, copies, LATENCY, B_max=ONE_LINE / S)
    exact, near = networks.solve(stations, (N, N)), networks.schweitzer(stations, (N, N))
    assert exact.exact and exact.X == pytest.approx(simulated(shares, LATENCY, S, N), rel=0.03)
    assert near.X == pytest.approx(exact.X, rel=0.1)


def test_one_read_meets_nobody():
    for channels, B_link in ((1, None), (3, None), (3, ONE_LINE / 30)):
        for copies, expected in ((numa.partitioned(2), 80.0), (np.eye(2)[::-1], 140.0)):
            stations = memory.memories(np.eye(2), copies, LATENCY, ONE_LINE, channels, B_link)
            alone = networks.schweitzer(stations, (1, 0))
            assert alone.R[0] == pytest.approx(expected)


def test_reads_wait_for_links_as_simulated():
    """Three nodes, of which the first has half of the data and the others a quarter each."""
    access, copies, S, link, N = np.ones((3, 1)), [[0.5, 0.25, 0.25]], 5.0, 25.0, 8
    latency = 80.0 + 60 * (1 - np.eye(3))
    stations = memory.memories(access, copies, latency, ONE_LINE / S, B_link=ONE_LINE / link)
    exact = networks.solve(stations, (N,) * 3).X
    counted = simulated(np.tile(copies, (3, 1)), latency, S, N, link, count=150_000)
    assert exact == pytest.approx(counted, rel=0.03)
    free = networks.solve(memory.memories(access, copies, latency, ONE_LINE / S), (N,) * 3).X
    assert (counted < 0.95 * free).all()


def test_full_links_deliver_their_bandwidth():
    """Each of two nodes reads half of its lines through a link: at most twice what this passes."""
    both = np.ones((2, 1)), [numa.striped(2)], LATENCY, ONE_LINE
    for itself in (0, np.inf, np.nan):
        B_link = ONE_LINE * np.array([[itself, 0.1], [0.3, itself]])
        X = networks.schweitzer(memory.memories(*both, B_link=B_link), (3000, 3000)).X
        assert X == pytest.approx([0.2, 0.6], rel=0.01)


def test_wide_links_and_links_that_nobody_uses_change_nothing():
    everyone, copied = np.ones((2, 1)), [numa.replicated(2)]
    for placed, B_link in (([numa.striped(2)], 1e20), (copied, ONE_LINE / 50)):
        without = memory.memories(everyone, placed, LATENCY, ONE_LINE)
        links = memory.memories(everyone, placed, LATENCY, ONE_LINE, B_link=B_link)
        X = networks.solve(without, (5, 5)).X
        assert networks.solve(links, (5, 5)).X == pytest.approx(X)


def test_full_memories_deliver_their_bandwidth():
    """All from one memory: together as much as this memory has. Replicated: each its own."""
    everyone = np.ones((2, 1))
    home = memory.memories(everyone, [numa.striped(2, over=[0])], LATENCY, ONE_LINE)
    copied = memory.memories(everyone, [numa.replicated(2)], LATENCY, ONE_LINE)
    X = networks.schweitzer(home, (3000, 3000)).X
    assert sum(X) == pytest.approx(1.0, rel=0.01)
    assert networks.schweitzer(copied, (3000, 3000)).X == pytest.approx([1.0, 1.0], rel=0.01)


def test_replicas_are_each_node_by_itself():
    stations = memory.memories(np.ones((2, 1)), [numa.replicated(2)], LATENCY, ONE_LINE / 4)
    both = networks.solve(stations, (30, 20))
    for node, N, t in ((0, 30, 80.0), (1, 20, 90.0)):
        alone = networks.solve([networks.queue(4.0), networks.delay(t - 4.0)], N)
        assert both.X[node] == pytest.approx(alone.X)


def test_first_touch_is_a_race():
    """Nodes draw exponential times; who is first keeps the item."""
    rng = np.random.default_rng(5)
    access = np.array([[3.0, 0.5], [1.0, 2.0], [2.0, 0.5]])
    first = rng.exponential(1 / access, (20_000, 3, 2)).argmin(1)
    counted = [[np.mean(first[:, item] == node) for node in range(3)] for item in range(2)]
    np.testing.assert_allclose(numa.first_touch(access), counted, atol=0.015)


@pytest.mark.parametrize(
    "call, named",
    [
        (lambda: memory.loaded_range(3e11, **THREE), "B_max is 2e.11, expected at least B"),
        (lambda: memory.loaded_range(-1.0, **THREE), "B is -1"),
        (lambda: memory.loaded_range(1e11, **THREE | {"R_mid": 70e-9}), "R_mid is 7e-08, expected"),
        (lambda: memory.loaded_range(1e11, **THREE | {"B_mid": 3e11}), "B_max is 2e.11"),
        (lambda: memory.loaded_range(1e11, **THREE | {"R0": "fast"}), "R0 is 'fast'"),
        (lambda: memory.loaded_range(1e11, **THREE, delay=0), "delay is 0, expected"),
        (lambda: memory.loaded_range(1e11, **TWO, delay=300), "delay is 300, expected one point"),
        (lambda: memory.loaded_range(1e11, **TWO | {"R_mid": [2e-7] * 3}), "B_mid .2,., R_mid .3"),
        (lambda: memory.loaded_range(1.0, **THREE | {"B_mid": 9.0}, delay=9), "B_mid is 9"),
        (lambda: numa.first_touch([[1.0, 0.0]]), "access is"),
        (lambda: memory.memories(np.eye(2), np.eye(2), np.ones((3, 3)), 1e9), "latency has"),
        (lambda: memory.memories(np.eye(2), np.eye(2), np.ones((2, 2)), 1.0), "latency is 1"),
        (lambda: memory.memories([[1.0], [0.0]], [[0.5, 0.5]], LATENCY, 64.0), "access"),
        (lambda: memory.memories(np.eye(2), np.eye(2), LATENCY, 64.0, channels=0), "channels is 0"),
        (lambda: memory.memories(np.eye(2), np.eye(2), LATENCY, 64.0, 1, [[9.0]]), "B_link has"),
        (lambda: memory.memories(np.eye(2), np.eye(2), LATENCY, 64.0, 1, 0.0), "B_link is 0"),
        (lambda: memory.memories(np.eye(2), np.eye(2), LATENCY, 64.0, 1, 0.3), "latency is 140"),
    ],
)
def test_bad_input_is_named(call, named):
    with pytest.raises(ValueError, match=named):
        call()

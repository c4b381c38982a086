"""The I/O path: simulated, against exact relatives, limits and identities, arrays, bad input."""

import heapq
import random
from statistics import mean, stdev

import numpy as np
import pytest
from quick import one_in

from nummodel.models import networks, operational, queueing, storage

# --- a RAM disk, simulated --------------------------------------------------------------------


def run(N, Z, S, t_local, t_remote, nodes, r, held, seed, uses=12_000):
    """Requests per second of N processors at first-come locks, one for each node's disk."""
    rng = random.Random(seed)

    def lasting(t):
        return rng.expovariate(1 / t) if t > 0 else 0.0

    queues = [[] for _ in range(nodes)]
    events = [(lasting(Z), i, "ask", 0, 0.0) for i in range(N)]
    heapq.heapify(events)
    done, start, now = 0, 0.0, 0.0

    def serve(disk):
        i, copy = queues[disk][0]
        heapq.heappush(events, (now + lasting(S + held * copy), i, "grant", disk, copy))

    while done < 1.1 * uses:
        now, i, what, disk, copy = heapq.heappop(events)
        node = i % nodes
        if what == "ask":
            disk = node if rng.random() < r else 0
            copy = t_local if disk == node else t_remote
            queues[disk].append((i, copy))
            if len(queues[disk]) == 1:
                serve(disk)
        else:
            queues[disk].pop(0)
            if queues[disk]:
                serve(disk)
            away = lasting((1 - held) * copy) + lasting(Z)
            heapq.heappush(events, (now + away, i, "ask", 0, 0.0))
            done += 1
            start = now if done == uses // 10 else start
    return (done - uses // 10) / (now - start)


def simulated(**system):
    """Mean of ten runs, and half its 99 % interval (Student, 9 degrees)."""
    samples = [run(seed=seed, **system) for seed in range(10)]
    return mean(samples), 3.250 * stdev(samples) / 10**0.5


@pytest.mark.parametrize("N, nodes, Z", one_in(3, [(12, 3, 8.0), (16, 4, 2.0), (7, 2, 5.0)]))
@pytest.mark.parametrize("r, held", [(0.0, 0.0), (0.6, 0.0), (0.0, 1.0), (0.8, 1.0), (1.0, 0.5)])
def test_ramdisk(N, nodes, Z, r, held):
    """Exact unless copies of different length are held; then within 2 %."""
    system = dict(N=N, Z=Z, S=0.6, t_local=0.4, t_remote=1.6, nodes=nodes, r=r, held=held)
    X, half = simulated(**system)
    assert half < 0.025 * X
    error = 0.02 if held and r < 1 else 0.0
    assert storage.ramdisk(**system) == pytest.approx(X, abs=half + error * X)


# --- exact relatives, limits and identities ---------------------------------------------------

DISK = {"Z": 9.0, "S": 0.5, "t_local": 0.5, "t_remote": 2.0}


@pytest.mark.parametrize("held", [0.0, 0.3, 1.0])
def test_one_node_is_the_machine_repairman(held):
    """Uniform memory: it does not matter what is read-only and what a remote copy would take."""
    N = np.array([1, 2, 8, 40])
    own = storage.ramdisk(N, **DISK, held=held)
    hold, think = 0.5 + held * 0.5, 9.0 + (1 - held) * 0.5
    R = hold + queueing.repairman_waiting(N, hold, 1, think)
    np.testing.assert_allclose(own, N / (think + R), rtol=1e-9)
    other = storage.ramdisk(N, 9.0, 0.5, 0.5, 70.0, nodes=1, r=0.4, held=held)
    np.testing.assert_allclose(other, own, rtol=1e-9)


@pytest.mark.parametrize("held", [0.0, 1.0])
@pytest.mark.parametrize("r", [0.0, 0.5])
def test_remote_ratio_one_makes_the_place_irrelevant(held, r):
    """With one disk; with several, what counts is that there are several locks."""
    alike = DISK | {"t_remote": DISK["t_local"]}
    one = storage.ramdisk(12, **alike, held=held)
    three = storage.ramdisk(12, **alike, held=held, nodes=3, r=r)
    assert three == pytest.approx(one, rel=1e-9) if r == 0 else three > one


def test_all_replicated_has_no_remote_read():
    near = storage.ramdisk(12, **DISK, nodes=3, r=1.0)
    far = storage.ramdisk(12, **(DISK | {"t_remote": 50.0}), nodes=3, r=1.0)
    assert near == pytest.approx(far, rel=1e-12)
    assert near == pytest.approx(3 * storage.ramdisk(4, **DISK), rel=1e-9)


@pytest.mark.parametrize("held", [0.0, 0.6])
def test_without_a_split_all_nodes_but_one_are_alike(held):
    """Solved as two classes; a split of next to nothing has one for each node."""
    for N in (1, 5, 13):
        one = storage.ramdisk(N, **DISK, nodes=4, held=held)
        nearly = storage.ramdisk(N, **DISK, nodes=4, r=1e-9, held=held)
        assert one == pytest.approx(nearly, rel=1e-6)


def test_uneven_spread_and_nobody():
    assert storage.ramdisk(13, **DISK, nodes=3, r=0.2) > storage.ramdisk(12, **DISK, nodes=3)
    assert storage.ramdisk(0, **DISK, nodes=3) == 0


@pytest.mark.parametrize("r", [0.0, 0.4, 1.0])
def test_nodes_that_have_no_processor_do_not_matter(r):
    few, many = (storage.ramdisk(3, **DISK, nodes=q, r=r) for q in (3, 50))
    assert many == pytest.approx(few, rel=1e-12)


def test_a_grid_is_its_points():
    N, r = np.array([[3], [9]]), np.array([0.0, 0.4, 1.0])
    grid = storage.ramdisk(N, **DISK, nodes=3, r=r)
    assert grid.shape == (2, 3)
    for i, j in np.ndindex(2, 3):
        one = storage.ramdisk(int(N[i, 0]), **DISK, nodes=3, r=r[j])
        assert isinstance(one, float) and one == grid[i, j]


@pytest.mark.parametrize("m", [1, 4, 30])
def test_devices_are_the_balanced_bound(m):
    """N/(N + m - 1) of m devices: all stations alike, nothing else."""
    N = np.array([1, 5, 64, 1000])
    X = networks.solve(storage.devices(0.01, m), N).X
    np.testing.assert_allclose(X, N / (N + m - 1) * m / 0.01, rtol=1e-12)
    low = operational.balanced_throughput_min(N=N, D=0.01, D_max=0.01 / m, Z=0.0)
    np.testing.assert_allclose(X, low, rtol=1e-12)


def test_bounds_hold_every_drive_with_the_same_two_numbers():
    """A gate, channels with one queue, two kinds of parts: all between, and all agree at N = 1."""
    N = np.arange(1, 300)
    drives = [
        ([networks.queue(0.1)], 0.9),
        ([networks.queue(1.0, servers=10)], 0.0),
        (storage.devices(1.0, m=10), 0.0),
        ([networks.queue(0.1), *storage.devices(0.4, m=4)], 0.5),
        ([networks.queue(0.02), *storage.devices(0.7, m=7)], 0.28),
    ]
    alike = {"N": N, "D": 1.0, "D_max": 0.1, "Z": 0.0}
    low = operational.balanced_throughput_min(**alike)
    high = operational.asymptotic_throughput_max(**alike)
    assert low[0] == pytest.approx(1.0) and high[0] == pytest.approx(1.0)
    for stations, Z in drives:
        X = networks.solve(stations, N, Z).X
        assert (low <= X * (1 + 1e-12)).all() and (X <= high * (1 + 1e-12)).all()
    assert (low[9], high[9]) == pytest.approx((100 / 19, 10.0))


@pytest.mark.parametrize(
    "call, named",
    [
        (lambda: storage.devices(-1.0), "S is -1.0"),
        (lambda: storage.devices(1.0, m=0), "m is 0"),
        (lambda: storage.devices(np.nan), "S is nan"),
        (lambda: storage.devices([[1.0]]), "S is"),
        (lambda: storage.devices(1.0, m=10**9), "m is 1000000000, .* at most 100,000"),
        (lambda: storage.ramdisk(10**4, **DISK, nodes=5000, r=0.5), "nodes is 5,000, .* most 64"),
        (lambda: storage.ramdisk(4, **(DISK | {"S": 1e100})), r"S \+ t_local .* is 1e.100"),
        (lambda: storage.ramdisk(np.ones(9000), **DISK), "terms of all systems"),
        (lambda: storage.devices(1.0, m=2.5), "m is 2.5"),
        (lambda: storage.devices(1.0, m=[1, 2]), "m is .*expected a whole number"),
        (lambda: storage.ramdisk(2.5, **DISK), "N is 2.5"),
        (lambda: storage.ramdisk(4, **(DISK | {"S": np.nan})), "S is nan"),
        (lambda: storage.ramdisk(4, **DISK, nodes=0), "nodes is 0"),
        (lambda: storage.ramdisk(4, **DISK, r=[0.0, 1.5]), "r is 1.5"),
        (lambda: storage.ramdisk(4, **DISK, held=-0.1), "held is -0.1"),
    ],
)
def test_bad_input_is_named(call, named):
    with pytest.raises(ValueError, match=named):
        call()

"""From one node to several: worlds as the module assumes, simulated protocols, edges, bad input.

A world knows its hold time, think time and uses in a unit; `outlook` is told throughputs only.
"""

from itertools import product

import numpy as np
import protocol
import pytest

from nummodel.models import locks
from nummodel.models import nodes as room

#: A hand-over inside a node takes 1, across 3; ten uses in a unit, or three or one.
N, H, REMOTE = 4, 1.0, 3.0
WORLDS = [
    (uses, S, Z)
    for uses, S, Z in product((1, 3, 10), (1.0, 3.0, 10.0, 50.0), (0.0, 20.0, 2000.0))
    if S >= uses * H
]
LOCKS = ("queue", "ticket", "tas", "cohort")


def throughput(name, nodes, uses, S, Z):
    waiter = {"ticket": {"h_waiter": uses * H / 2}, "tas": {"h_waiter": uses * H}}.get(name, {})

    def grant(n):
        return room.GRANTS[name](n, S, h_remote=uses * (REMOTE - H), nodes=nodes, **waiter)

    return locks.solve(grant, N * nodes, Z).X


def measured(world, nodes=1, names=LOCKS):
    return {name: throughput(name, nodes, *world) for name in names}


@pytest.fixture(scope="module")
def seen():
    """By nodes, world and lock: the truth and what is said of it."""
    table = {}
    for nodes, world in product((1, 2, 4, 8), WORLDS):
        one, several = measured(world), measured(world, nodes)
        said = room.outlook(one, N, nodes, H, REMOTE)
        for name in LOCKS:
            table[nodes, world, name] = (several[name] / one[name], said[name])
    return table


def test_the_truth_is_in_the_range(seen):
    """Idle or full, one use in a unit or ten; to what lies between two values of N_sat."""
    for key, (truth, said) in seen.items():
        assert said.low * 0.995 <= truth <= said.high * 1.005, key
        assert said.low <= said.middle <= said.high, key


def test_one_node_is_one_node(seen):
    for (nodes, *_), (_, said) in seen.items():
        if nodes == 1:
            assert said == pytest.approx((1, 1, 1), rel=1e-12)


@pytest.mark.parametrize("nodes, rms, bias, width", [(2, 1.25, 1.15, 1.8), (8, 1.65, 1.35, 3.5)])
def test_how_far_off_the_middle_is_and_how_wide_the_range(seen, nodes, rms, bias, width):
    """Factors, over all worlds and locks: root mean square, mean, and mean of high over low."""
    rows = [row for (q, *_), row in seen.items() if q == nodes]
    errors = np.log([said.middle / truth for truth, said in rows])
    widths = np.log([said.high / said.low for _, said in rows])
    assert (errors**2).mean() ** 0.5 < np.log(rms)
    assert abs(errors.mean()) < np.log(bias)
    assert widths.mean() < np.log(width)
    assert abs(errors).max() < np.log(2.7)


@pytest.mark.parametrize("uses", [1, 10])
def test_without_a_lock_whose_waiters_cost_the_uses_are_open(uses):
    world = (uses, 12.0, 100.0)
    said = room.outlook(measured(world, names=["queue"]), N, 4, H, REMOTE)["queue"]
    truth = throughput("queue", 4, *world) / throughput("queue", 1, *world)
    assert said.low <= truth <= said.high


def test_throughputs_that_are_a_little_off():
    """1 % of noise in every figure, ten times; the truth itself is noisy, too."""
    rng = np.random.default_rng(1)
    for world in [(1, 3.0, 20.0), (3, 10.0, 100.0), (1, 3.0, 2000.0)] * 3:
        one, four = measured(world), measured(world, 4)
        noisy = {name: x * (1 + 0.01 * rng.standard_normal()) for name, x in one.items()}
        for name, said in room.outlook(noisy, N, 4, H, REMOTE).items():
            assert 0.97 * said.low <= four[name] / one[name] <= 1.03 * said.high


def test_a_full_lock_is_arithmetic():
    """Grants on one node: 1, 1.09 (0.01 a waiter), 1.18 (0.02), 0.9; a crossing adds 0.1.

    A hand-over of 0.02 is twice a reader's cost and once a writer's: one use in each unit.
    """
    X = {"queue": 1.0, "ticket": 1 / 1.09, "tas": 1 / 1.18, "cohort": 1 / 0.9}
    said = room.outlook(X, 10, nodes=2, h=0.02, h_remote=0.12)
    assert said["queue"].middle == pytest.approx(1 / 1.05)
    assert said["ticket"].middle == pytest.approx(1.09 / (1.05 + 0.19))
    assert said["tas"].middle == pytest.approx(1.18 / (1 + 0.2 + 0.38), rel=1e-5)
    assert said["cohort"].middle == pytest.approx(0.9 / (0.9 + 0.1 / 100), rel=1e-4)
    assert all(o == pytest.approx((o.middle,) * 3, rel=1e-9) for o in said.values())


def test_the_gain_of_the_cohort_lock_closes_the_range_without_a_step():
    gains = np.linspace(1.0, 1.08, 41)
    rows = {name: [] for name in ("queue", "ticket", "tas")}
    for gain in gains:
        X = {"queue": 1.0, "ticket": 0.95, "tas": 0.8, "cohort": gain}
        said = room.outlook(X, 6, 4, 0.04, 0.12)
        for name, row in rows.items():
            row.append(said[name])
    for row in rows.values():
        middle, low, high = np.log(np.array(row)).T
        steps = [abs(np.diff(line)).max() for line in (middle, low, high)]
        assert max(steps) < 0.15 and high[-1] == pytest.approx(low[-1])
        assert np.diff(middle)[gains[1:] < 1.02] == pytest.approx(0)


def test_a_program_that_hardly_uses_its_lock():
    """A unit of a second, hand-overs of a millionth: nearly twice on two nodes, or full."""
    for name, said in room.outlook(dict.fromkeys(LOCKS, 1.0), 10, 2, 4e-8, 12e-8).items():
        assert 1.8 < said.middle < 2 and said.high == pytest.approx(2, rel=1e-3), name
        assert said.low == pytest.approx(1, rel=0.01)


def test_locks_that_are_alike_on_one_node_say_little_of_two():
    """Not even whether throughput doubles or stays."""
    X = {"queue": 1.0, "ticket": 1.0, "tas": 1.0}
    said = room.outlook(X, 10, nodes=2, h=0.001, h_remote=0.003)["tas"]
    assert said.low < 1.05 and said.high > 1.95


def test_a_lock_that_beats_the_queue_lock_is_taken_as_its_equal():
    alike = room.outlook({"queue": 1.0, "tas": 1.0}, 8, 2, 1e-3, 3e-3)
    faster = room.outlook({"queue": 1.0, "tas": 1.5}, 8, 2, 1e-3, 3e-3)
    assert faster == alike


@pytest.mark.parametrize("N, Z", [(6, 3.0), (6, 12.0), (10, 12.0)])
@pytest.mark.parametrize("nodes", [2, 8])
def test_the_range_holds_what_the_protocols_do(N, Z, nodes):
    """One node simulated, several predicted, and simulated too; 5 % for noise on both sides."""
    protocols = {
        "queue": (protocol.Fifo, {}),
        "ticket": (protocol.Ticket, {"read": 0.1}),
        "tas": (protocol.TestAndSet, {"write": 0.1}),
        "cohort": (protocol.Cohort, {"batch": 100}),
    }

    def simulated(q):
        few = {"runs": 2, "uses": 3000, "nodes": q, "local": 0.1, "remote": 0.4}
        return {
            name: protocol.throughput(kind, N * q, Z, 1.0, **few, **costs)[0]
            for name, (kind, costs) in protocols.items()
        }

    one, several = simulated(1), simulated(nodes)
    said = room.outlook(one, N, nodes, h=0.1, h_remote=0.4)
    for name, X in several.items():
        assert 0.95 * said[name].low < X / one[name] < 1.05 * said[name].high, name


GOOD = {"X": {"queue": 1.0}, "N": 10, "nodes": 2, "h": 0.1, "h_remote": 0.2}


@pytest.mark.parametrize(
    "wrong, named",
    [
        ({"X": {"ticket": 1.0}}, "expected queue"),
        ({"X": {"queue": 1.0, "mcs": 1.0}}, "mcs"),
        ({"X": None}, "X has None; expected queue"),
        ({"X": {"queue": 1.0, 5: 1.0}}, "X has queue, 5"),
        ({"X": {"queue": "1"}}, r"X\['queue'\] is '1'"),
        ({"X": {"queue": 1e-200}}, r"X\['queue'\] is 1e-200"),
        ({"N": 10**6}, "N is 1,000,000, expected at most"),
        ({"nodes": 10**6}, "nodes is 1,000,000, expected at most"),
        ({"nodes": None}, "nodes is None"),
        ({"h": None}, "h is None"),
        ({"h_remote": "far"}, "h_remote is 'far'"),
        ({"X": {"queue": 0.0}}, r"X\['queue'\] is 0.0"),
        ({"X": {"queue": np.nan}}, r"X\['queue'\] is nan"),
        ({"X": {"queue": [1.0, 2.0]}}, r"X\['queue'\] is \["),
        ({"X": {"queue": 1.0, "tas": "fast"}}, r"X\['tas'\] is 'fast'"),
        ({"X": {"queue": 1.0, "tas": None}}, r"X\['tas'\] is None"),
        ({"X": {"queue": 1e12, "cohort": 2e12}, "h": 4e-8}, "no more than one use"),
        ({"N": [10]}, r"N is \[10\], expected a whole number"),
        ({"N": "many"}, "N is 'many'"),
        ({"N": 1}, "at least 2"),
        ({"N": 0}, "N is 0"),
        ({"nodes": np.full(40, 2)}, "nodes is"),
        ({"nodes": [2, 4]}, r"nodes is \[2, 4\]"),
        ({"nodes": 1.5}, "nodes is 1.5"),
        ({"h": 0.0}, "h is 0.0"),
        ({"h": 0.3}, "h_remote is 0.2, expected at least h, 0.3"),
        ({"h": np.nan}, "h is nan"),
        ({"h_remote": np.array([0.2, 0.3])}, "h_remote is"),
    ],
)
def test_bad_input_is_named(wrong, named):
    with pytest.raises(ValueError, match=named):
        room.outlook(**GOOD | wrong)


@pytest.mark.parametrize(
    "wrong, named",
    [
        ({"N": 1}, "N is 1"),
        ({"N_sat": 2.0}, "N_sat is"),
        ({"N_sat": [0.5]}, "N_sat is"),
        ({"N_sat": ["few"]}, "N_sat is"),
        ({"full": 2.0}, "full is 2.0"),
        ({"full": None}, "full is None"),
    ],
)
def test_bad_input_of_a_reading_is_named(wrong, named):
    with pytest.raises(ValueError, match=named):
        room.reading(**{"X": {"queue": 1.0}, "N": 10, "h": 0.1, "N_sat": [2.0]} | wrong)

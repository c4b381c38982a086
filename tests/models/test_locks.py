"""Locks: the protocol simulated, exact relatives, limits and identities, grids, bad input.

`protocol` knows the order of hand-overs and what each costs, and none of the formulas. Models that
are exact agree within the half-width of its mean (99 %); of the others the published errors hold.
"""

from fractions import Fraction
from itertools import product
from math import prod

import mpmath as mp
import numpy as np
import protocol
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from quick import one_in

from nummodel.models import locks, networks, queueing

COSTS = {"h": 0.1, "h_remote": 0.4}
LINES = {"local": 0.1, "remote": 0.4}
#: Threads, nodes, think time: idle to full, one node to eight.
SYSTEMS = [(10, 1, 9.0), (20, 2, 2.0), (16, 4, 30.0), (48, 8, 20.0), (48, 8, 100.0)]


def agrees(model, simulated, low=0.0, high=0.0):
    """Between the errors of the model that are published, and the simulation's half-width more."""
    value, half = simulated
    assert half < 0.02 * value
    assert low - half / value < model / value - 1 < high + half / value, (model, value, half)


# --- the protocols ----------------------------------------------------------------------------


@pytest.mark.parametrize("N, nodes, Z", one_in(2, SYSTEMS))
def test_queue_lock(N, nodes, Z):
    model = locks.solve(lambda n: locks.queue_grant(n, 1.0, nodes=nodes, **COSTS), N, Z).X
    agrees(model, protocol.throughput(protocol.Fifo, N, Z, 1.0, nodes=nodes, **LINES), -0.01, 0.01)


@pytest.mark.parametrize("N, nodes, Z", one_in(2, SYSTEMS))
def test_ticket_lock(N, nodes, Z):
    """Those who come during a hold slow it down in the model, not in the protocol."""
    grant = {"nodes": nodes, "h_waiter": 0.05} | COSTS
    model = locks.solve(lambda n: locks.ticket_grant(n, 1.0, **grant), N, Z).X
    simulated = protocol.throughput(protocol.Ticket, N, Z, 1.0, nodes=nodes, read=0.1, **LINES)
    agrees(model, simulated, low=-0.05)


@pytest.mark.parametrize("N, nodes, Z", one_in(2, [*SYSTEMS, (16, 4, 15.0)]))
@pytest.mark.parametrize("last, error", one_in(2, [(True, 0.05), (False, 0.10)]))
def test_test_and_set(N, nodes, Z, last, error):
    grant = {"nodes": nodes, "h_waiter": 0.1} | COSTS
    model = locks.solve(lambda n: locks.tas_grant(n, 1.0, **grant), N, Z).X
    costs = {"write": 0.1, "last": last, "runs": 10, "uses": 3000} | LINES
    simulated = protocol.throughput(protocol.TestAndSet, N, Z, 1.0, nodes=nodes, **costs)
    agrees(model, simulated, -0.01, error)


@pytest.mark.parametrize("Z", [0.0, 2.0])
def test_test_and_set_in_the_order_of_arrival(Z):
    """Notebook 04's formula, two nodes: every request is a crossing by a half."""
    system = locks.solve(lambda n: 1.1 + 0.1 * (n - 1) + 0.15 * (n + (n > 1)), 20, Z)
    simulated = protocol.throughput(protocol.ArrivalOrder, 20, Z, 1.0, nodes=2, write=0.1, **LINES)
    error = 0.05 if system.share > 0.8 else 0.10
    agrees(system.X, simulated, -error, error)


@pytest.mark.parametrize("N, nodes, Z", one_in(2, SYSTEMS))
def test_cohort_lock(N, nodes, Z):
    model = locks.solve(
        lambda n: locks.cohort_grant(n, 1.0, nodes=nodes, batch=20, **COSTS), N, Z
    ).X
    simulated = protocol.throughput(protocol.Cohort, N, Z, 1.0, nodes=nodes, batch=20, **LINES)
    agrees(model, simulated, -0.01, 0.02)


@pytest.mark.parametrize("N, m, Z", [(20, 4, 9.0), (80, 13, 9.0), (30, 2, 40.0)])
def test_shards_are_exact(N, m, Z):
    model = locks.solve(locks.sharded_grant(lambda n: 1.0, m, N), N, Z).X
    agrees(model, protocol.sharded(N, Z, 1.0, m))


@pytest.mark.parametrize("N, w", [(10, 0.1), (10, 0.5), (5, 0.02)])
def test_readers_and_writers_who_come_back_at_once_are_exact(N, w):
    simulated, half = protocol.readers_writers(N, 0.0, 1.0, w, uses=20_000)
    assert 1 / locks.shared_grant(N, 1.0, w) == pytest.approx(simulated, abs=half)


@pytest.mark.parametrize(
    "N, Z, w", [(10, 5.0, 0.1), (20, 9.0, 0.2), (20, 5.0, 0.05), (40, 20.0, 0.3)]
)
def test_readers_and_writers_who_think(N, Z, w):
    model = locks.solve(lambda n: locks.shared_grant(n, 1.0, w), N, Z).X
    agrees(model, protocol.readers_writers(N, Z, 1.0, w), -0.01, 0.06)


@pytest.mark.parametrize("lamda, on, away", [(0.3, 20.0, 5.0), (0.1, 50.0, 50.0)])
def test_preempted_holders_are_exact(lamda, on, away):
    simulated, half = protocol.preempted(lamda, 1.0, on, away)
    assert half < 0.2 * simulated  # such waits vary widely
    model = locks.preempted_waiting(lamda, 1.0, 1, on, away, 1)
    assert model == pytest.approx(simulated, abs=half)


@pytest.mark.parametrize("at_once, error", [(True, 0.03), (False, 0.16)])
@pytest.mark.parametrize(
    "N, c, switch", [(16, 8, 0.0), (16, 8, 0.4), (64, 8, 0.3), (9, 8, 0.3), (8, 8, 0.5)]
)
def test_sleepers(N, c, switch, at_once, error):
    """In the model who is woken takes a processor at once."""
    model = locks.solve(lambda n: 1.0 + switch * (n > 1), N, 10.0, c).X
    simulated = protocol.sleepers(N, c, 10.0, 1.0, switch, at_once)
    if at_once and not switch:
        agrees(model, simulated)
    else:
        agrees(model, simulated, -0.03, error)


@pytest.mark.parametrize(
    "N, Z, wake, patience",
    [(2, 1.0, 5.0, 0.0), (2, 1.0, 5.0, 2.0), (4, 5.0, 3.0, 0.0), (8, 10.0, 5.0, 2.0),
     (8, 20.0, 0.5, 1.0), (16, 10.0, 5.0, 2.0), (16, 40.0, 20.0, 1.0), (16, 40.0, 5.0, 5.0),
     (32, 10.0, 20.0, 0.0), (64, 20.0, 5.0, 10.0)],
)  # fmt: skip
def test_mutex(N, Z, wake, patience):
    """In the model, patience and waking take exponential times, in the protocol constant ones."""
    model = locks.mutex(N, Z, 1.0, wake, patience).X
    agrees(model, protocol.mutex(N, Z, 1.0, wake, patience, uses=8000), -0.05, 0.08)


@pytest.mark.parametrize("N, Z, patience", [(8, 1.0, 4.0), (32, 10.0, 8.0)])
def test_a_mutex_whose_threads_take_long_to_wake(N, Z, patience):
    model = locks.mutex(N, Z, 1.0, 100.0, patience).X
    agrees(model, protocol.mutex(N, Z, 1.0, 100.0, patience, uses=20_000), -0.14, 0.18)


def test_one_thread_a_node_always_crosses():
    few, half = {"nodes": 8, **LINES}, COSTS | {"nodes": 8}
    for kind, grant, costs, error in (
        (protocol.Fifo, locks.queue_grant, {}, 0.07),
        (protocol.Cohort, locks.cohort_grant, {"batch": 100}, 0.10),
        (protocol.TestAndSet, lambda n, S, **g: locks.tas_grant(n, S, **g, h_waiter=0.1),
         {"write": 0.1, "last": True}, 0.30),
    ):  # fmt: skip
        model = locks.solve(lambda n, grant=grant: grant(n, 1.0, **half), 8, 5.0).X
        agrees(model, protocol.throughput(kind, 8, 5.0, 1.0, **few, **costs), 0.0, error)


@pytest.mark.parametrize(
    "N, Z, S, nodes, error",
    [(1, 1.0, 1.0, 1, 0.0), (4, 1.0, 1.0, 1, 0.03), (8, 10.0, 1.0, 1, 0.03),
     (16, 40.0, 1.0, 4, 0.03), (32, 1.0, 1.0, 4, 0.03), (4, 10.0, 0.1, 2, 0.03),
     (2, 0.1, 0.1, 1, 0.08)],
)  # fmt: skip
def test_readers_who_count(N, Z, S, nodes, error):
    model = locks.counting_readers(N, Z, S, 0.1, 0.4, 1.0, nodes).X
    simulated = protocol.counting(N, Z, S, 0.1, 0.4, 1.0, nodes)
    agrees(model, simulated, -0.05 * (N > 1), error)


@pytest.mark.parametrize("N", [2, 8, 40])
def test_delegation(N):
    """One line for the request holds the server up, one for the answer its client."""
    simulated = protocol.throughput(protocol.Fifo, N - 1, 9.1, 1.0, local=0.1)
    agrees(locks.delegated(N, 9.0, 1.0, 0.1).X, simulated, -0.01, 0.01)


# --- exact relatives --------------------------------------------------------------------------


@settings(max_examples=settings().max_examples * 30 // 100)
@given(st.integers(0, 60), st.floats(0.0, 50.0), st.floats(0.1, 5.0))
def test_a_constant_grant_is_the_machine_repairman(N, Z, S):
    system, R = locks.solve(lambda n: S, N, Z), S + queueing.repairman_waiting(N, S, 1, Z)
    assert system.X == pytest.approx(N / (Z + R), rel=1e-12)
    assert system.Q == pytest.approx(N * R / (Z + R), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("m", [1, 2, 7, 17])
@pytest.mark.parametrize("g", [0.0, 0.02, 0.05])
def test_shards_are_the_network_of_load_dependent_stations(m, g):
    grant = locks.sharded_grant(lambda n: 1 + g * (n - 1), m, 80)
    stations = [networks.load_dependent(1 / m, 1 / (1 + g * np.arange(80)))] * m
    for N in (1, 20, 80):
        exact = networks.solve(stations, N, Z=9.1).X
        assert locks.solve(grant, N, 9.1).X == pytest.approx(exact, rel=1e-12)


def exact_chain(t, N, Z, c=None):
    """X and Q in fractions or at many digits: the weight of n at the lock is the product of its
    arrivals, times its grants, over Z."""
    weight = [t[0] * 0 + 1]
    for n in range(1, N + 1):
        room = N - n + 1 if c is None else min(N - n + 1, c - (n > 1))
        weight.append(weight[-1] * room * t[n - 1] / Z)
    total = sum(weight)
    X = sum(w / s for w, s in zip(weight[1:], t, strict=False)) / total
    return float(X), float(sum(n * w for n, w in enumerate(weight)) / total)


def exact_shards(t, m):
    """The grant of m locks alike: products of the ways in which n threads can be at them."""
    G = [Fraction(1)] + [Fraction(0)] * len(t)
    one = [prod(t[:n], start=Fraction(1)) for n in range(len(G))]
    for _ in range(m):
        G = [sum(one[k] * G[n - k] for k in range(n + 1)) for n in range(len(G))]
    return [G[n] / G[n - 1] / m for n in range(1, len(G))]


H, FAR, WAIT, W, Q = Fraction(1, 8), Fraction(1, 2), Fraction(1, 16), Fraction(1, 32), 4
BATCH = 16
HANDED = {"h": float(H), "h_remote": float(FAR), "nodes": Q}
#: Grants of a hold time of 1 that floats hold exactly, in fractions and as the package has them.
GRANTS = {
    "queue": (
        lambda n: 1 + H + (FAR - H) * (1 - Fraction(1, Q)),
        lambda n: locks.queue_grant(n, 1.0, **HANDED),
    ),
    "ticket": (
        lambda n: 1 + H + (FAR - H) * (1 - Fraction(1, Q)) + WAIT * (n - 1),
        lambda n: locks.ticket_grant(n, 1.0, **HANDED, h_waiter=float(WAIT)),
    ),
    "tas": (  # a node for every node with one of n threads, or none if all are on the line's
        lambda n: 1 + H + WAIT * (n - 1) + (FAR - H) * (
            Q * (1 - Fraction(Q - 1, Q) ** n) - Fraction(1, Q) ** n
        ),
        lambda n: locks.tas_grant(n, 1.0, **HANDED, h_waiter=float(WAIT)),
    ),
    "cohort": (  # all waiters elsewhere, or else some: once a batch
        lambda n: 1 + H + (FAR - H) * (
            (a := Fraction(Q - 1, Q) ** (k := max(n - 1, 1)))
            + (1 - a - Fraction(1, Q) ** k) / BATCH
        ),
        lambda n: locks.cohort_grant(n, 1.0, **HANDED, batch=BATCH),
    ),
    "shared": (
        lambda n: W * (1 + sum((1 - W) ** j / j for j in range(1, n))) + (1 - W) ** n / n,
        lambda n: locks.shared_grant(n, 1.0, float(W)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", GRANTS)
def test_every_lock_against_its_exact_chain(name):
    """In fractions, without any rounding: idle, at its knee and full, with and without processors
    that are given away, and split into five."""
    exact, ours = GRANTS[name]
    N, n = 40, np.arange(1, 41)
    t = [exact(k) for k in range(1, N + 1)]
    assert ours(n) == pytest.approx([float(v) for v in t], rel=1e-13)
    split = exact_shards(t, 5)
    for Z, c in product((1, 64, 1024), (None, 8)):
        limit = {} if c is None else {"c": c}
        for table, grant in ((t, ours), (split, locks.sharded_grant(ours, 5, N))):
            system = locks.solve(grant, N, float(Z), **limit)
            expected = exact_chain(table, N, Fraction(Z), c)
            assert (system.X, system.Q) == pytest.approx(expected, rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("Z, growth", [(1e5, 0.0), (3e5, 1e-5), (1e7, 1e-3)])
def test_a_hundred_thousand_threads_at_forty_digits(Z, growth):
    N = 100_000
    t = 1 + growth * np.arange(N)
    with mp.workdps(40):
        expected = exact_chain([mp.mpf(v) for v in t.tolist()], N, mp.mpf(Z))
    system = locks.solve(lambda n: 1 + growth * (n - 1), N, Z)
    assert (system.X, system.Q) == pytest.approx(expected, rel=4e-12)


def test_an_array_is_a_grid_as_well():
    """One system for each number of threads, think time and hand-over, without a loop."""
    h = np.array([0.0, 0.1, 0.4])
    N, Z = np.array([1, 30, 300])[:, None, None], np.array([5.0, 80.0])[:, None]
    grid = locks.solve(lambda n: locks.ticket_grant(n, 1.0, h, h_waiter=0.01), N, Z)
    assert grid.X.shape == (3, 2, 3)
    for i, j, k in np.ndindex(grid.X.shape):
        grants = locks.ticket_grant(np.arange(1, 301), 1.0, h[k], h_waiter=0.01)
        alone = locks.solve(lambda n, grants=grants: grants[n - 1], int(N[i, 0, 0]), float(Z[j, 0]))
        assert (grid.X[i, j, k], grid.Q[i, j, k]) == pytest.approx(alone[:2], rel=1e-12)


@pytest.mark.parametrize("n, w", [(1, 0.3), (2, 0.3), (6, 0.01), (30, 0.5)])
def test_readers_and_writers_against_their_markov_chain(n, w):
    """States: r readers inside, the writer behind them or not; or the writer. Rates of 1/S = 1."""
    full, writer = n, 0  # r = 1 .. n - 1: a writer waits for r readers

    def entering(k):
        return full if k == n else k

    rates = np.zeros((n + 1, n + 1))
    for k in range(1, n):  # those that a writer lets in: k readers, then a writer
        rates[writer, entering(k)] += (1 - w) ** k * w
    rates[writer, full] += (1 - w) ** n
    for r in range(1, n):
        rates[r, r - 1] += r
    rates[full, n - 1] += n * w  # one leaves and a writer comes
    np.fill_diagonal(rates, 0.0)
    generator = rates - np.diag(rates.sum(1))
    p = np.linalg.lstsq(
        np.vstack([generator.T, np.ones(n + 1)]), np.r_[np.zeros(n + 1), 1.0], rcond=None
    )[0]
    inside = np.r_[1.0, np.arange(1, n + 1)]
    assert 1 / locks.shared_grant(n, 1.0, w) == pytest.approx(p @ inside, rel=1e-9)


# --- limits and identities --------------------------------------------------------------------


def test_one_node_and_no_waiters_make_all_locks_alike():
    n = np.arange(1, 50)
    plain = locks.queue_grant(n, 1.0, 0.2)
    for grant in (locks.ticket_grant, locks.tas_grant, locks.cohort_grant):
        np.testing.assert_allclose(grant(n, 1.0, 0.2, 0.9), plain)  # h_remote does not matter
        alone = grant(1, 1.0, 0.2, 0.9, nodes=4)
        assert alone == pytest.approx(locks.queue_grant(1, 1.0, 0.2, 0.9, nodes=4))


def test_hand_overs_that_cross():
    near, far = {"h": 0.0, "h_remote": 1.0}, {"nodes": 8}
    assert locks.queue_grant(50, 1.0, **near, **far) == pytest.approx(1 + 7 / 8)
    assert locks.tas_grant(10**4, 1.0, **near, **far) == pytest.approx(1 + 8)
    assert locks.cohort_grant(10**4, 1.0, **near, **far, batch=10) == pytest.approx(1.1)
    assert locks.cohort_grant(10**4, 1.0, **near, **far, batch=1) == pytest.approx(2)


def test_crossings_of_test_and_set_by_counting():
    """All ways in which n threads can be on the nodes, the line being on node 0."""
    for n, nodes in ((1, 2), (3, 2), (4, 3)):
        places = np.indices((nodes,) * n).reshape(n, -1).T
        kinds = [set(row) for row in places.tolist()]
        crossings = np.mean([0 if kind == {0} else len(kind) for kind in kinds])
        grant = locks.tas_grant(n, 1.0, 0.0, 1.0, nodes)
        assert grant == pytest.approx(1 + crossings)


def test_growth_collapses_and_a_constant_grant_stays():
    N = np.array([1, 20, 80, 320])
    growing = locks.solve(lambda n: locks.ticket_grant(n, 1.0, h_waiter=0.1), N, 20.0).X
    steady = locks.solve(lambda n: locks.queue_grant(n, 1.0), N, 20.0).X
    assert growing[2] < growing[1] and (np.diff(steady) >= 0).all()
    assert growing[-1] == pytest.approx(1 / (1 + 0.1 * 319), rel=0.003)  # hardly one thinks


def test_shares():
    n = np.arange(1, 40)
    np.testing.assert_allclose(locks.shared_grant(n, 2.0, 1.0), 2.0)
    np.testing.assert_allclose(locks.shared_grant(n, 2.0, 0.0), 2.0 / n)
    for w in (0.5, 0.05):  # the sum of q^j/j is log 1/w
        full = w * (1 + np.log(1 / w))
        assert locks.shared_grant(2000, 1.0, w) == pytest.approx(full, rel=1e-6)


def test_preempted_is_pollaczek_khinchine_when_nobody_is_away():
    given = {"lamda": 0.5, "S": 1.0, "cv2": 0.3}
    never = locks.preempted_waiting(**given, on=1.0, away=0.0, cv2_v=1.0)
    assert never == pytest.approx(queueing.mg1_waiting(**given))
    assert locks.preempted_waiting(**given, on=1.0, away=1.0, cv2_v=1.0) == np.inf


def test_a_mutex_whose_waiters_never_sleep_or_wake_at_once_is_a_queue():
    N, Z = np.array([1, 2, 8, 40]), np.array([[0.0], [1.0], [20.0]])
    queue = locks.solve(lambda n: 1.0, N, Z)
    for wake, patience in ((5.0, 1e3), (0.0, 0.0), (0.0, 3.0)):
        system = locks.mutex(N, Z, 1.0, wake, patience)
        assert system.X == pytest.approx(queue.X, rel=1e-3)
        assert system.Q == pytest.approx(queue.Q, rel=1e-2, abs=1e-9)


def test_sleepers_cost_throughput_and_patience_gives_it_back():
    X = locks.mutex(8, 10.0, 1.0, [0.0, 1.0, 5.0, 50.0], [[0.0], [1.0], [5.0]]).X
    assert (np.diff(X, axis=1) < 0).all() and (np.diff(X[:, 1:], axis=0) > 0).all()
    # Of two threads, if the woken one never comes, the other one goes on by itself.
    assert locks.mutex(2, 1.0, 1.0, 1e9).X == pytest.approx(0.5)


def test_a_mutex_of_two_threads_against_its_markov_chain():
    """Both think; one holds; one holds and one sleeps; one is being woken, and the other thinks."""
    Z, S, wake = 3.0, 1.0, 4.0
    Q = np.zeros((4, 4))
    Q[0, 1], Q[1, 0], Q[1, 2] = 2 / Z, 1 / S, 1 / Z
    Q[2, 3], Q[3, 2], Q[3, 1] = 1 / S, 1 / Z, 1 / wake
    np.fill_diagonal(Q, -Q.sum(1))
    p = np.linalg.lstsq(np.vstack([Q.T, np.ones(4)]), [0, 0, 0, 0, 1.0], rcond=None)[0]
    exact = p[1] + p[2]  # the thread that is being woken keeps trying at the same rate
    assert locks.mutex(2, Z, S, wake).X == pytest.approx(exact, rel=0.05)


def test_counting_readers_at_their_ends():
    """One reader never moves the line; many make each read take two hand-overs; and a counter that
    costs nothing lets all go on."""
    given = {"Z": 2.0, "S": 1.0, "update": 0.05, "h": 0.4}
    assert locks.counting_readers(1, **given).X == pytest.approx(1 / 3.1)
    assert locks.counting_readers(1000, **given).X == pytest.approx(1 / 0.9, rel=1e-3)
    free = given | {"update": 1e-9, "h": 0.0}
    assert locks.counting_readers(7, **free).X == pytest.approx(7 / 3, rel=1e-6)
    grid = locks.counting_readers([[1], [4]], **given | {"h": [0.1, 0.4, 0.8]})
    for i, j in np.ndindex(2, 3):
        alone = locks.counting_readers((1, 4)[i], **given | {"h": (0.1, 0.4, 0.8)[j]})
        assert (grid.X[i, j], grid.Q[i, j]) == pytest.approx(alone[:2])


def test_break_even():
    switch = locks.switch_break_even(64, 8, 10.0, 1.0)
    sleeping = locks.solve(lambda n: 1.0 + switch * (n > 1), 64, 10.0, 8).X
    assert sleeping == pytest.approx(locks.solve(lambda n: 1.0, 8, 10.0).X)
    # Where all the threads have a processor, sleeping costs and gains nothing.
    assert locks.switch_break_even(8, 8, 10.0, 1.0) == pytest.approx(0, abs=1e-9)
    assert (locks.switch_break_even(1, [1, 2, 8], [0.0, 1.0, 10.0], 1.0) == 0).all()


def test_fewest_shards_is_the_fewest():
    for share in (0.7, 0.3, 0.15):
        m = locks.fewest_shards(lambda n: 1 + 0.02 * n, 60, 20.0, share)
        at = [
            locks.solve(locks.sharded_grant(lambda n: 1 + 0.02 * n, k, 60), 60, 20.0).share
            for k in (m, m - 1)
        ]
        assert at[0] <= share < at[1]


def held_by_balance(N, m, Z, grant):
    """Mean number of held locks, of the balance of all states of N threads at m locks."""
    states = [s for s in product(range(N + 1), repeat=m) if sum(s) <= N]
    index = {s: i for i, s in enumerate(states)}
    rates = np.zeros((len(states), len(states)))
    for s, i in index.items():
        for k in range(m):
            more = (*s[:k], s[k] + 1, *s[k + 1 :])
            if more in index:
                rates[i, index[more]] = (N - sum(s)) / Z / m
                rates[index[more], i] = 1 / grant(s[k] + 1)
    rates -= np.diag(rates.sum(axis=1))
    equations = np.vstack([rates.T, np.ones(len(states))])
    share = np.linalg.lstsq(equations, np.append(np.zeros(len(states)), 1.0), rcond=None)[0]
    return sum(p * np.count_nonzero(s) for p, s in zip(share, states, strict=True))


@pytest.mark.parametrize("m", [1, 2, 3])
@pytest.mark.parametrize("g", [0.0, 0.3, 2.0])
def test_held_shards_by_the_balance_of_all_states(m, g):
    def grant(n):
        return 1 + g * (n - 1)

    for N, Z in product((1, 2, 6), (0.5, 3.0)):
        held = locks.held_shards(grant, m, N, Z)
        assert held == pytest.approx(held_by_balance(N, m, Z, grant), rel=1e-9)


def test_with_a_constant_hold_X_times_S_shards_are_held():
    """Little's law for the threads that hold."""
    m, Z = np.array([1, 3, 40])[:, None], np.array([1e-9, 5.0, 900.0])
    X = locks.solve(locks.sharded_grant(lambda n: 0.5, m, 80), 80, Z).X
    assert locks.held_shards(lambda n: 0.5, m, 80, Z) == pytest.approx(0.5 * X, rel=1e-9)
    assert locks.held_shards(lambda n: 0.5, 3, 80, 0.0) == pytest.approx(
        0.5 * locks.solve(locks.sharded_grant(lambda n: 0.5, 3, 80), 80, 0.0).X, rel=1e-9
    )


@pytest.mark.parametrize("w", [0.0, 1e-9, 1e-3, 0.05, 0.4, 0.9, 1.0])
def test_a_reader_writer_lock_term_by_term(w):
    """The sum of q^j/j, up to more terms than are added up one by one."""
    n = [1, 2, 63, 64, 65, 66, 200, 30_000]
    with mp.workdps(30):
        q = 1 - mp.mpf(w)
        sums = np.cumsum([mp.mpf(0), *(q**j / j for j in range(1, 30_000))])
        exact = [float(w * (1 + sums[k - 1]) + q**k / k) for k in n]
    assert locks.shared_grant(n, 1.0, w) == pytest.approx(exact, rel=1e-13)


def test_a_reader_writer_lock_of_a_billion():
    """Readers who are always there: the sum of 1/j is the logarithm and Euler's constant."""
    n, w = 10**9, 1e-15
    sum_of_all = float(mp.log(n - 1) + mp.euler)
    assert locks.shared_grant(n, 1.0, w) == pytest.approx(w * (1 + sum_of_all) + 1e-9, rel=1e-9)


@pytest.mark.parametrize("name", ["queue", "ticket", "tas", "cohort"])
def test_a_hand_over_across_nodes_is_given_and_no_shorter_than_one_inside(name):
    grant = {
        "queue": locks.queue_grant,
        "ticket": locks.ticket_grant,
        "tas": locks.tas_grant,
        "cohort": locks.cohort_grant,
    }[name]
    for wrong in ({"h": 0.5}, {"h": [0.0, 0.5], "h_remote": 0.4}):
        with pytest.raises(ValueError, match=r"^h_remote is 0.*, expected at least h, 0.5"):
            grant(50, 1.0, nodes=8, **wrong)
    assert grant(1, 1.0, 0.5) == pytest.approx(1.5)  # one node has no other
    assert grant(1, 1.0, nodes=8) == pytest.approx(1.0)  # and free is free


def test_grants_that_floats_hardly_hold():
    """Nobody waits for what takes no time, and all wait for what takes ages."""
    short = locks.solve(lambda n: 1e-149, 3, 1.0)
    assert short.X == pytest.approx(3.0) and short.Q == pytest.approx(3e-149, rel=1e-12, abs=0)
    long = locks.solve(lambda n: 1e149, [1, 3], 1.0)
    assert long.X == pytest.approx([1e-149] * 2, rel=1e-12, abs=0)
    assert long.share == pytest.approx(1.0)


def test_shards_one_after_the_other_are_those_that_powers_make():
    growing = [lambda n: 1 + 0.02 * n, lambda n: 1 / n, lambda n: np.array([1.0, 1 + 0.1 * n])]
    for grant in growing:
        for m in (1, 7, 23):
            at = locks.solve(locks.sharded_grant(grant, m, 40), 40, 20.0).share
            before = locks.solve(locks.sharded_grant(grant, max(m - 1, 1), 40), 40, 20.0).share
            fewest = locks.fewest_shards(grant, 40, 20.0, at * (1 + 1e-12))
            assert np.all(fewest <= m) and np.all((fewest == m) | (before <= at * (1 + 1e-9)))
            assert np.shape(fewest) == np.shape(at)


# --- arrays and bad input ---------------------------------------------------------------------


def test_a_grid_is_its_points():
    N, m, g = np.arange(5, 40, 7)[:, None, None], np.array([1, 3, 8])[:, None], np.array([0, 0.1])
    grid = locks.solve(locks.sharded_grant(lambda n: 1 + g * (n - 1), m, 40), N, 12.0)
    assert grid.X.shape == (5, 3, 2)
    for i, j, k in np.ndindex(grid.X.shape):
        one = locks.sharded_grant(lambda n, k=k: 1 + g[k] * (n - 1), m[j, 0], 40)
        alone = locks.solve(one, int(N[i, 0, 0]), 12.0)
        assert isinstance(alone.X, float)
        assert grid.X[i, j, k] == pytest.approx(alone.X, rel=1e-12)


def test_held_shards_of_a_grid_are_those_of_its_points():
    m, Z, g = np.array([1, 3, 8])[:, None, None], np.array([0.5, 20.0])[:, None], [0.0, 0.3]
    held = locks.held_shards(lambda n: 1 + np.array(g) * (n - 1), m, 12, Z)
    assert held.shape == (3, 2, 2)
    for i, j, k in np.ndindex(held.shape):
        one = locks.held_shards(
            lambda n, k=k: 1 + g[k] * (n - 1), int(m[i, 0, 0]), 12, float(Z[j, 0])
        )
        assert isinstance(one, float) and held[i, j, k] == pytest.approx(one, rel=1e-12)


def test_a_whole_number_is_one_however_it_is_written():
    shards = locks.sharded_grant(lambda n: float(n), 3, np.int64(5))
    assert shards(5.0) == shards(np.int64(5)) == shards(5)
    assert locks.sharded_grant(lambda n: float(n), 3, 5.0)(5) == shards(5)


def test_edges():
    assert locks.solve(lambda n: 1.0, 0, 5.0) == (0.0, 0.0, 0.0)
    assert locks.solve(lambda n: 2.0, 7, 0.0) == (0.5, 7.0, 1.0)
    assert locks.delegated(1, 1.0, 1.0, 0.1).X == 0
    assert locks.fewest_shards(lambda n: 1.0, 10, 1.0, 0.1) == np.inf


@pytest.mark.parametrize(
    "call, named",
    [
        (lambda: locks.solve(lambda n: 1.0, 2.5, 1.0), "N is 2.5"),
        (lambda: locks.solve(lambda n: 1.0, 2, -1.0), "Z is -1.0"),
        (lambda: locks.solve(lambda n: 1.0, 2, 1.0, c=0), "c is 0"),
        (lambda: locks.solve(lambda n: 1.0, 10**9, 1.0), "N is 1,000,000,000, expected at"),
        (
            lambda: locks.solve(lambda n: 1.0, 100_001, 1.0),
            "N is 100,001, expected at most 100,000",
        ),
        (
            lambda: locks.solve(lambda n: 1.0, 10**5, np.ones(2000)),
            "N is 100,000, expected at most 5",
        ),
        (lambda: locks.mutex(2000, 1.0, 1.0, 1.0), "N is 2,000, expected at most 1,000"),
        (lambda: locks.mutex(2, 1.0, 0.0, 1.0), "S is 0"),
        (lambda: locks.mutex(2, 1.0, 1.0, -1.0), "wake is -1"),
        (lambda: locks.counting_readers(2, 1.0, 1.0, 0.0, 1.0), "update is 0"),
        (lambda: locks.counting_readers(2, 1.0, 1.0, 1.0, 0.1, nodes=2), "h_remote is 0"),
        (lambda: locks.counting_readers(10**9, 1.0, 1.0, 1.0, 0.1), "at most 100,000"),
        (lambda: locks.solve(np.ones(9), 10, 1.0), "grant is array"),
        (lambda: locks.solve(lambda n: np.inf, 2, 1.0), r"grant\(1\) is inf"),
        (
            lambda: locks.solve(lambda n: np.ones(10**5), 2000, 1.0),
            "N is 2,000, expected at most 1",
        ),
        (lambda: locks.solve(lambda n: 1e-320, 3, 1.0), r"grant\(1\) is 1e-320"),
        (lambda: locks.solve(lambda n: None, 3, 1.0), r"grant\(1\) is None"),
        (lambda: locks.solve(lambda n: np.ones(3), [1, 2], 1.0), r"grant \(3,\), N \(2,\)"),
        (lambda: locks.solve(1.0, 3, 1.0), "grant is 1.0, expected a function"),
        (lambda: locks.sharded_grant(lambda n: 1.0, 3, 5)(0), "n is 0"),
        (lambda: locks.sharded_grant(lambda n: 1.0, 3, 5)(6), "n is 6, .* at most 5"),
        (lambda: locks.sharded_grant(lambda n: 1.0, 3, 5)("5"), "n is '5'"),
        (lambda: locks.sharded_grant(lambda n: 1.0, 3, 0), "N is 0"),
        (lambda: locks.sharded_grant(lambda n: 1.0, 3, "5"), "N is '5'"),
        (lambda: locks.sharded_grant(lambda n: 1.0, 3, 5.5), "N is 5.5"),
        (lambda: locks.sharded_grant(lambda n: 1.0, 999, 15_000), "N is 15,000, expected at"),
        (
            lambda: locks.fewest_shards(lambda n: 1.0, 5000, 1.0, 0.1),
            "N is 5,000, expected at most",
        ),
        (lambda: locks.fewest_shards(lambda n: 1.0, 0, 1.0, 0.1), "N is 0"),
        (lambda: locks.held_shards(lambda n: 1.0, 2, 0, 1.0), "N is 0"),
        (lambda: locks.held_shards(lambda n: 1.0, 0, 2, 1.0), "m is 0"),
        (lambda: locks.held_shards(lambda n: 1.0, 2, 2, -1.0), "Z is -1"),
        (lambda: locks.switch_break_even(0, 8, 1.0, 1.0), "N is 0"),
        (lambda: locks.switch_break_even(4, 8, 1.0, 0.0), "S is 0"),
        (lambda: locks.switch_break_even(5000, 8, 1.0, 1.0), "N is 5,000, expected at most 1,000"),
        (lambda: locks.delegated(4, 1.0, 0.0, 0.0), r"S \+ h is 0"),
        (lambda: locks.queue_grant([1, 2], [1.0, 2.0, 3.0]), r"n \(2,\), S \(3,\)"),
        (lambda: locks.queue_grant([], 1.0), "n is empty"),
        (lambda: locks.queue_grant("5", 1.0), "n is '5'"),
        (lambda: locks.queue_grant(1, 1e101), "S is 1e.101, .* at most 1e.100"),
        (lambda: locks.queue_grant(10**10, 1.0), "n is 10000000000, .* at most 1,000,000,000"),
        (lambda: locks.solve(lambda n: np.nan, 2, 1.0), "grant"),
        (lambda: locks.solve(lambda n: -1.0, 2, 1.0), "grant"),
        (lambda: locks.queue_grant(0, 1.0), "n is 0"),
        (lambda: locks.queue_grant(1, np.nan), "S is nan"),
        (lambda: locks.ticket_grant(1, 1.0, h_waiter=-1), "h_waiter is -1"),
        (lambda: locks.tas_grant(1, 1.0, nodes=1.5), "nodes is 1.5"),
        (lambda: locks.cohort_grant(1, 1.0, batch=0), "batch is 0"),
        (lambda: locks.sharded_grant(lambda n: 1.0, 0, 5), "m is 0"),
        (lambda: locks.sharded_grant(lambda n: 1.0, 1, -5), "N is -5"),
        (lambda: locks.sharded_grant(lambda n: 0.0, 1, 5), "grant"),
        (lambda: locks.fewest_shards(lambda n: 1.0, 5, 1.0, 2.0), "share is 2.0"),
        (lambda: locks.shared_grant(1, 1.0, 1.1), "w is 1.1"),
        (lambda: locks.delegated(1, 1.0, 1.0, np.inf), "h is inf"),
        (lambda: locks.preempted_waiting(1, 1, 1, -1.0, 1, 1), "on is -1.0"),
        (lambda: locks.switch_break_even(1, 1, 1.0, -1), "S is -1"),
    ],
)
def test_bad_input_is_named(call, named):
    with pytest.raises(ValueError, match=named):
        call()


def test_a_grant_may_be_a_number_first_and_an_array_later():
    mixed = locks.solve(lambda n: 1.0 if n == 1 else np.array([1.0, 2.0]), N=3, Z=1.0)
    each = [locks.solve(lambda n, t=t: 1.0 if n == 1 else t, N=3, Z=1.0).X for t in (1.0, 2.0)]
    assert mixed.X.tolist() == pytest.approx(each)

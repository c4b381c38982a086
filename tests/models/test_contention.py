"""What a line of lock statistics says, against simulations that count as lock_stat does."""

import re

import numpy as np
import protocol
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from quick import one_in

from nummodel.models import contention, networks, queueing
from nummodel.models.contention import Line, after

HOLDS = {
    "constant": lambda rng: 1.0,
    "exponential": lambda rng: rng.expovariate(1.0),
    # A twentieth of the holds takes 19 times as long as the others.
    "long": lambda rng: rng.expovariate(1 / 10) if rng.random() < 0.05 else rng.expovariate(1.9),
    # Half of the time of all holds is in a two-hundredth of them, each of the same length.
    "rare": lambda rng: 100.0 if rng.random() < 0.005 else 0.5025,
}


def even(Z):
    return lambda thread, rng: rng.expovariate(1 / Z)


def uneven(Z):
    """Each thread works three times as long as the one before."""
    return lambda thread, rng: rng.expovariate(3 / (Z * 3**thread))


def bursts(Z):
    """Nine of ten uses follow the one before closely."""
    return lambda thread, rng: rng.expovariate(10 / Z if rng.random() < 0.9 else 1 / (9.1 * Z))


def constant(Z):
    return lambda thread, rng: Z * (0.99 + 0.02 * rng.random())


THINKING = (even, uneven, bursts)


def count(think, hold, n, m=1, h=0.0, **more):
    return Line(*protocol.counted(think, HOLDS[hold], n, h, m, **more), n)


def held(n, S, Z, h=0.0, m=1):
    """Share of the uses that find the lock held, at one of m locks, by the chain of `after`."""
    return contention._closed(n, S, m * Z + (m - 1) * S, h)[0]


def inside(value, ends, slack=0.0):
    return ends[0] * (1 - slack) <= value <= ends[1] * (1 + slack)


# --- the mechanism ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "n, Z, h, m, off",
    [(4, 20, 0, 1, 0.0), (12, 15, 0, 1, 0.0), (8, 20, 1.5, 1, 0.1), (2, 9, 4.0, 1, 0.03),
     (6, 3, 0, 4, 0.05), (8, 20, 1.0, 2, 0.05)],
)  # fmt: skip
def test_found_held_is_what_is_counted(n, Z, h, m, off):
    """Hand-overs take a constant time here; with several locks, waits elsewhere are left out."""
    A, C, wait, *_ = protocol.counted(even(Z), HOLDS["exponential"], n, h, m)
    assert held(n, 1.0, Z, h, m) == pytest.approx(C / A, rel=off + 4 / C**0.5)
    if m == 1 and h == 0:
        waited = queueing.repairman_waiting(n, 1.0, 1, Z) / held(n, 1.0, Z)
        assert waited == pytest.approx(wait / C, rel=off + 6 / C**0.5)


@pytest.mark.parametrize(
    "n, Z", [(2, 0.0), (2, 7.0), (5, 3.0), (9, 0.5), (40, 10.0), (1000, 900.0)]
)
def test_found_held_is_the_utilisation_that_the_others_make(n, Z):
    """Of a closed network with n - 1 customers, by the arrival theorem."""
    others = networks.solve([networks.queue(1.0)], n - 1, Z)
    assert held(n, 1.0, Z) == pytest.approx(others.rho[0], rel=1e-9)


@pytest.mark.parametrize(
    "n, Z, m", [(2, 0.0, 2), (2, 5.0, 4), (5, 3.0, 2), (9, 0.5, 3), (40, 10.0, 8)]
)
def test_found_held_at_one_of_several_locks(n, Z, m):
    """Of m stations with n - 1 customers; too high, as waits elsewhere are left out."""
    others = networks.solve([networks.queue(1 / m)] * m, n - 1, Z)
    ratio = held(n, 1.0, Z, m=m) / others.rho[0]
    assert 1 - 1e-9 < ratio < 1.3
    assert ratio < 1.06 or others.rho[0] > 0.5


@pytest.mark.parametrize("n, Z, h", [(1, 2.0, 1.0), (2, 3.0, 2.0), (4, 2.0, 0.5), (9, 30.0, 4.0)])
def test_found_held_is_that_of_its_markov_chain(n, Z, h):
    """The chain in full: nobody, or j present and a holder who found the lock free or waited."""
    states = [(0, "")] + [(j, kind) for j in range(1, n + 1) for kind in ("first", "waited")]
    place, Q = {state: i for i, state in enumerate(states)}, np.zeros((len(states),) * 2)
    for (j, kind), i in place.items():
        if j < n:
            Q[i, place[j + 1, kind or "first"]] += (n - j) / Z
        if j:
            to = (j - 1, "waited") if j > 1 else (0, "")
            Q[i, place[to]] += 1 / (1 + h * (kind == "waited"))
    np.fill_diagonal(Q, -Q.sum(1))
    balance = np.vstack([Q.T, np.ones(len(Q))])
    pi = np.linalg.lstsq(balance, [*np.zeros(len(Q)), 1.0], rcond=None)[0]
    asking = pi * [n - j for j, _ in states]
    assert held(n, 1.0, Z, h) == pytest.approx(1 - asking[0] / asking.sum(), abs=1e-12)


def test_many_threads_that_seldom_come_find_the_lock_as_it_is_used():
    """A Poisson stream sees time averages."""
    assert held(1000, 1.0, 1000 / 0.3) == pytest.approx(0.3, rel=2e-3)


@pytest.mark.parametrize("n, Z, w", [(4, 20, 0.5), (8, 20, 0.2), (8, 8, 0.5), (16, 20, 0.1)])
def test_uses_that_readers_share(n, Z, w):
    simulated = protocol.readers_writers(n, Z, 1.0, w, found=True)
    assert held(n, w * (2 - w), Z) == pytest.approx(simulated[0], rel=0.1, abs=simulated[1])


def test_what_cannot_be_is_refused():
    with pytest.raises(ValueError, match="contentions are 2 times the acquisitions"):
        after(Line(10, 20, 1.0, 1.0))
    with pytest.raises(ValueError, match="several locks, or several hold"):
        after(Line(100, 10, 1.0, 3.0, elapsed=2.0))
    with pytest.raises(ValueError, match="at least half a mean hold"):
        after(Line(10_000, 1000, 1.0, 100.0))
    with pytest.raises(ValueError, match="2 times as busy"):
        after(Line(100, 10, 1.0, 1.0), hold=2.0)
    with pytest.raises(ValueError, match="acquisitions is nan"):
        after(Line(float("nan"), 10, 1.0, 1.0))
    for wrong, named in (({"c": -3}, "c is -3"), ({"longest": 0.001}, "longest is 0.001")):
        with pytest.raises(ValueError, match=named):
            after(Line(100, 10, 1.0, 1.0, **wrong))
    for change, named in (({"m": 0}, "m is 0"), ({"m": 2.5}, "m is 2.5"), ({"w": 1.5}, "w is 1.5")):
        with pytest.raises(ValueError, match=named):
            after(Line(100, 10, 1.0, 1.0), **change)


@pytest.mark.slow
@settings(max_examples=settings().max_examples * 20 // 100, deadline=None)
@given(
    st.floats(1, 1e9), st.floats(1e-6, 1.0), st.floats(0.5, 1e6), st.floats(1e-9, 1e3),
    st.sampled_from([None, 1.0, 3.0, 1000.0]), st.sampled_from([None, 2.0, 9.0]),
    st.sampled_from([{"m": 3}, {"uses": 0.1}, {"hold": 0.5}, {"w": 0.2}, {"S": 1e-9}]),
)  # fmt: skip
def test_ends_are_in_order_or_the_line_is_refused(C, p, W, S, idle, c, change):
    """Contentions, their share, waits in mean holds, mean hold, and elapsed over held time."""
    hold = C / p * S
    line = Line(C / p, C, C * W * S, hold, idle and idle * hold, c)
    try:
        found = after(line, **change)
        fed = contention.saturation(line)
    except ValueError as error:
        assert re.search("no system of threads|as busy|expected", str(error))
        return
    assert 0 <= found.p[0] <= found.p[1] <= 1 and 0 <= found.saved[0] <= found.saved[1] <= 1
    assert 0 <= found.W[0] <= found.W[1] < np.inf and 0 <= fed[0] <= fed[1] < np.inf


# --- a change, counted before and after --------------------------------------------------------


@pytest.mark.parametrize("h", [0.0, 1.0])
@pytest.mark.parametrize("n, Z", one_in(4, [(4, 4.0), (2, 20.0), (4, 60.0), (12, 20.0)]))
@pytest.mark.parametrize("hold", ["constant", "exponential"])
@pytest.mark.parametrize("think", one_in(3, THINKING), ids=lambda think: think.__name__)
@pytest.mark.slow
def test_the_range_holds_what_is_counted_after_a_change(think, hold, n, Z, h):
    """The slack is for chance: three hundred and more counts are held against their ranges."""
    before = count(think(Z), hold, n, h=h)
    lines = [before]
    if (think, hold) != (bursts, "constant"):
        lines.append(before._replace(elapsed=None, c=None))
    split = count(think(Z), hold, n, m=4, h=h, seed=1)
    rarer = count(think(6 * Z), hold, n, h=h, seed=2)
    rate = rarer.acquisitions / rarer.elapsed * before.elapsed / before.acquisitions
    for then, change in ((split, {"m": 4}), (rarer, {"uses": rate})):
        for found in (after(line, **change) for line in lines):
            assert inside(then.contentions / then.acquisitions, found.p, 2 / then.contentions**0.5)
            assert inside(then.wait / then.contentions, found.W, 2 / then.contentions**0.5)


def test_a_hold_time_that_is_known_narrows_the_range():
    line = Line(10**8, 10**6, 2.0, 20.0)
    free, known = after(line, uses=0.1), after(line, uses=0.1, S=line.hold / line.acquisitions)
    assert free.p[0] < known.p[0] < 0.001 < known.p[1] <= free.p[1]


@pytest.mark.slow
def test_more_knowledge_never_widens_a_range():
    line = count(bursts(20.0), "exponential", 4)
    for c in (2, 4, 16, 64):
        some, more = (after(line._replace(elapsed=None, c=n), m=4).p for n in (None, c))
        assert some[0] <= more[0] <= more[1] <= some[1]


@pytest.mark.parametrize("n, Z", [(2, 30.0), (6, 12.0)])
def test_saturation_of_threads_alike(n, Z):
    """The truth is (Z + S)/S threads."""
    line = count(even(Z), "exponential", n)
    low, high = contention.saturation(line)
    assert low <= (Z + 1) / n <= high


def test_waiters_who_slow_the_holder():
    """Each hold goes on twice as slowly while somebody waits; after the split, few holds do."""
    made = {
        m: protocol.counted(even(20.0), HOLDS["exponential"], 6, m=m, slowed=2.0) for m in (1, 4)
    }
    A, C, W, H, _ = made[4]
    assert H / A < 0.95 * made[1][3] / made[1][0]
    found = after(Line(*made[1][:4]), m=4)
    assert inside(C / A, found.p) and inside(W / C, found.W)


def watched(think, hold, n, size=1.0, **more):
    """The line of a simulation, with its longest hold."""
    longest = []

    def measured(rng):
        longest.append(size * HOLDS[hold](rng))
        return longest[-1]

    counts = protocol.counted(think, measured, n, **more)
    return Line(*counts, n, max(longest))


@pytest.mark.parametrize("n, Z", one_in(4, [(8, 6.67), (2, 2.0), (4, 60.0), (12, 6.0)]))
@pytest.mark.parametrize("hold", HOLDS)
@pytest.mark.parametrize("think", one_in(3, THINKING), ids=lambda think: think.__name__)
def test_the_saved_waiting_is_in_the_range_that_the_longest_hold_leaves(think, hold, n, Z):
    """With and without it; what is left may be beyond an end by 25 %, and three times chance."""
    before = watched(think(Z), hold, n)
    half = watched(think(Z), hold, n, size=0.5, seed=3)
    split = watched(think(Z), hold, n, m=4, seed=1)
    rarer = watched(think(2 * Z + 1), hold, n, seed=2)
    rate = rarer.acquisitions / rarer.elapsed * before.elapsed / before.acquisitions
    for then, change in ((half, {"hold": 0.5}), (split, {"m": 4}), (rarer, {"uses": rate})):
        left = change.get("uses", 1.0) * then.wait / then.acquisitions
        left /= before.wait / before.acquisitions
        slack = 0.25 + 3 / then.contentions**0.5 + 3 / before.contentions**0.5
        for line in (before, before._replace(longest=None), before._replace(elapsed=None, c=None)):
            least, most = after(line, **change).saved
            assert inside(left, (1 - most, 1 - least), slack)


def test_a_longest_hold_narrows_the_range():
    """Eight threads, 20 us between uses, 3 us held: split, halved and rarer, more is saved."""
    line = watched(lambda thread, rng: rng.expovariate(1 / 6.67), "exponential", 8)
    for change in ({"m": 4}, {"hold": 0.5}, {"uses": 0.5}):
        known, open_ = (after(one, **change).saved for one in (line, line._replace(longest=None)))
        assert 0 <= open_[0] <= known[0] + 1e-3 and known[0] > 0.25


def test_where_more_threads_wait_than_are_tried_the_least_is_open():
    """A published line of Linux: all that waited may have been there at once."""
    line = Line(8893984, 203899, 31767.5, 14.11)
    assert after(line, m=4).saved[0] == 0 and after(line, m=4).saved[1] > 0.99


# --- where it fails ---------------------------------------------------------------------------


def test_threads_in_step_miss_the_range_unless_the_elapsed_time_is_known():
    """Constant holds after constant work: two threads avoid each other, until the work grows."""
    before = Line(*protocol.counted(constant(4.0), HOLDS["constant"], 2, h=1.0), 2)
    A, C, _, _, T = protocol.counted(constant(24.0), HOLDS["constant"], 2, h=1.0)
    rate = A / T * before.elapsed / before.acquisitions
    assert C / A > after(before._replace(elapsed=None), uses=rate).p[1]
    assert inside(C / A, after(before, uses=rate).p)


def test_bursts_of_constant_holds_miss_the_range_unless_the_elapsed_time_is_known():
    many = {"uses": 150_000}
    before, then = (count(bursts(20.0), "constant", 2, m=m, h=1.0, **many) for m in (1, 4))
    share = then.contentions / then.acquisitions
    assert share < after(before._replace(elapsed=None), m=4).p[0]
    assert inside(share, after(before, m=4).p)

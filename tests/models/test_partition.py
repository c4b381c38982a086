"""Overcommitted partitions: the protocol simulated and solved, identities, bad input.

`states` and `protocol.overcommitted` know who runs, spins, holds or is away, and no formula.
"""

import numpy as np
import protocol
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csc_matrix, diags, vstack
from scipy.sparse.linalg import spsolve

from nummodel.fits import fit
from nummodel.models import locks, partition

#: Errors published, by u: for rho = 0.01 and x = 1, rho = 0.1 and x = 1, rho = 0.1 and x = 4.
CASES = [(0.01, 1.0), (0.1, 1.0), (0.1, 4.0)]
ERRORS = {0.1: [-0.02, -0.17, -0.12], 1: [0.0, -0.05, -0.04], 10: [0.0, -0.01, -0.01]}


def states(N, x, S, rate):
    """What `protocol.overcommitted` gives, solved: each comes back by itself, running for 1.

    A state is how many run and are free, spin and run, spin and are away, and the holder: none,
    running or away.
    """
    every = [
        (f, s, w, h)
        for h in range(3)
        for f in range(N + 1)
        for s in range(N + 1 - f)
        for w in range(N + 1 - f - s)
        if f + s + w + (h > 0) <= N and not (h == 0 and s)
    ]
    at = {state: i for i, state in enumerate(every)}
    rates, where = [], []
    for f, s, w, h in every:
        away = N - f - s - w - (h > 0)
        moves = [
            (f, (f - 1, s, w, h)),
            (away / x, (f + 1, s, w, h)),
            (s, (f, s - 1, w + 1, h)),
            (w / x, (f, s + 1, w - 1, h)),
            (f * rate, (f - 1, s + 1, w, h)),
            ((h == 1), (f, s, w, 2)),
            ((h == 2) / x, (f, s, w, 1)),
            ((h == 1) / S, (f + 1, s, w, 0)),
        ]
        for often, (f2, s2, w2, h2) in moves:
            if often:
                taken = h2 == 0 and s2 > 0
                rates.append(often)
                where.append((at[f2, s2 - taken, w2, 1 if taken else h2], at[f, s, w, h]))
    into = csc_matrix((rates, np.transpose(where)), shape=(len(at), len(at)))
    balance = into - diags(np.asarray(into.sum(axis=0)).ravel())
    p = spsolve(vstack([np.ones((1, len(at))), balance[1:]]).tocsc(), np.eye(len(at), 1).ravel())
    free, running, waiting, _ = np.transpose(every)
    return rate * float(p @ free), float(p @ (running + waiting))


def system(N, x, u, rho):
    """S and the rate at which each asks such that u and rho come about, nearly."""
    lamda = u * N / x
    return {"S": rho / lamda / (1 + x), "rate": lamda / N * (1 + x)}


def off(N, x, S, lamda, Q):
    """The error of `spin`, where processors run for 1."""
    return float(partition.spin(N, lamda, N / (1 + x), S, 1.0) * N / Q - 1)


@pytest.mark.parametrize("u", ERRORS)
def test_the_published_errors(u):
    for (rho, x), error in zip(CASES, ERRORS[u], strict=True):
        given = system(16, x, u, rho)
        found = off(16, x, given["S"], *states(16, x, **given))
        assert found == pytest.approx(error, abs=0.005)


@pytest.mark.parametrize("N, x", [(2, 1.0), (5, 3.0), (12, 0.3), (16, 7.0)])
@pytest.mark.parametrize("u", [0.01, 1.0, 30.0])
def test_with_a_short_hold_it_is_exact(N, x, u):
    given = system(N, x, u, 1e-6)
    assert off(N, x, given["S"], *states(N, x, **given)) == pytest.approx(0, abs=2e-4)


def test_powers():
    """Of lamda and of x: two where few ask during an absence, one where all others do."""

    def power(u, x, by_lamda=1.0, by_x=1.0):
        lamda, S, N = u * 12 / x, 1e-6, 12
        one, other = (
            states(N, x * b, S, lamda / N * (1 + x * b) * a)[1]
            for a, b in ((1, 1), (by_lamda, by_x))
        )
        return np.log(other / one) / np.log(by_lamda * by_x)

    for x in (0.5, 2.0, 5.0):
        assert power(1e-3, x, by_lamda=1.25) == pytest.approx(2, abs=0.003)
        assert 2.0 < power(1e-3, x, by_x=1.25) < 2.2
        assert power(100, x, by_lamda=1.25) == pytest.approx(1, abs=0.02)
        assert power(100, x, by_x=1.25) == pytest.approx(1, abs=0.02)


def test_states_are_those_of_the_protocol():
    given = system(12, 3.0, 1.0, 0.1)
    lamda, Q, half = protocol.overcommitted(12, 3, in_turn=False, **given)
    exact = states(12, 3.0, **given)
    assert half < 0.2 * Q
    assert lamda == pytest.approx(exact[0], rel=0.01)
    assert exact[1] == pytest.approx(Q, abs=half)


@pytest.mark.parametrize("u, error", [(0.3, 0.13), (1.0, 0.01)])
def test_processors_shared_in_turn(u, error):
    given = system(12, 3.0, u, 0.1)
    lamda, Q, half = protocol.overcommitted(12, 3, in_turn=True, **given)
    assert half < 0.2 * Q
    found = off(12, 3.0, given["S"], lamda, Q)
    assert found == pytest.approx(error, abs=0.01 + (1 + error) * half / Q)


# --- identities, fits, bad input --------------------------------------------------------------


@given(
    N=st.integers(2, 64),
    share=st.floats(0.0, 1.0),
    g=st.floats(0, 5),
    logs=st.tuples(st.floats(-5, -2), st.floats(-8, -5), st.floats(-1, 2)),
)
def test_a_capped_partition_uses_its_cap(N, share, g, logs):
    c, (D0, S, v) = 1 + share * (N - 1), (10.0**log for log in logs)
    given = {"N": N, "c": c, "D0": D0, "g": g, "S": S, "v": v}
    spun = g * (N - 1) * v * S * (1 - c / N)  # processor time that a transaction loses
    if v * S * N > (1 + 1e-6) * (D0 + spun):  # the lock, held for N/c times S, is the limit
        for law in (partition.throughput, partition.spin_at_cap):
            with pytest.raises(ValueError, match=r"^v X S N/c, the lock's utilisation"):
                law(**given)
        return
    if v * S * N > (1 - 1e-6) * (D0 + spun):
        return  # on the edge, which rounding moves
    X = partition.throughput(**given) * c / N
    spinning = partition.spin_at_cap(**given) * N
    assert X * D0 + g * spinning * c / N == pytest.approx(c)
    assert spinning == pytest.approx(N * partition.spin(N, v * X, c, S, 0.0))


def test_seldom_and_often():
    """All others wait for whoever is away; or, up to who is away itself, M/G/1 with breakdowns."""
    N, lamda, x, S = 1000, 1e2, 4.0, 1e-9
    seldom = partition.spin(N, lamda, N / (1 + x), S, 1e-9)
    assert seldom == pytest.approx((N - 1) / N * lamda * S * x)
    on = 1e-7
    often = partition.spin(N, lamda, N / (1 + x), S, 1 / on)
    W = locks.preempted_waiting(lamda, S * 1e-3, 1.0, on * 1e3, x * on * 1e3, 1.0)
    others = 2 * (1 + x) / (2 + x)
    assert often == pytest.approx(others * lamda * W / N, rel=0.01)


@pytest.mark.parametrize("nu", [0.0, 1e3, 1e6])
@pytest.mark.parametrize("c", [3, 8, 31.9])
def test_a_share_is_no_more_than_one_up_to_a_full_lock(nu, c):
    """And above there is none, as the lock cannot serve so many."""
    N, S = 32, 1e-6
    most = c / (N * S)
    assert 0 <= partition.spin(N, most, c, S, nu) <= 1 - 1 / N
    for lamda in (1.001 * most, [1.0, 1e9 * most]):
        with pytest.raises(ValueError, match=r"^lamda S N/c, the lock's utilisation"):
            partition.spin(N, lamda, c, S, nu)


def test_a_cap_that_the_lock_does_not_let_them_reach_is_refused():
    with pytest.raises(ValueError, match=r"^v X S N/c, .* is 1200, .* at most 1"):
        partition.spin_at_cap(N=12, c=6, D0=1e-3, g=0, S=1e-6, v=1e5)


GOOD = {"N": 12, "c": 6, "D0": 1e-3, "g": 2.0, "S": 1e-6, "v": 10.0, "nu": 1e3}


@pytest.mark.parametrize("law", [partition.throughput, partition.spin_at_cap, partition.spin])
@pytest.mark.parametrize(
    "name, value",
    [
        ("N", 0.5),
        ("N", np.nan),
        ("c", -1.0),
        ("S", -1e-9),
        ("nu", -1.0),
        ("lamda", -1.0),
        ("D0", -1),
        ("v", -1),
    ],
)
def test_bad_input_is_named(law, name, value):
    values = {n: (GOOD | {"lamda": 1e3})[n] for n in law.quantities}
    if name in values:
        with pytest.raises(ValueError, match=f"^{name} is"):
            law(**values | {name: value})
        with pytest.raises(ValueError, match=f"^{name} is"):
            law(**values | {name: [values[name], value]})


def test_fits_get_their_quantities_back():
    """Checked arguments or not: laws are searched on meshes, and joined."""
    N = np.array([12.0, 18, 24, 30])
    runs = {"N": N, "lamda": 4e4 - 5e2 * N}
    runs["spin"] = partition.spin(N, runs["lamda"], 6.05, 1.3e-6, 400.0)
    alone = fit(partition.spin, runs, "log", start={"S": 1e-6, "nu": 100.0}, c=6.05)
    assert alone.estimate == pytest.approx({"S": 1.3e-6, "nu": 400.0}, rel=1e-6)
    truth = {"D0": 1.3e-3, "g": 2.0, "S": 1.3e-6}
    known = {"c": 6.05, "v": 9.94}
    laws = {law.result: law for law in (partition.throughput, partition.spin_at_cap)}
    data = {"N": N} | {n: law(N=N, **truth, **known) for n, law in laws.items()}
    start = {"D0": 1e-3, "g": 1.0, "S": 1e-7}
    assert fit(laws, data, start=start, **known).estimate == pytest.approx(truth, rel=1e-6)

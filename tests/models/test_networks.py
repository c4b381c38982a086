"""Networks: other tools' figures, 60-digit arithmetic, bounds, identities and limits."""

import sys
from pathlib import Path

import exact
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference import CASES, KNOWN_WRONG

from nummodel.models import _convolution, locks, networks, operational, queueing
from nummodel.models.networks import delay, load_dependent, queue, schweitzer, solve
from nummodel.reports import runs

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))
import peers

MS32 = [queue(1.0, servers=32), queue(0.04), queue(0.03)]


def of_one_class(case):
    """Closed network of one class: D, or S and V; R and X as printed, per visit of a station."""
    given = case["inputs"]
    S = np.atleast_1d(given.get("D", given.get("L", given.get("S"))))
    V = np.array(given.get("V", np.ones(len(S))))
    m = np.atleast_1d(given.get("m", np.ones(len(S), int)))
    stations = [queue(d, c) for d, c in zip(S * V, m, strict=True)]
    found = solve(stations, given["N"], given.get("Z", 0.0))
    each = {"U": found.rho, "Q": found.Q, "R": found.R_k / V, "X": found.X * V}
    if np.size(case["outputs"].get("X", V)) == 1:
        each["X"] = found.X
    return each | {"Xsys": found.X, "Rsys": found.R}


def load_dependent_stations(case):
    """Service times S(n) with n present; U is left out: theirs is the time a station is busy."""
    V = np.array(case["inputs"]["V"])
    times = [np.array(S) for S in case["inputs"]["Sld"]]
    stations = [load_dependent(S[0] * v, S[0] / S) for S, v in zip(times, V, strict=True)]
    found = solve(stations, case["inputs"]["N"])
    return {"Q": found.Q, "R": found.R_k / V, "X": found.X * V}


def several(case, solver=solve):
    """Closed network of several classes, rows classes as in the tools of S and V."""
    given = case["inputs"]
    V = np.array(given.get("V", 1.0))
    if "L" in given:  # stations first
        D, turn = np.array(given["L"]), lambda x: x
    else:
        D, turn = (np.array(given["S"]) * V).T, lambda x: x.T
    found = solver([queue(d) for d in D], tuple(given["N"]), given.get("Z", 0.0))
    assert found.exact == (solver is solve)
    X = found.X if "L" in given or "Throughputc" in case["outputs"] else found.X[:, None] * V
    return {
        "U": turn(found.rho),
        "Q": turn(found.Q),
        "R": turn(found.R_k) / V,
        "X": X,
        "C": found.R + given.get("Z", 0.0),
        "Throughputc": found.X,
        "Wc": found.R,
        "Lck": turn(found.Q),
        "ROck": turn(found.rho),
    }


def approximately(case):
    return several(case, schweitzer)


def approximately_one(case):
    given = case["inputs"]
    D = given.get("D", given.get("S"))
    found = schweitzer([queue([d]) for d in D], (given["N"],), given["Z"])
    return {
        "U": found.rho[:, 0],
        "Q": found.Q[:, 0],
        "R": found.R_k[:, 0],
        "Xsys": found.X[0],
        "Rsys": found.R[0],
        "X_approx": found.X[0],
        "R_approx": found.R[0],
    }


def both_ways(case):
    found = solve([queue(d) for d in case["inputs"]["D"]], 20, case["inputs"]["Z"])
    return approximately_one(case) | {"X_exact": found.X, "R_exact": found.R}


def repairman(case):
    given = case["inputs"]
    D = 1 / given["mu"]
    station = queue(D, given["c"]) if "c" in given else delay(D)
    found = solve([station], given["K"], Z=1 / given["lambda"])
    Lq = found.Q[0] - found.X * D
    return {
        "RO": found.rho[0],
        "L": found.Q[0],
        "Lq": Lq,
        "W": found.R,
        "Wq": Lq / found.X,
        "Throughput": found.X,
    }


def bounds(case):
    D, N, Z = (case["inputs"].get(name, 0.0) for name in ("D", "N", "Z"))
    D = np.array(D or case["inputs"]["S"])
    load = {"N": N, "D": D.sum(), "Z": Z}
    top = {"D_max": D.max()}
    X_max = operational.asymptotic_throughput_max(**load, **top)
    return dict.fromkeys(("Xu", "aba_Xu", "aba_up"), X_max) | {
        "Rl": operational.interactive_response(N=N, X=X_max, Z=Z),
        "bsb_Xl": operational.balanced_throughput_min(**load, **top),
        "bsb_Xu": operational.balanced_throughput_max(**load, **top, D_mean=D.mean()),
    }


#: How each case is computed, the relative tolerance, and which of its figures are left out.
COVERED = {
    "cmva_jain_3.42": (of_one_class, 1e-9, ""),
    "cmva_lazowska_p117": (of_one_class, 1e-9, ""),
    "cmva_bolch_8.3": (of_one_class, 1e-9, "G"),
    "cmva_5st_N10000": (of_one_class, 1e-9, ""),
    # The peer's U is the time any of the servers is busy.
    "cmva_conditional_m8_N10": (of_one_class, 1e-9, "U"),
    "cmva_conditional_m8_N50": (of_one_class, 1e-9, "U"),
    "cmva_conditional_m8_N90": (of_one_class, 1e-9, "U"),
    "closed_ms32_N10": (of_one_class, 1e-9, ""),
    # The peer's Q and R of the 32-server station are wrong: its numbers do not add up to 64.
    "closed_ms32_N64": (of_one_class, 1e-9, "Q R"),
    "mvald_bolch_8.7": (load_dependent_stations, 1e-9, "U"),
    "mcmva_lazowska_p142": (several, 1e-9, ""),
    "mcmva_2x3_N10_15_Z": (several, 1e-9, ""),
    "mcmva_2x5_N100_100": (several, 1e-9, ""),
    "r_mccn_lazowska_p142_method0": (several, 1e-9, ""),
    "line_mva_2x3": (several, 1e-9, ""),
    "line_mva1_lazowska": (of_one_class, 1e-9, "lG"),
    "line_mvald_ms32_N10": (of_one_class, 1e-9, "stable"),
    # Iterations stop where their tools stop: at 1e-5 and 1e-4 of a queue length.
    "mc_bs_lazowska": (approximately, 1e-4, ""),
    "line_bs_2x3": (approximately, 1e-4, ""),
    "r_mccn_lazowska_p142_method1": (approximately, 1e-4, ""),
    "amva_schweitzer_lazowska_p117": (approximately_one, 1e-4, ""),
    "pdq_closed_lazowska_N20": (both_ways, 1e-4, ""),
    "aba_bolch_9.6": (bounds, 1e-9, "Xl Ru"),
    "aba_bsb_tableIV_N20": (bounds, 1e-9, "aba_Xl"),
    "line_bounds_N20": (bounds, 1e-9, "aba_lo gsb_lo gsb_up"),
    "r_mmckk": (repairman, 1e-9, "Pn"),
    "r_mmckk_c4_K20": (repairman, 1e-9, ""),
    "r_mmckk_c4_K64": (repairman, 1e-9, ""),
    "r_mminfkk": (repairman, 1e-9, ""),
    # The peer gives seven digits.
    "pdq_aws_tomcat_readme": (of_one_class, 2e-8, ""),
} | {name: (of_one_class, 1e-9, "") for name in CASES if name.startswith("arb_")}


@pytest.mark.parametrize("name", COVERED)
def test_figures_of_other_tools(name):
    compute, rtol, left_out = COVERED[name]
    found = compute(CASES[name])
    for key, printed in CASES[name]["outputs"].items():
        if key not in left_out.split():
            expected = np.squeeze(printed)
            assert np.squeeze(found[key]) == pytest.approx(expected, rel=rtol, abs=0), key


@pytest.mark.parametrize(
    "case", [c for c in KNOWN_WRONG if {"N", "m"} <= set(c["inputs"])], ids=lambda c: c["name"]
)
def test_none_of_the_wrong_figures_of_other_tools(case):
    given, wrong = case["inputs"], np.ravel(case["outputs"]["X"])[0]
    demands = given.get("D", [given.get("S")])
    servers = np.atleast_1d(given["m"])
    stations = [queue(d, c) for d, c in zip(demands, servers, strict=True)]
    found = solve(stations, given["N"], given.get("Z", 0.0))
    X, Q = exact.solve(stations, given["N"], given.get("Z", 0.0))
    assert found.X == pytest.approx(X[-1], rel=1e-12, abs=0)
    assert found.Q == pytest.approx(Q[:, -1], rel=1e-12, abs=0)
    assert abs(wrong / found.X - 1) > 0.1


@pytest.mark.parametrize("seed", range(40))
def test_random_networks_against_60_digits(seed):
    assert exact.worst_error(*exact.random_network(np.random.default_rng(seed), 80)) < 1e-12


@pytest.mark.parametrize(
    "stations, N, Z",
    [
        ([queue(1.0)], 300, 1e6),
        ([queue(1.0), queue(1.0), queue(1.0)], 200, 0.0),
        ([queue(1.0)] * 12, 60, 0.0),
        ([queue(1e-9), queue(1.0, servers=3), queue(1e9)], 60, 1e5),
        ([load_dependent(1.0, 1 / (1 + 0.05 * np.arange(300))), queue(0.1)], 300, 20.0),
        ([load_dependent(1.0, [1.0] * 9 + [0.01])] * 2, 150, 50.0),
        ([load_dependent(1.0, [0.01] * 9 + [100.0] * 20 + [1.0]), queue(0.9)], 150, 1.0),
        ([queue(1.0, servers=200), queue(0.01)], 250, 1e-3),
        ([queue(1.0, servers=5)], 90, 0.0),
    ],
)
def test_hard_networks_against_60_digits(stations, N, Z):
    assert exact.worst_error(stations, N, Z) < 1e-12


@pytest.mark.parametrize("N", [200, 1_000, 100_000, 1_000_000])
def test_32_servers_and_many_customers(N):
    """Once the disk is full, the others are those of an open system at its rate."""
    found = solve(MS32, N)
    R = [queueing.mmc_response(25.0, 1.0, 32), queueing.mm1_response(25.0, 0.03)]
    assert found.X == pytest.approx(25.0, rel=1e-12)
    assert found.Q[[0, 2]] == pytest.approx(25.0 * np.array(R), rel=1e-9)
    assert found.Q.sum() == pytest.approx(N, rel=1e-9)
    assert found.R == pytest.approx(N / 25.0, rel=1e-9)


@pytest.mark.parametrize("N", [1_000_000, [3, 999_999, 1_000_000, 20_000]])
def test_a_million_customers_who_mostly_think(N):
    """X solves a quadratic when a single queue is far from full: R = D/(1 - X D), nearly."""
    found = solve([queue(1.0)], N, Z=1e7)
    assert found.X * (found.R + 1e7) == pytest.approx(np.asarray(N), rel=1e-9)
    assert found.R == pytest.approx(1 / (1 - found.X), rel=1e-5)


def test_ten_thousand_servers():
    """Rarely busy all at once, they are a delay."""
    found, free = (solve([s, queue(1.2e-4)], [100, 9000]) for s in (queue(1.0, 10_000), delay(1.0)))
    assert found.X == pytest.approx(free.X, rel=1e-9)
    assert found.Q == pytest.approx(free.Q, rel=1e-9)


demands = st.floats(1e-6, 1e3) | st.just(0.0)
stations_of_all_kinds = st.lists(
    st.builds(queue, demands, st.integers(1, 40))
    | st.builds(delay, demands)
    | st.builds(load_dependent, demands, st.lists(st.floats(0.1, 10), min_size=1, max_size=12)),
    min_size=1,
    max_size=6,
)
times = st.floats(1e-3, 1e3)


@given(stations_of_all_kinds, st.lists(st.integers(0, 200), min_size=1, max_size=5), times)
def test_identities(stations, N, Z):
    found = solve(stations, N, Z)
    N = np.array(N)
    assert found.X * Z + found.Q.sum(0) == pytest.approx(N, rel=1e-9)
    there = N > 0
    assert (found.X * (found.R + Z))[there] == pytest.approx(N[there], rel=1e-9)
    assert found.Q[:, there] == pytest.approx((found.X * found.R_k)[:, there], rel=1e-12)
    assert (found.X[~there] == 0).all() and np.isnan(found.R[~there]).all()
    again = solve(stations[::-1], N, Z)
    assert again.X == pytest.approx(found.X, rel=1e-12)
    assert again.Q[::-1] == pytest.approx(found.Q, rel=1e-12)
    assert solve(stations, int(N[0]), Z).X == pytest.approx(found.X[0], rel=1e-12)


@given(st.lists(st.tuples(times, st.integers(1, 9)), min_size=1, max_size=4), times)
def test_the_unit_of_time_does_not_matter(stations, Z):
    """And capacities min(n, c) are c servers."""
    seconds = solve([queue(D, c) for D, c in stations], range(50), Z)
    varying = [load_dependent(60 * D, np.minimum(np.arange(1, 20), c)) for D, c in stations]
    minutes = solve(varying, range(50), 60 * Z)
    assert 60 * minutes.X == pytest.approx(seconds.X, rel=1e-12)
    assert minutes.Q == pytest.approx(seconds.Q, rel=1e-12)
    assert minutes.rho == pytest.approx(seconds.rho, rel=1e-12)


@given(st.lists(times, min_size=1, max_size=6), st.floats(0, 1e3))
def test_bounds_hold(D, Z):
    N = np.arange(1, 60)
    found = solve([queue(d) for d in D], N, Z)
    load = {"N": N, "D": sum(D), "Z": Z}
    top, mean = {"D_max": max(D)}, {"D_mean": sum(D) / len(D)}
    lows = (operational.balanced_throughput_min(**load, **top),)
    highs = (
        operational.balanced_throughput_max(**load, **top, **mean),
        operational.asymptotic_throughput_max(**load, **top),
    )
    for low, higher in zip((*lows, found.X, *highs), (*lows[1:], found.X, *highs), strict=False):
        assert (low <= higher * (1 + 1e-12)).all()


@given(
    st.lists(st.tuples(times, times), min_size=1, max_size=4), st.integers(0, 9), st.integers(1, 9)
)
def test_classes_that_are_alike_are_one_class(D, first, second):
    one = solve([queue(d) for d, _ in D], first + second, Z=2.0)
    two = solve([queue([d, d]) for d, _ in D], (first, second), Z=2.0)
    assert two.X.sum() == pytest.approx(one.X, rel=1e-9)
    assert two.Q.sum(1) == pytest.approx(one.Q, rel=1e-9)
    different = solve([queue(d) for d in D], (first, second), Z=[1.0, 2.0])
    mirrored = solve([queue(d[::-1]) for d in D], (second, first), Z=[2.0, 1.0])
    assert different.X == pytest.approx(mirrored.X[::-1], rel=1e-9)
    assert different.Q.sum(0) + different.X * [1, 2] == pytest.approx([first, second], rel=1e-9)


def test_three_classes_of_which_one_does_not_meet_the_others():
    found = solve([queue([1, 2, 0]), queue([2, 1, 0]), queue([0, 0, 3])], (4, 6, 5), Z=[0, 1, 2])
    two = solve([queue([1, 2]), queue([2, 1])], (4, 6), Z=[0, 1])
    one = solve([queue(3.0)], 5, Z=2.0)
    assert found.X == pytest.approx([*two.X, one.X], rel=1e-12)
    assert found.Q[2] == pytest.approx([0, 0, *one.Q], rel=1e-12)


def test_a_delay_station_is_think_time():
    one = solve([queue([1.0, 2.0]), delay([3.0, 4.0])], (5, 6))
    assert one.X == pytest.approx(solve([queue([1.0, 2.0])], (5, 6), Z=[3.0, 4.0]).X, rel=1e-12)
    assert solve([queue(1.0), delay(3.0)], 5).X == pytest.approx(
        solve([queue(1.0)], 5, Z=3.0).X, rel=1e-12
    )


def test_too_many_populations_are_approximated_and_it_is_said():
    stations = [queue([1.0, 2.0]), queue([2.0, 1.0])]
    assert not solve(stations, (10**6, 10**6), Z=5.0).exact
    guess = schweitzer(stations, (100, 100), Z=5.0)
    truth = solve(stations, (100, 100), Z=5.0)
    assert truth.exact and guess.X == pytest.approx(truth.X, rel=0.05)


def test_nothing_waits_alone_and_a_full_bottleneck_sets_the_pace():
    found = solve(MS32, [1, 10**6], Z=7.0)
    assert found.R[0] == pytest.approx(1.07, rel=1e-12)
    assert found.X[1] == pytest.approx(25.0, rel=1e-12)
    assert found.rho[:, 1] == pytest.approx([25 / 32, 1.0, 0.75], rel=1e-9)


@pytest.mark.parametrize(
    "call, name",
    [
        (lambda: queue(-1.0), "D is"),
        (lambda: queue(float("nan")), "D is"),
        (lambda: queue([]), "D is"),
        (lambda: queue(1.0, servers=0), "servers is"),
        (lambda: queue(1.0, servers=1.5), "servers is"),
        (lambda: queue(1.0, servers=float("nan")), "servers is"),
        (lambda: load_dependent(1.0, []), "capacity is"),
        (lambda: load_dependent(1.0, [1.0, 0.0]), "capacity is"),
        (lambda: load_dependent(1.0, [1.0, np.nan]), "capacity is"),
        (lambda: solve([], 3), "stations"),
        (lambda: solve([], 3, Z=1.0), "stations"),
        (lambda: solve([queue(0.0)], 3), "stations"),
        (lambda: solve([queue(1.0)], 2.5), "N is"),
        (lambda: solve([queue(1.0)], -1), "N is"),
        (lambda: solve([queue(1.0)], [1, np.nan]), "N is"),
        (lambda: solve([queue(1.0)], []), "N is"),
        (lambda: solve([queue(1.0)], 1, Z=-1.0), "Z is"),
        (lambda: solve([queue(1.0)], 1, Z=[1.0, 2.0]), "Z is"),
        (lambda: solve([queue(1.0)], 1, Z=np.inf), "Z is"),
        (lambda: solve([queue([1.0, 2.0])], 3), "N is"),
        (lambda: solve([queue([1.0, 2.0])], (1, 2, 3)), "N is"),
        (lambda: solve([queue([1.0, 2.0]), queue(1.0)], (1, 2)), "stations"),
        (lambda: solve([queue([1.0, 2.0], servers=2)], (1, 2)), "stations"),
        (lambda: solve([queue([1.0, 0.0])], (1, 2)), "stations"),
        (lambda: schweitzer([queue(1.0)], (1,)), "stations"),
    ],
)
def test_bad_input_is_named(call, name):
    with pytest.raises(ValueError, match=name):
        call()


@pytest.mark.parametrize("N", [200_000, 1_000_000, [199_000, 200_000]])
def test_a_station_that_is_full_for_good_sets_the_pace(N):
    """Nobody but some who think is elsewhere, whatever happened on the way to so many."""
    slower = load_dependent(1.0, 1 / (1 + 0.01 * np.arange(5000)))
    assert solve([slower], 5000, Z=100.0).X == pytest.approx(1 / 50.98, rel=1e-3)
    assert solve([slower, queue(0.1)], N, Z=100.0).X == pytest.approx(1 / 50.99, rel=1e-9)
    tenth = load_dependent(0.1, np.maximum(0.1, 1 - np.arange(1000) / 1000))
    found = solve([tenth, queue(0.15)], N, Z=1000.0)
    assert found.X == pytest.approx(1.0, rel=1e-9)
    assert found.Q[1] == pytest.approx(0.15 / 0.85, rel=1e-9)


@pytest.mark.parametrize(
    "slope, N, Z",
    [
        (1e-5, 20_000, 5000.0),
        (1e-4, 20_000, 5000.0),  # all are stuck, and nobody knows a rate at which they would be
        (1e-3, 6000, 7500.0),  # all are stuck, or hardly any
        (1e-3, 6000, 7000.0),
        (1e-2, 3000, 3100.0),
    ],
)
def test_capacity_that_falls_over_the_whole_length(slope, N, Z):
    """Against the recursion of the machine repairman, which knows no series."""
    slower = load_dependent(1.0, 1 / (1 + slope * np.arange(N)))
    some = [1, N // 3, N - 1, N]
    truth = locks.solve(lambda n: 1 + slope * (n - 1), some, Z)
    for asked in (some, N):
        found = solve([slower], asked, Z)
        first = -np.size(asked)
        assert np.ravel(found.X) == pytest.approx(truth.X[first:], rel=1e-9)
        assert np.ravel(found.Q) == pytest.approx(truth.Q[first:], rel=1e-9)


@pytest.mark.parametrize("N", [4800, [200, 4800, 6000]])
def test_a_collapse_among_other_stations(N):
    """A delay is think time, wherever it is; and several queues are one that is as fast as all."""
    slower = load_dependent(1.0, 1 / (1 + 1e-3 * np.arange(6000)))
    others = [queue(0.4, servers=2), queue(0.3)]
    found = solve([slower, *others, delay(3000.0)], N, Z=3000.0)
    again = solve([others[1], slower, others[0]], N, Z=6000.0)
    assert found.X == pytest.approx(again.X, rel=1e-9)
    assert found.Q[0] == pytest.approx(again.Q[1], rel=1e-9)
    assert found.Q[2] == pytest.approx(again.Q[0], rel=1e-9)
    rest = solve(others, np.arange(1, 6001), Z=6000.0).X
    grants = np.concatenate([[1.0], 1 + 1e-3 * np.arange(1, 6000)])
    for i, n in enumerate(np.ravel(N)):
        steps = np.log(grants[:n]) + np.log(rest[:n][::-1])
        weights = np.concatenate([[0.0], np.cumsum(steps)])
        p = np.exp(weights - weights.max())
        assert np.ravel(found.X)[i] == pytest.approx(p[1:] @ (1 / grants[:n]) / p.sum(), rel=1e-9)


@pytest.mark.parametrize("N", [100_000, 1_000_000])
def test_fifty_stations_of_many_servers(N):
    """One is full: the others are those of an open network at its rate."""
    rng = np.random.default_rng(1)
    stations = [queue(D, 16 + k) for k, D in enumerate(10 ** rng.uniform(-1, 0.5, 50))]
    full = min(s.capacity.max() / s.D for s in stations)
    found = solve(stations, N, Z=10.0)
    assert found.X == pytest.approx(full, rel=1e-12)
    others = found.Q < N / 2
    assert others.sum() == 49
    R = [queueing.mmc_response(full, s.D, len(s.capacity)) for s in stations]
    assert found.Q[others] == pytest.approx(full * np.array(R)[others], rel=1e-9)


def test_fifty_stations_that_are_alike():
    """Balanced: all the customers are spread evenly, whoever is kept apart in the computation."""
    stations = [load_dependent(1.0, [1.0, 2.0, 3.0, 1.5])] * 12
    for N in (40, [7, 40, 2000]):
        found = solve(stations, N)
        assert found.Q == pytest.approx(np.broadcast_to(np.array(N) / 12, found.Q.shape))


@pytest.mark.parametrize("N", [7, [1, 7]])
def test_a_demand_of_nearly_nothing_holds_nobody_up(N):
    found = solve([queue(1e-220), queue(2.0), load_dependent(1e-219, [2.0, 1e-3])], N, Z=1.0)
    plain = solve([queue(2.0)], N, Z=1.0)
    assert found.X == pytest.approx(plain.X, rel=1e-12)
    R_k = found.R_k.reshape(3, -1)[[0, 2], -1]
    assert R_k == pytest.approx([1e-220, 5e-220], rel=1e-12, abs=0)
    slow = solve([queue(1e-200), queue(1e99)], 2, Z=1.0)
    assert slow.X == pytest.approx(1e-99, abs=0)
    assert slow.R_k == pytest.approx([1e-200, 2e99], rel=1e-12, abs=0)


def test_a_station_hardly_visited_is_slow_for_those_who_meet_there():
    """Beside a queue that takes a second, n are there with the weight D 0.1^(n-1), and X is 1."""
    found = solve([load_dependent(1e-101, [1.0, 1e-100]), queue(1.0)], 3)
    assert found.X == pytest.approx(1.0, rel=1e-12)
    assert found.R_k[0] == pytest.approx(1e-101 + 2e-102 + 3e-103, rel=1e-12, abs=0)


@pytest.mark.parametrize(
    "wrong, named",
    [
        (
            lambda: solve([queue(1e-200), queue(1e200)], 2, 1),
            "D is 1e.200, expected .* at most 1e.100",
        ),
        (lambda: solve([queue(1.0)], 10**9), "N is 1000000000, expected .* at most 10,000,000"),
        (
            lambda: solve([queue(16.0 + k, 16 + k) for k in range(50)], 10**7, 5.0),
            "N is 10,000,000, exp",
        ),
        (
            lambda: solve([load_dependent(1.0, 1 / np.arange(1.0, 200_000))] * 2, 10**6, 5.0),
            "N is 1,000,000, expected at most",
        ),
        (lambda: load_dependent(1.0, [1.0, 1e-200]), "capacity is"),
        (lambda: solve([queue(1.0)], [[1, 2], [3]]), "N is"),
    ],
)
def test_what_floats_or_patience_do_not_hold_is_refused(wrong, named):
    with pytest.raises(ValueError, match=named):
        wrong()


def test_an_approximation_does_not_depend_on_units_of_time():
    """Each class may have its own, however long: demands of nothing settle, too."""
    D, N, Z = np.array([[0.1, 0.3], [0.2, 0.05], [0.0, 0.1]]), (10, 15), np.array([1.0, 0.0])
    plain = schweitzer([queue(d) for d in D], N, Z)
    unit = np.array([1e-290, 1e90])
    other = schweitzer([queue(d * unit) for d in D], N, Z * unit)
    assert other.X * unit == pytest.approx(plain.X, rel=1e-12)
    assert other.Q == pytest.approx(plain.Q, rel=1e-12)
    with pytest.raises(ArithmeticError, match="add up to N"):  # a rate that floats do not hold
        schweitzer([delay([5e-324, 1e33]), queue([5e-324, 0.03])], (40, 560))


def test_an_approximation_says_so_where_it_is_shown():
    stations = [queue([1.0, 2.0]), queue([2.0, 1.0])]
    assert "exact=True" in repr(solve(stations, (3, 4)))
    for found in (solve(stations, (10**6, 10**6), Z=5.0), schweitzer(stations, (3, 4))):
        assert "exact=False" in repr(found)


def test_the_notebook_cites_what_the_tools_printed():
    (path,) = (p for p in runs.notebooks() if p.stem.startswith("03"))
    for case in KNOWN_WRONG:
        if {"N", "m"} <= set(case["inputs"]):
            assert f"{np.ravel(case['outputs']['X'])[0]:.6f}" in path.read_text()


def test_a_figure_that_contradicts_itself_is_not_given(monkeypatch):
    wrong = networks._convolution.solve

    def off(*args):
        X, Q = wrong(*args)
        return X * (1 + 1e-6), Q

    monkeypatch.setattr(networks._convolution, "solve", off)
    with pytest.raises(ArithmeticError, match="do not add up"):
        solve(MS32, 50, Z=1.0)


def test_what_is_timed_beside_other_tools():
    """The work of `make bench`, ours: published figures, then the same for one as for many."""
    printed = CASES["cmva_5st_N10000"]["outputs"]
    expected = [printed["Xsys"], *printed["Q"], *printed["R"]]
    for work in peers.one_class():
        assert work.ours() == pytest.approx(expected, rel=1e-9)
    printed = CASES["mcmva_2x5_N100_100"]["outputs"]
    figures = [np.array(printed[name]) for name in "XQR"]
    expected = np.concatenate([figures[0][:, 0], figures[1].T.ravel(), figures[2].T.ravel()])
    assert peers.two_classes().ours() == pytest.approx(expected, rel=1e-9)
    assert peers.many_servers().ours()[0] == pytest.approx(25.0, rel=1e-9)


def test_one_population_is_what_it_is_among_many():
    """Alone it is summed as a polynomial, among others it comes out of a filter."""
    N = np.arange(1, 2000, 37)
    for stations in (MS32, [queue(d) for d in peers.FIVE], [queue(1.0), queue(1.0), delay(5.0)]):
        together = solve(stations, N, Z=1.0)
        for i, n in enumerate(N):
            alone = solve(stations, n, Z=1.0)
            assert alone.Q == pytest.approx(together.Q[:, i], rel=1e-12)


def broken(monkeypatch, room, name, change):
    """A solver that changes what the real one finds."""
    real = getattr(room, name)
    monkeypatch.setattr(room, name, lambda *args: change(*real(*args)))


def test_a_wrong_number_present_is_noticed(monkeypatch):
    broken(monkeypatch, _convolution, "solve", lambda X, Q: (X, Q * 1.001))
    with pytest.raises(ArithmeticError, match="do not add up to N"):
        networks.solve([networks.queue(1.0), networks.queue(0.5)], 5)


def test_a_throughput_above_capacity_is_noticed(monkeypatch):
    broken(monkeypatch, _convolution, "solve", lambda X, Q: (X * 1.5, Q))
    with pytest.raises(ArithmeticError, match="above a station's capacity"):
        networks.solve([networks.queue(1.0), networks.queue(0.5)], 50)


def test_a_slip_in_the_recursion_of_several_classes_is_noticed(monkeypatch):
    """By what the order in which customers are taken away must not change."""
    real, calls = np.multiply, []

    def slip(*args, **kwargs):
        result = real(*args, **kwargs)
        calls.append(result)
        if len(calls) == 20:
            result *= 1 + 1e-6 * np.arange(result.size).reshape(result.shape)
        return result

    monkeypatch.setattr(networks.np, "multiply", slip)
    with pytest.raises(ArithmeticError, match="contradict each other"):
        networks.solve([networks.queue([0.1, 0.3]), networks.queue([0.2, 0.05])], (8, 9))


@pytest.mark.parametrize("N", [1, 2, 7, 40])
def test_balanced_bounds_are_exact_where_all_demands_are_alike(N):
    one = networks.solve([networks.queue(0.2)] * 3, N)
    both = {"N": N, "D": 0.6, "D_max": 0.2, "Z": 0.0}
    for bound in (
        operational.balanced_throughput_max(D_mean=0.2, **both),
        operational.balanced_throughput_min(**both),
    ):
        assert bound == pytest.approx(one.X, rel=1e-12)


@pytest.mark.parametrize(
    "wrong, name",
    [
        (lambda: networks.queue("a"), "D is 'a'"),
        (lambda: networks.queue([1, [2]]), "D is"),
        (lambda: networks.queue(1j), "D is 1j"),
        (lambda: networks.queue(1.0, servers=None), "servers is None"),
        (lambda: networks.queue(1.0, servers="x"), "servers is 'x'"),
        (lambda: networks.queue(1.0, servers=1e15), "servers is"),
        (lambda: networks.load_dependent(1.0, "abc"), "capacity is"),
        (lambda: networks.solve([1.0], 3), "stations: expected"),
        (lambda: networks.solve(None, 3), "stations: expected"),
        (lambda: networks.solve([networks.queue(1.0)], "3x"), "N is '3x'"),
        (lambda: networks.solve([networks.queue(1.0)], 1e300), "N is"),
        (lambda: networks.solve([networks.queue(1.0)], 3, Z="x"), "Z is 'x'"),
        (lambda: operational.little_population(X="5", R=1.0), "X is '5'"),
        (lambda: operational.demand(X=None, c=1, rho=0.5), "X is None"),
        (lambda: operational.full_throughput(X=1.0, rho=1.5), "rho is 1.5"),
        (lambda: operational.asymptotic_throughput_max(N=-1, D=1, D_max=1, Z=0), "N is -1"),
        (lambda: operational.balanced_throughput_min(N=3, D=-1, D_max=1, Z=0), "D is -1"),
    ],
)
def test_arguments_that_are_no_numbers_are_named(wrong, name):
    with pytest.raises(ValueError, match=name):
        wrong()


@pytest.mark.parametrize(
    "law",
    [
        operational.saturation,
        operational.asymptotic_throughput_max,
        operational.balanced_throughput_max,
        operational.balanced_throughput_min,
    ],
)
def test_no_demand_is_larger_than_that_of_all_stations(law):
    sound = {"N": 3, "D": 2.0, "D_max": 1.0, "D_mean": 0.5, "Z": 1.0}
    given = {n: sound[n] for n in law.quantities}
    assert law(**given | {"D_max": 2.0}) > 0  # one station
    for D_max in (2.001, [1.0, 3.0]):
        with pytest.raises(ValueError, match=r"^D is 2, expected at least D_max, "):
            law(**given | {"D_max": D_max})
    if "D_mean" in given:
        with pytest.raises(ValueError, match=r"^D_max is 1, expected at least D_mean, 1\.5"):
            law(**given | {"D_mean": 1.5})


@pytest.mark.parametrize(
    "law, given",
    [
        (operational.interactive_response, {"N": 20, "X": 8.0, "Z": 4.0}),  # more than N/Z
        (operational.utilisation, {"X": 50.0, "D": 0.04, "c": 1}),  # twice the time there is
        (operational.full_throughput, {"X": 0.0, "rho": 0.0}),
        (operational.saturation, {"D": 0.0, "D_max": 0.0, "Z": [1.0, 0.0]}),
    ],
)
def test_figures_that_contradict_each_other_are_refused(law, given):
    named = ".*".join(f"{n} = {np.ravel(v)[-1]:g}" for n, v in given.items())
    with pytest.raises(ArithmeticError, match=f"^{law.__name__} comes out as .*cannot be.*{named}"):
        law(**given)

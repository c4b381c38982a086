"""Stations: published results, 50 digits, identities, simulation, arrays and bad input."""

from functools import cache
from inspect import signature

import mpmath as mp
import numpy as np
import protocol
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import mutually_broadcastable_shapes
from quick import one_in, slow
from reference import CASES
from scipy.stats import t as student_t

from nummodel.models import operational
from nummodel.models import queueing as q
from nummodel.records import data

# --- what other tools print -------------------------------------------------------------------


def means(X, W, S, c):
    """Every name under which the tools print the means of a station."""
    R = S + W
    Q = operational.little_population(X, R)
    return (
        dict.fromkeys(("R", "W", "mean_system_time_W"), R)
        | dict.fromkeys(("Wq", "mean_wait_Wq"), W)
        | dict.fromkeys(("L", "Q", "mean_system_size_L"), Q)
        | dict.fromkeys(("Lq", "mean_queue_length_Lq"), X * W)
        | dict.fromkeys(("X", "Throughput"), X)
        | dict.fromkeys(
            ("U", "RO", "rho", "utilization"), operational.utilisation(X=X, D=S, c=c)
        )
    )  # fmt: skip


def mm1(lamda, S):
    assert q.mm1_response(lamda, S) == pytest.approx(S + q.mm1_waiting(lamda, S))
    return means(lamda, q.mm1_waiting(lamda, S), S, 1)


def mmc(lamda, S, c):
    found = means(lamda, q.mmc_waiting(lamda, S, c), S, c)
    return found | {"p_wait": q.erlang_c(lamda * S, c)}


def mmck(lamda, S, c, K):
    away = q.mmck_blocking(lamda, S, c, K)
    return {"p_block": away, "X": lamda * (1 - away), "Throughput": lamda * (1 - away)}


def mg1(lamda, S, cv2):
    return means(lamda, q.mg1_waiting(lamda, S, cv2), S, 1)


def ggc(*at):
    return means(at[0], q.ggc_waiting(*at), at[1], at[2])


def repairman(N, S, c, Z):
    X = N / (Z + S + q.repairman_waiting(N, S, c, Z))
    return means(X, q.repairman_waiting(N, S, c, Z), S, c)


#: Per model of the file: the results from a case's inputs.
MODELS = {
    "M/M/1": lambda i: mm1(rate(i), 1 / i["mu"]),
    "M/M/c": lambda i: mmc(rate(i), 1 / i["mu"], i["c"]),
    "M/M/1/K": lambda i: mmck(i["lambda"], 1 / i["mu"], 1, i["K"]),
    "M/M/c/K": lambda i: mmck(i["lambda"], 1 / i["mu"], i["c"], i["K"]),
    "M/M/c/c": lambda i: mmck(i["lambda"], 1 / i["mu"], i["c"], i["c"]),
    "M/G/1": lambda i: mg1(rate(i), *((i["ES"], i["scv"]) if "ES" in i else (1.0, i["cs"] ** 2))),
    "Erlang B": lambda i: {"B": q.erlang_b(i["A"], i["c"])},
    "Erlang C": lambda i: {"C": q.erlang_c(i["A"], i["c"])},
    "M/M/c//K machine repairman": lambda i: repairman(
        i["K"], 1 / i["mu"], i["c"], 1 / i["lambda"]
    ),
    "M/M/Inf//K": lambda i: repairman(i["K"], 1 / i["mu"], i["K"], 1 / i["lambda"]),
    "machine repairman M/M/8//N by conditional MVA": lambda i: repairman(
        i["N"], i["S"], i["m"], i["Z"]
    ),
    "closed M/M/300//400 (FESC)": lambda i: repairman(i["N"], i["S"], i["m"], i["Z"]),
    "G/G/1 approx allencunneen": lambda i: {
        "r": ggc(i["lam"], 1 / i["mu"], 1, i["ca"] ** 2, i["cs"] ** 2)["R"]
    },
    "G/G/1 Kingman/VUT": lambda i: ggc(i["lam"], 1 / i["mu"], 1, i["ca2"], i["cs2"]),
}  # fmt: skip
#: Networks of one station with thinking.
MODELS["closed single-class, multiserver, exact convolution, 60 digits"] = lambda i: {
    k: v
    for k, v in repairman(i["N"], i["D"][0], i["m"][0], i["Z"]).items()
    if len(i["D"]) == 1
}  # fmt: skip


def rate(inputs):
    return inputs["lambda"] if "lambda" in inputs else inputs["lam"]


#: Octave's U of this model is the probability that any server is busy.
OTHERWISE = {(f"cmva_conditional_m8_N{N}", "U") for N in (10, 50, 90)}
ANSWERS = {
    (name, what): (answer, np.atleast_1d(case["outputs"][what])[0], case["peer"])
    for name, case in CASES.items()
    if case["model"] in MODELS
    for what, answer in MODELS[case["model"]](case["inputs"]).items()
    if what in case["outputs"] and (name, what) not in OTHERWISE
}


@pytest.mark.parametrize("name, what", ANSWERS)
def test_other_tools(name, what):
    answer, printed, peer = ANSWERS[name, what]
    # PDQ stops its iteration at eight digits.
    assert answer == pytest.approx(printed, rel=2e-8 if peer == "PDQ" else 1e-9)


def test_other_tools_are_many():
    assert len(ANSWERS) > 120 and len({name for name, _ in ANSWERS}) > 34


def test_distributions_of_other_tools():
    """R queueing: shares of the waits and response times up to t."""
    mm1, mmc = CASES["r_mm1_sixto_10.3"]["outputs"], CASES["r_mmc_c64"]["outputs"]
    known = (1 / 4, 3)
    assert q.mmc_response_percentile(*known, 1, mm1["FW_at_10"]) == pytest.approx(10, rel=1e-9)
    assert q.mmc_waiting_percentile(*known, 1, mm1["FWq_at_10"]) == pytest.approx(10, rel=1e-9)
    known = (57.6, 1, 64)
    assert q.mmc_waiting_percentile(*known, mmc["FWq_at_0.1"]) == pytest.approx(0.1, rel=1e-9)
    assert q.mmc_response_percentile(*known, mmc["FW_at_2"]) == pytest.approx(2, rel=1e-9)


# --- 50 digits --------------------------------------------------------------------------------

LOADS = (1e-9, 1e-3, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99, 1 - 1e-9, 1.0, 1.01, 1.3, 1.39, 1.41, 2, 1e6)
SERVERS = (1, 2, 3, 16, 64, 111, 112, 113, 400, 3000, 10_000)


@pytest.fixture(autouse=True)
def digits():
    with mp.workdps(50):
        yield


def exact_b(a, c):
    """Erlang B by its recursion, started high enough for the digits."""
    inverse, a = mp.mpf(1), mp.mpf(a)
    for k in range(1, c + 1):
        inverse = 1 + inverse * k / a
    return 1 / inverse


def exact_c(a, c):
    B, rho = exact_b(a, c), mp.mpf(a) / c
    return B / (1 - rho * (1 - B))


@pytest.mark.parametrize("c", [slow(c) if c > 9999 else c for c in SERVERS])
def test_erlang_against_50_digits(c):
    a = c * np.array(LOADS)
    for load, B, C in zip(a, q.erlang_b(a, c), q.erlang_c(a, c), strict=True):
        assert float(exact_b(load, c)) == pytest.approx(B, rel=1e-12, abs=1e-290)
        if load < c:
            assert float(exact_c(load, c)) == pytest.approx(C, rel=1e-12, abs=1e-290)
            W = exact_c(load, c) * 0.5 / (c - mp.mpf(load))
            assert float(W) == pytest.approx(
                q.mmc_waiting(load / 0.5, 0.5, c), rel=1e-12, abs=1e-290
            )
        else:
            assert C == 1


@pytest.mark.parametrize("c", (1, 2, 3, 64, 1000))
def test_response_percentiles_against_50_digits(c):
    """The exact tail at the percentile is 1 - p; also where c - a is 1, and next to it."""
    spare = np.array([1e-9, 0.1, 1 - 1e-7, 1 - 1e-13, 1, 1 + 1e-13, 1 + 1e-7, 1.5, 0.999 * c])
    for a in c - spare[spare < c]:
        C, d = exact_c(a, c), c - mp.mpf(a)
        for p in (1e-9, 0.01, 0.5, 0.95, 0.9999, 1 - 1e-12):
            x = mp.mpf(q.mmc_response_percentile(a / 0.5, 0.5, c, p)) / 0.5
            apart = d - 1
            both = x if apart == 0 else (1 - mp.exp(-apart * x)) / apart
            hazard = -mp.log(mp.exp(-x) * (1 + C * both))
            ratio = float(hazard / -mp.log(1 - mp.mpf(p)))
            assert ratio == pytest.approx(1, rel=1e-12, abs=1e-15 / p)


def exact_means(weights, c):
    """Share full, mean busy servers and mean queue of a birth-death chain by its weights."""
    total = mp.fsum(weights)
    busy = mp.fsum(w * min(n, c) for n, w in enumerate(weights)) / total
    queue = mp.fsum(w * max(n - c, 0) for n, w in enumerate(weights)) / total
    return weights[-1] / total, busy, queue


@pytest.mark.parametrize("c, K", [(1, 1), (1, 2), (1, 50), (3, 3), (5, 12), (64, 80), (150, 2000)])
def test_mmck_against_50_digits(c, K):
    for rho in (1e-6, 0.1, 0.9, 1 - 1e-5, 1 - 1e-12, 1.0, 1 + 1e-9, 1.001, 1.2, 3, 1e5):
        lamda, weights = rho * c / 0.5, [mp.mpf(1)]
        for n in range(1, K + 1):
            weights.append(weights[-1] * mp.mpf(lamda) * 0.5 / min(n, c))
        full, _, _ = exact_means(weights, c)
        found = q.mmck_blocking(lamda, 0.5, c, K)
        assert found == pytest.approx(float(full), rel=1e-11, abs=1e-290)


@pytest.mark.parametrize("N, Z, c", [(8, 16.0, 1), (64, 16.0, 1), (20, 5.0, 4), (3, 0.5, 2)])
def test_percentiles_of_the_wait_at_a_repairman(N, Z, c):
    """By simulation: the share of the waits that exceed a percentile."""
    waits = np.array(protocol.waits(N, Z, 1.0, c))
    for p in (0.5, 0.9, 0.99):
        wait = q.repairman_waiting_percentile(N, 1.0, c, Z, p)
        slower = np.mean(waits > wait)
        assert slower == pytest.approx(1 - p, rel=0.2) or (wait == 0 and slower < 1 - p)


def test_percentiles_at_a_repairman_at_their_ends():
    grid = q.repairman_waiting_percentile([[1], [2], [30]], 2.0, [1, 1, 2], [0.0, 7.0, 7.0], 0.9)
    assert grid.shape == (3, 3) and (grid[0] == 0).all() and (grid[2] > 0).all()
    # Of two threads that do not think, each waits for one service of the other.
    assert grid[1, 0] == pytest.approx(-2 * np.log(0.1))
    assert q.repairman_waiting_percentile(2, 2.0, 1, 7.0, 0.9) == pytest.approx(
        -2 * np.log(0.1 / (2 / 9))
    )
    assert q.repairman_waiting_percentile(9, 1.0, 1, 1.0, 1.0) == np.inf
    many = q.repairman_waiting_percentile(2000, 1.0, 2, 2000 / 1.6, 0.95)
    assert many == pytest.approx(q.mmc_waiting_percentile(1.6, 1.0, 2, 0.95), rel=0.03)
    with pytest.raises(ValueError, match="N is 50,000, expected at most 20,000"):
        q.repairman_waiting_percentile(50_000, 1.0, 1, 1.0, 0.5)


@pytest.mark.parametrize("c, N", [(1, 1), (1, 30), (4, 3), (4, 20), (64, 300), (1000, 2000)])
def test_repairman_against_50_digits(c, N):
    for Z in (0.0, 1e-6, 0.1, 1, 10, 1e5):
        weights = [mp.mpf(1)]  # from all present downwards, so that Z may be 0
        for n in range(N, 0, -1):
            weights.append(weights[-1] * min(n, c) * mp.mpf(Z) / ((N - n + 1) * mp.mpf(0.5)))
        _, busy, queue = exact_means(weights[::-1], c)
        wait, found = float(0.5 * queue / busy), q.repairman_waiting(N, 0.5, c, Z)
        assert found == pytest.approx(wait, rel=1e-12, abs=1e-290)
        assert N / (Z + 0.5 + found) == pytest.approx(float(busy / 0.5), rel=1e-12)


# --- identities and limits --------------------------------------------------------------------

RHO = np.array([0.0, 1e-6, 0.2, 0.5, 0.9, 0.999])


def test_one_server_is_mm1():
    for what in ("waiting", "response"):
        one, many = getattr(q, f"mm1_{what}"), getattr(q, f"mmc_{what}")
        assert many(RHO, 1.0, 1) == pytest.approx(one(RHO, 1.0), rel=1e-12)
    p = np.array([[0.0], [1e-6], [0.5], [0.99]])
    response = q.mmc_response_percentile(RHO, 1.0, 1, p)
    assert response == pytest.approx(-np.log1p(-p) / (1 - RHO), rel=1e-12)
    some = p > 1 - RHO  # those who wait: the share beyond t is rho exp(-(1 - rho) t)
    with np.errstate(divide="ignore"):
        longer = np.log(RHO / (1 - p)) / (1 - RHO)
    wait = q.mmc_waiting_percentile(RHO, 1.0, 1, p)
    assert wait == pytest.approx(np.where(some, longer, 0.0), rel=1e-12)


def test_exponential_service_is_mm1_and_random_arrivals_are_mgc():
    mm1, mg1, ggc, mmc = (getattr(q, f"{m}_waiting") for m in ("mm1", "mg1", "ggc", "mmc"))
    assert mg1(RHO, 1.0, 1) == pytest.approx(mm1(RHO, 1.0), rel=1e-12)
    assert ggc(RHO, 1.0, 1, 1, 7) == pytest.approx(mg1(RHO, 1.0, 7), rel=1e-12)
    assert ggc(3 * RHO, 1.0, 3, 1, 1) == pytest.approx(mmc(3 * RHO, 1.0, 3), rel=1e-12)


def test_no_queue_is_erlang_b():
    a = np.array([0.1, 5, 50])
    assert q.mmck_blocking(a, 1.0, 5, 5) == pytest.approx(q.erlang_b(a, 5), rel=1e-12)


def test_many_rare_customers_arrive_at_random():
    """N to infinity with N/Z fixed: the repairman's shop becomes M/M/c."""
    N = np.array([4000, 8000])
    gap = q.mmc_waiting(4, 1.0, 5) - q.repairman_waiting(N, 1.0, 5, N / 4)
    assert 0 < gap[1] < 0.02 and gap[1] / gap[0] == pytest.approx(0.5, rel=0.02)


def test_nobody_and_no_work():
    assert q.repairman_waiting(0, 1.0, 2, 5.0) == q.repairman_waiting(10, 0, 2, 0) == 0
    assert q.mmck_blocking(0, 1.0, 1, 1) == 0
    assert q.mmc_response(0, 2.0, 3) == 2 and q.mmc_waiting_percentile(0, 1.0, 1, 1.0) == 0
    assert q.mmc_response_percentile(1, 1, 2, 1) == np.inf


@pytest.mark.parametrize("law", ("waiting", "response"))
@pytest.mark.parametrize("at", [(0.5, 1.0, 1), (1.8, 1.0, 2), (9.0, 0.5, 8), (0.1, 1.0, 1)])
def test_percentiles_integrate_to_the_mean(law, at):
    """The mean is the integral of the percentile over p."""
    x, w = np.polynomial.legendre.leggauss(100)
    u = (x + 1) / 2  # p = 1 - (1 - u)^3 spreads the tail out, and the atom has an end to stop at
    start = 1 - q.erlang_c(at[0] * at[1], at[2]) if law == "waiting" else 0.0
    p = 1 - (1 - start) * (1 - u) ** 3
    slope = (1 - start) * 3 * (1 - u) ** 2
    percentile, mean = getattr(q, f"mmc_{law}_percentile"), getattr(q, f"mmc_{law}")
    assert (w / 2 * slope * percentile(*at, p)).sum() == pytest.approx(mean(*at), rel=1e-6)


# --- arrays, unstable points, bad input -------------------------------------------------------

#: Every function, with sound arguments.
SOUND = {"lamda": 1.5, "S": 0.5, "c": 2.0, "K": 4.0, "N": 5.0, "Z": 1.0, "a": 1.5, "p": 0.9,
         "cv2": 0.5, "W_mmc": 1.0, "cv2_a": 2.0}  # fmt: skip
STATIONS = ("mm1", "mmc", "mmck", "mg1", "ggc", "erlang", "repairman", "allen")
FUNCTIONS = {
    name: {n: SOUND[n] for n in signature(f).parameters}
    for name, f in vars(q).items()
    if callable(f) and name.partition("_")[0] in STATIONS
}


def test_all_functions_are_found():
    assert len(FUNCTIONS) == 14


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -1.0, "many", None, [1.0, np.nan], 1e300j])
def test_bad_input_is_named(name, bad):
    for argument in FUNCTIONS[name]:
        if argument == "W_mmc" and bad == np.inf:
            continue  # an unstable station may be asked about
        with pytest.raises(ValueError, match=rf"^{argument} is .+, expected a (whole )?number"):
            getattr(q, name)(**FUNCTIONS[name] | {argument: bad})


@pytest.mark.parametrize("name", [n for n in FUNCTIONS if {"c", "K", "N"} & set(FUNCTIONS[n])])
def test_counts_are_whole(name):
    for argument in {"c", "K", "N"} & set(FUNCTIONS[name]):
        with pytest.raises(ValueError, match=f"^{argument} is 2.5, expected a whole number"):
            getattr(q, name)(**FUNCTIONS[name] | {argument: 2.5})


@pytest.mark.parametrize(
    "wrong, message",
    [
        (lambda: q.mmc_waiting(1, 1, 0), "c is 0, expected a whole number of at least 1"),
        (lambda: q.mmc_response_percentile(1, 1, 1, 1.1), "p is 1.1, expected .* at most 1"),
        (lambda: q.mmck_blocking(1, 1, 5, [9, 4]), "K is 4, expected at least c, 5"),
    ],
)
def test_messages(wrong, message):
    with pytest.raises(ValueError, match=message):
        wrong()


@pytest.mark.parametrize("name", [n for n in FUNCTIONS if "lamda" in FUNCTIONS[n]])
def test_unstable_points_are_infinite_each(name):
    at = FUNCTIONS[name]
    lamda = np.array([1.5, at.get("c", 1) / at["S"], 1e9])
    found = getattr(q, name)(**at | {"lamda": lamda})
    finite = np.isfinite(found)
    assert finite.tolist() == ([True] * 3 if name.startswith("mmck") else [True, False, False])
    assert not np.isnan(found).any()


@given(st.data())
@pytest.mark.parametrize("name", FUNCTIONS)
def test_arrays_of_any_shape(name, data):
    at = FUNCTIONS[name]
    drawn = data.draw(mutually_broadcastable_shapes(num_shapes=len(at), max_dims=3, max_side=3))
    arrays = {n: np.full(s, v) for (n, v), s in zip(at.items(), drawn.input_shapes, strict=True)}
    found, alone = getattr(q, name)(**arrays), getattr(q, name)(**at)
    assert type(alone) is float
    assert np.shape(found) == drawn.result_shape
    assert np.asarray(found) == pytest.approx(np.full(drawn.result_shape, alone), rel=1e-14)


# --- simulation -------------------------------------------------------------------------------

#: Stations for ciw, whose way to simulate them is its own; what to measure, what the formula says.
SIMULATED = {
    "M/M/4 wait": ((2.4, 4, np.inf, "exponential", "wait"), q.mmc_waiting(2.4, 1.0, 4)),
    "M/M/4/6 share away": ((4.0, 4, 6, "exponential", "away"), q.mmck_blocking(4.0, 1.0, 4, 6)),
    "M/D/1 wait": ((0.6, 1, np.inf, "constant", "wait"), q.mg1_waiting(0.6, 1.0, 0.0)),
    "M/M/4 share above the 80 % of response times": (
        (2.4, 4, np.inf, "exponential", q.mmc_response_percentile(2.4, 1.0, 4, 0.8)),
        0.2,
    ),
}  # fmt: skip


@cache
def records(lamda, c, K, service, customers=40_000):
    """What ciw tells of every customer, in the order of their arrival."""
    import ciw

    exponential, constant = ciw.dists.Exponential(1.0), ciw.dists.Deterministic(1.0)
    network = ciw.create_network(
        arrival_distributions=[ciw.dists.Exponential(lamda)],
        service_distributions=[exponential if service == "exponential" else constant],
        number_of_servers=[c],
        queue_capacities=[K - c],
    )
    ciw.seed(2026)
    simulation = ciw.Simulation(network)
    simulation.simulate_until_max_customers(customers, method="Arrive")
    return sorted(simulation.get_all_records(), key=lambda r: r.arrival_date)


def by_ciw(*station, figure, batches=20):
    """Means of batches of customers, the first batch left out."""
    customers = records(*station)
    away = np.array([r.record_type == "rejection" for r in customers])
    if figure == "away":
        values = away
    else:
        kept = [r for r, gone in zip(customers, away, strict=True) if not gone]
        values = np.array([r.waiting_time for r in kept])
        if figure != "wait":
            values = values + np.array([r.service_time for r in kept]) > figure
    size = len(values) // batches
    return values[: size * batches].reshape(batches, size).mean(axis=1)[1:]


@pytest.mark.parametrize("case", one_in(4, SIMULATED))
def test_simulation_agrees(case):
    """Within an interval that all of these miss together once in 100 times, and of some percent:
    `make simulate` does it to 1 %."""
    (*station, figure), answer = SIMULATED[case]
    means = by_ciw(*station, figure=figure)
    z = student_t.ppf(1 - 0.005 / len(SIMULATED), len(means) - 1)
    half = z * means.std(ddof=1) / np.sqrt(len(means))
    assert half < 0.2 * answer
    assert means.mean() == pytest.approx(answer, abs=half)


@pytest.mark.parametrize("load", [1.001, 1.05, 1.2, 1.35, 1.399, 1.41, 3])
@pytest.mark.parametrize("c", [11_500, 20_000])
def test_overload_of_very_many_lines(c, load):
    assert q.erlang_b(load * c, c) == pytest.approx(float(exact_b(load * c, c)), rel=2e-12)


def test_the_published_approximation_is_what_the_function_says():
    """The table of simulations prints four digits of it."""
    table = data.load("allen-cunneen")
    station = {name: table[name] for name in ("c", "cv2_a", "cv2")}
    ours = q.ggc_waiting(table["rho"] * table["c"], 1.0, **station)
    assert ours == pytest.approx(table["approximation"].to_numpy(), rel=6e-4)


@pytest.mark.parametrize("rho", [0.05, 0.5, 0.9])
def test_allen_and_cunneen_with_one_server_is_not_the_bound_of_kingman(rho):
    """Arrivals in batches, ten on average: the exact wait of GI/M/1 is above the one, and below the
    bound (1962), which is L (var a + var S)/(2 (1 - rho)).
    """
    alone = 0.1  # share of the gaps that are not 0, exponential ones

    def transform(s):  # of the gaps, their mean being 1/rho
        return 1 - alone + alone / (1 + s / rho / alone)

    at = mp.findroot(lambda x: transform(1 - x) - x, (0.5, 0.99999), solver="bisect")
    wait, cv2_a = float(at / (1 - at)), 2 / alone - 1
    bound = rho * (cv2_a / rho**2 + 1) / (2 * (1 - rho))
    assert q.ggc_waiting(rho, 1.0, 1, cv2_a, 1) < wait < bound
    assert "bound is another" in " ".join(q.ggc_waiting.__doc__.split())
    assert q.ggc_waiting(rho, 1.0, 1, 1, 7) == q.mg1_waiting(rho, 1.0, 7)


@pytest.mark.parametrize("a", [3.5e17, 1e30, 1e99])
@pytest.mark.parametrize("c", [1, 10, 112, 113, 10**6])
def test_shares_are_at_most_one(a, c):
    assert q.erlang_b(a, c) == pytest.approx(1) and q.erlang_b(a, c) <= 1
    assert q.mmck_blocking(a, 1.0, c, c + 5) <= 1 and q.erlang_c(0.999999 * c, c) <= 1


def test_a_shop_of_very_many_is_refused_at_once():
    with pytest.raises(ValueError, match="N is 1,000,000,000, expected at most 100,000"):
        q.repairman_waiting(10**9, 1.0, 2, 5.0)
    with pytest.raises(ValueError, match="N is 2,000, expected at most 100"):
        q.repairman_waiting(np.full(10**5, 2000), 1.0, 2, 5.0)


def test_no_service_takes_no_time():
    assert q.mmc_response_percentile(0.5, 0, 2, [0.5, 1.0]).tolist() == [0, 0]


def test_many_lines_at_once():
    """Any order of lines, more than are computed together: B(c) = a B(c-1)/(c + a B(c-1))."""
    random = np.random.default_rng(7)
    c = random.integers(1, 131, 40_000)
    a = c * 10 ** random.uniform(-2, 1, len(c))
    B = np.ones(len(c))
    for n in range(1, 131):
        B = np.where(c >= n, a * B / (n + a * B), B)
    assert q.erlang_b(a, c) == pytest.approx(B, rel=1e-12)

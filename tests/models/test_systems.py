"""Closed systems as laws: against the balance of all states, limits and known networks."""

from itertools import product

import numpy as np
import pytest

from nummodel.models import networks, operational, systems

STATES = {
    "plain": ({"cpu": 3, "lock": 1}, {"D_cpu": 0.03, "D_lock": 0.012, "Z": 0.1}),
    "threads": ({"cpu": 2, "lock": 1, "threads": "cpu"}, {"h_cpu": 0.3}),
}
TIMES = STATES["plain"][1]


def balance(N, rates, Z=TIMES["Z"]):
    """Probabilities of all states (at cpu, at lock) of N users, from their balance of flows.
    `rates(n, m)` has the rates of ends of computing and of holding the lock; users who think come
    to the processors after `Z` on average, and go from the lock to thinking.
    """
    places = [(n, m) for n in range(N + 1) for m in range(N + 1 - n)]
    number = {place: i for i, place in enumerate(places)}
    Q = np.zeros((len(places), len(places)))
    for n, m in places:
        done, released = rates(n, m)
        moves = [
            ((n + 1, m), (N - n - m) / Z),
            ((n - 1, m + 1), done),
            ((n, m - 1), released),
        ]
        for to, rate in moves:
            if to in number and rate > 0:
                Q[number[n, m], number[to]] += rate
    Q -= np.diag(Q.sum(axis=1))
    p = np.linalg.lstsq(np.vstack([Q.T, np.ones(len(places))]), np.eye(len(places) + 1)[-1])[0]
    return places, p


def expected(kind, N):
    """X, R and U_cpu by the balance of states; U_cpu by who is computing."""
    D, L = TIMES["D_cpu"], TIMES["D_lock"]

    def rates(n, m):
        held = min(m, 1) / L
        if kind == "threads":
            return (min(n, 2) + 0.3 * min(max(n - 2, 0), 2)) / D, held
        return min(n, 3) / D, held

    places, p = balance(N, rates)
    X = sum(q * rates(n, m)[1] for (n, m), q in zip(places, p, strict=True))
    threads = 4 if kind == "threads" else 3
    busy = [min(n, threads) / threads for n, _ in places]
    return X, N / X - TIMES["Z"], p @ busy


@pytest.mark.parametrize("kind", STATES)
def test_closed_systems_are_those_of_the_balance_of_states(kind):
    stations, more = STATES[kind]
    laws = systems.closed(**stations)
    for N in (1, 2, 5, 9):
        found = [laws[r](N=N, **TIMES | more) for r in ("X", "R", "U_cpu")]
        assert found == pytest.approx(expected(kind, N), rel=1e-8)


@pytest.mark.parametrize("c", [1, 3, 8])
@pytest.mark.parametrize("L", [0.0, 0.002, 0.012, 0.1])
def test_processors_that_a_holder_needs_are_those_of_the_balance_of_states(c, L):
    """Exact without think time: n compute, N - n are at the lock, and all who run share alike."""
    D, laws = 0.03, systems.closed(cpu=c, lock=1, computes="lock")
    for N in (1, 2, 5, 20):
        n = np.arange(N + 1)
        part = np.minimum(1, c / (n + (n < N)))
        done, released = n * part / D, (n < N) * part / max(L, 1e-12)
        # From n to n - 1 by an end of computing, and back by a release.
        log_p = np.append(0.0, np.cumsum(np.log(done[:0:-1]) - np.log(released[-2::-1])))[::-1]
        p = np.exp(log_p - log_p.max())
        X = p @ done / p.sum()
        at = {"N": N, "D_cpu": D, "D_lock": L, "Z": 0.0}
        assert laws["X"](**at) == pytest.approx(X, rel=1e-9)
        assert laws["U_cpu"](**at) == pytest.approx(X * (D + L) / c, rel=1e-9)
    assert laws.keys() == {"X", "R", "U_cpu"}


@pytest.mark.slow
def test_how_far_systems_whose_holder_computes_are_off_with_think_time():
    """As `systems.closed` says, of 240 systems, against the balance of their states."""
    D, off = TIMES["D_cpu"], []
    for c, L, Z, N in product(
        (1, 2, 4, 8), (0.0006, 0.006, 0.015, 0.03, 0.06), (0.01, 0.05, 0.2, 1.0), (4, 10, 22)
    ):

        def rates(n, m, c=c, L=L):
            part = min(1, c / max(n + (m > 0), 1))
            return n * part / D, (m > 0) * part / L

        law = systems.closed(cpu=c, lock=1, computes="lock")["X"]
        places, p = balance(N, rates, Z)
        X = sum(q * rates(n, m)[1] for (n, m), q in zip(places, p, strict=True))
        off.append(abs(law(N=N, D_cpu=D, D_lock=L, Z=Z) / X - 1))
    assert len(off) == 240 and max(off) < 0.0225 and np.quantile(off, 0.95) < 0.0085


@pytest.mark.parametrize("Z", [0.02, 0.1, 1.0])
def test_a_holder_who_finds_a_processor_free_is_as_in_the_balance_of_states(Z):
    """Exactly, with think time, where the processors are enough for all."""
    D, L = TIMES["D_cpu"], TIMES["D_lock"]
    law = systems.closed(cpu=40, lock=1, computes="lock")["X"]
    for N in (3, 9, 25):
        places, p = balance(N, lambda n, m: (n / D, (m > 0) / L), Z)
        X = sum(q * (m > 0) / L for (_, m), q in zip(places, p, strict=True))
        assert law(N=N, D_cpu=D, D_lock=L, Z=Z) == pytest.approx(X, rel=1e-9)


@pytest.mark.parametrize("kind", [*STATES, "computes"])
def test_slopes_are_those_of_the_values(kind):
    stations, more = STATES.get(kind, ({"cpu": 3, "lock": 1, "computes": "lock"}, {}))
    values = TIMES | more
    N = np.array([1.0, 3, 6.5, 40])
    for law in systems.closed(**stations).values():
        names = law.quantities[1:]
        slopes = law.gradient(names)(N=N, **values)
        for name, slope in zip(names, slopes.T, strict=True):
            h = 1e-3 * values[name]
            up, down = (law(N=N, **values | {name: values[name] + s * h}) for s in (1, -1))
            assert slope == pytest.approx(
                (up - down) / 2 / h, rel=1e-3, abs=1e-5 * abs(slope).max()
            )


def test_operational_laws_hold():
    laws = systems.closed(cpu=4, disk=1)
    N, values = np.array([1.0, 5, 50, 500]), {"D_cpu": 0.03, "D_disk": 0.005, "Z": 1.0}
    X, R, U = (laws[r](N=N, **values) for r in ("X", "R", "U_cpu"))
    assert N == pytest.approx(X * (R + 1.0))
    assert U == pytest.approx(operational.utilisation(X, 0.03, 4))


def test_between_two_numbers_of_users_is_between_their_throughputs():
    law = systems.closed(cpu=2)["X"]
    below, at, above = law(N=[3, 3.25, 4], D_cpu=0.5, Z=1.0)
    assert at == pytest.approx(below + (above - below) / 4)


def test_a_number_of_servers_may_be_given_or_be_a_quantity():
    given, found = systems.closed(cpu=5, lock=1), systems.closed(cpu=None, lock=1)
    for result in given:
        expected = given[result](N=[1, 8, 30], **TIMES)
        assert found[result](N=[1, 8, 30], c_cpu=5.0, **TIMES) == pytest.approx(expected)


@pytest.mark.parametrize("stations", [{"cpu": None, "lock": 1}, {"lock": 1, "cpu": None}])
@pytest.mark.parametrize("c", [1.0, 1.3, 2.0, 2.5, 3.999])
def test_between_whole_numbers_of_servers_neither_results_nor_slopes_jump(c, stations):
    """As fast together as the same share of a whole number of servers: the ceiling is c/D."""
    law = systems.closed(**stations)["X"]
    at = TIMES | {"c_cpu": c, "D_lock": 0.001}
    assert law(N=2000.0, **at) == pytest.approx(c / at["D_cpu"], rel=1e-6)
    slopes = law.gradient(law.quantities[1:])
    slope, near = slopes(N=9.0, **at), slopes(N=9.0, **at | {"c_cpu": c + 1e-7})
    assert near == pytest.approx(slope, rel=1e-5)
    for name, expected in zip(law.quantities[1:], slope, strict=True):
        rise = law(N=9.0, **at | {name: at[name] * (1 + 1e-6)}) - law(N=9.0, **at)
        assert rise / at[name] / 1e-6 == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "expected stations"),
        ({"cpu": 4, "computes": "disk"}, "no station 'disk' among cpu"),
        ({"cpu": 4, "computes": "cpu"}, "one server may compute"),
        ({"cpu": 4, "lock": 2, "computes": "lock"}, "one server may compute"),
        ({"cpu": 0}, "c_cpu is 0, expected a whole number"),
    ],
)
def test_what_is_no_system_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        systems.closed(**arguments)["X"](N=1, D_cpu=0.1, Z=0.0)


@pytest.mark.parametrize("name, value", [("N", 0), ("N", 1e9), ("D_cpu", -0.1), ("Z", np.nan)])
def test_arguments_that_make_no_sense_are_named(name, value):
    law = systems.closed(cpu=4, lock=1)["X"]
    with pytest.raises(ValueError, match=name):
        law(**{"N": 5} | TIMES | {name: value})


def test_a_search_may_try_what_makes_no_sense():
    law = systems.closed(cpu=4, lock=1)["X"]
    for name, value in (("N", 1e12), ("D_cpu", -0.1), ("Z", np.inf)):
        assert np.isnan(law.unchecked(**{"N": 5.0} | TIMES | {name: value}))


@pytest.mark.parametrize("most", [1, 40, 300, 512, 513, 5000])
def test_systems_are_those_of_their_networks(most):
    """Among them stations that nobody visits, no thinking, and more servers than users."""
    random = np.random.default_rng(most)
    D, Z = 10 ** random.uniform(-4, 0, (2, 12)), 10 ** random.uniform(-3, 3, 12)
    c = np.rint(10 ** random.uniform(0, 2, 12))
    D[0, 0] = D[1, 1] = Z[2] = Z[3] = 0.0
    law = systems.closed(cpu=None, lock=1)["X"]
    N = np.unique(np.geomspace(1, most, 9).round())
    found = law(N=N[:, None], D_cpu=D[0], c_cpu=c, D_lock=D[1], Z=Z)
    for j in range(12):
        stations = [networks.queue(D[0, j], int(c[j])), networks.queue(D[1, j])]
        exact = networks.solve(stations, N.astype(int), Z[j]).X
        assert found[:, j] == pytest.approx(exact, rel=1e-12)


def test_between_two_numbers_of_servers_are_systems_that_are_as_fast():
    """Half-way between two and three servers, of the same capacity each."""
    law, at = (
        systems.closed(cpu=None, lock=1)["X"],
        {"N": np.arange(1, 41), "D_lock": 1e-3, "Z": 0.1},
    )
    two, half, three = (law(**at, D_cpu=0.01 * c, c_cpu=c) for c in (2, 2.5, 3))
    apart = np.abs(two - three).max()
    assert (np.abs(half - (two + three) / 2) <= 0.2 * apart).all()


def test_stations_of_many_servers_are_solved_together_as_alone():
    """Three stations that fill alike, of hundreds of servers each, which differ in each system."""
    random, law = np.random.default_rng(4), systems.closed(a=None, b=None, c=None)["X"]
    c = np.rint(10 ** random.uniform(1, 2.9, (3, 20)))
    D, Z = c * 10 ** random.uniform(-0.1, 0.1, (3, 20)), random.choice([0.0, 30.0, 300.0], 20)
    values = {f"D_{n}": v for n, v in zip("abc", D, strict=True)}
    values |= {f"c_{n}": v for n, v in zip("abc", c, strict=True)}
    N = np.array([1, 100, 400, 512])
    found = law(N=N[:, None], Z=Z, **values)
    for j in range(20):
        stations = [networks.queue(D[i, j], int(c[i, j])) for i in range(3)]
        assert found[:, j] == pytest.approx(networks.solve(stations, N, Z[j]).X, rel=1e-11)


def test_as_many_systems_as_memory_has_room_for_are_solved_at_a_time(monkeypatch):
    """Of all kinds, those with threads among them, whose shares are computed in another way."""
    for servers in ({"cpu": None, "lock": 1}, {"cpu": 2, "lock": 1, "threads": "cpu"}):
        law = systems.closed(**servers)["U_cpu"]
        random, N = np.random.default_rng(5), np.array([[1.0], [7.5], [30.0]])
        values = {q: random.uniform(0.1, 0.9, 11) for q in law.quantities[1:]}
        values |= {q: 1 + 3 * v for q, v in values.items() if q[0] == "c"}
        jet = law.jet(law.quantities)
        whole = jet(N=N, **values)
        with monkeypatch.context() as patch:
            patch.setattr(systems, "FLOATS", 200)
            value, *slopes = jet(N=N, **values)
        assert value == pytest.approx(whole[0], rel=1e-12)
        for part, every in zip(slopes, whole[1:], strict=True):  # some of them differences
            assert part == pytest.approx(every, rel=1e-6, abs=1e-8)

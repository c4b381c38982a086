"""Many closed systems at once, against arithmetic of 60 digits, and against one system alone."""

import exact
import numpy as np
import pytest

from nummodel.models import _many, networks


def times(stations, systems):
    """The same stations in several systems, each a little slower in the next one."""
    slower = 1.5 ** np.arange(systems)
    return [(s.D / s.capacity)[:, None] * slower for s in stations]


def random_systems(seed, systems, most):
    """Stations that queue, think times and a population."""
    rng = np.random.default_rng(seed)
    while True:
        stations, N, Z = exact.random_network(rng, most)
        stations = [s for s in stations if s.capacity is not None]
        if stations:
            return times(stations, systems), Z * 2.0 ** np.arange(systems), N


@pytest.mark.parametrize("seed", range(40))
def test_many_systems_are_exact(seed):
    each, Z, N = random_systems(seed, 3, 40)
    X, Q = _many.solve(each, Z, np.arange(N + 1))
    for j in range(3):
        stations = [networks.load_dependent(t[0, j], t[0, j] / t[:, j]) for t in each]
        X_exact, Q_exact = exact.solve(stations, N, Z[j])
        assert X[1:, j] == pytest.approx(X_exact, rel=1e-11)
        assert Q[:, 1:, j] == pytest.approx(Q_exact, rel=1e-10)
        assert X[0, j] == 0 and not Q[:, 0, j].any()


def test_where_floats_do_not_do_a_system_is_solved_alone():
    """Among others, a station that collapses: G spans more than a float does."""
    n = np.arange(1.0, 401)
    collapse = (1 + n**2)[:, None] * [1.0, 1e-3]
    each, Z = [np.full((1, 2), 2.0), collapse], np.array([1.0, 1e-250])
    X, Q = _many.solve(each, Z, np.array([400, 3]))
    with np.errstate(all="ignore"):
        assert np.isnan(_many._together(each, Z, 400)[0]).any()
    for j in range(2):
        stations = [networks.load_dependent(t[0, j], t[0, j] / t[:, j]) for t in each]
        alone = networks.solve(stations, [400, 3], Z[j])
        assert X[:, j] == pytest.approx(alone.X, rel=1e-11)
        assert Q[..., j] == pytest.approx(alone.Q, rel=1e-10)

"""The parts of the convolution, each against its definition, summed term by term."""

from math import exp, inf, log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nummodel.models import _convolution
from nummodel.models._convolution import GROWTH

SLOPES = st.floats(-3, 3) | st.floats(-1e-6, 1e-6) | st.sampled_from([0.0, 1e-12, -1e-12])
COUNTS = st.integers(0, 200)
RATIOS = st.lists(st.floats(0.01, 3), min_size=1, max_size=12).map(np.array)


def lengthened(ratios, top):
    """Ratios of neighbouring terms up to `top`: the last one holds from there on."""
    return np.concatenate([ratios, np.full(top, ratios[-1])])[:top]


def probabilities(ratios, top):
    """Terms that are the products of their ratios, over their sum."""
    logs = np.cumsum(np.concatenate([[0.0], np.log(lengthened(ratios, top))]))
    terms = np.exp(logs - logs.max())
    return terms / terms.sum()


@given(SLOPES, COUNTS)
def test_a_geometric_sum_and_its_mean(a, n):
    place = np.arange(n + 1)
    largest = max(0.0, n * a)
    weights = np.exp(place * a - largest)
    assert _convolution._log_sum(a, n) == pytest.approx(log(weights.sum()) + largest, abs=1e-9)
    mean = weights @ place / weights.sum()
    # n/2 stands for a mean of n/2 + n (n + 2) a/12 where (n + 1) a is below 1e-4
    assert _convolution._geometric_mean(a, n) == pytest.approx(mean, rel=2e-5, abs=1e-9)


@given(RATIOS, st.integers(1, 200))
def test_terms_of_a_station(ratios, top):
    p = probabilities(ratios, top)
    series = _convolution._series(ratios, top)
    np.testing.assert_allclose(series.terms(top + 1), p, rtol=1e-11, atol=1e-290)


@given(RATIOS, RATIOS, st.integers(1, 200))
def test_a_station_beside_another(ratios, others, top):
    size = top + 1
    p, series = probabilities(ratios, top), _convolution._series(ratios, top)
    g = probabilities(others, top)
    for found, terms in [
        (series.convolved(g.copy(), size), p),
        (series.number(g.copy(), size), p * np.arange(size)),
    ]:
        right = np.convolve(g, terms)[:size]
        found = np.concatenate([found, np.zeros(size - len(found))])
        np.testing.assert_allclose(found, right, rtol=1e-9, atol=1e-280)


def test_a_series_reaches_as_far_as_its_terms_count():
    series = _convolution._series(np.array([0.5, 0.5, 0.1]), 10_000)
    terms = probabilities(np.array([0.5, 0.5, 0.1]), 320)
    count = int((terms > _convolution.NOTHING).sum())
    assert series.reach == pytest.approx(count, abs=1)
    assert np.flatnonzero(series.terms(400))[-1] == pytest.approx(count, abs=1)


@given(RATIOS, st.floats(-3, 1), st.integers(1, 200))
def test_mean_number_at_a_station(ratios, u, N):
    """The logarithms are those of all terms but the tail, whose ratio is given."""
    p = probabilities(ratios * exp(u), N)
    logs = np.concatenate([[0.0], np.cumsum(np.log(ratios[:-1]))])
    found = _convolution._mean(logs, log(ratios[-1]) + u, u, N)
    assert found == pytest.approx(p @ np.arange(N + 1), rel=1e-4, abs=1e-3)


STATIONS = [
    [[1.0]],
    [[1.0], [0.5]],
    [[1.0], [1.0], [1.0], [0.2]],
    [[1.0, 0.5, 0.25], [0.2]],
    [[0.1, 0.2, 0.4, 0.8]],
    [[1.0, 0.5, 1 / 3, 0.25] * 10, [0.1]],
]


@pytest.mark.parametrize("seconds", STATIONS, ids=len)
@pytest.mark.parametrize("Z", [0.0, 5.0, 300.0])
@pytest.mark.parametrize("N", [1, 3, 30, 1000])
@pytest.mark.parametrize("growth", [GROWTH, inf])
def test_a_rate_makes_its_population_the_mean_or_is_as_high_as_it_may(seconds, Z, N, growth):
    seconds = [np.array(t) for t in seconds]
    s = _convolution._rate(seconds, Z, N, growth)

    def mean(s):
        waiting = sum(probabilities(s * t, N) @ np.arange(N + 1) for t in seconds)
        return min(s * Z, N) + waiting

    tails = [(N - len(t) + 1, t[-1]) for t in seconds if len(t) <= N]
    highest = [exp(min(growth / n, 700)) / last for n, last in tails]
    most = min([*highest, *(exp(GROWTH / N) / t[:N].min() for t in seconds), N / Z if Z else inf])
    near = exp(0.11 / N)  # as near as it is searched for
    assert s <= most * 1.000001
    assert mean(s / near) <= N * (1 + 1e-12)
    assert mean(s * near) >= N * (1 - 1e-12) or s * near >= most


@pytest.mark.parametrize("tiny", [1e-200, 1e-3, 1.0, 1e3])
def test_neither_the_unit_of_time_nor_that_of_work_matters(tiny):
    """A second for each customer, as a demand over a capacity that are both tiny or huge."""
    N = np.array([1, 5, 40])
    X, Q = _convolution.solve([(tiny, np.array([tiny])), (tiny, np.array([2 * tiny]))], 0.0, N)
    # the faster of two stations sees M/M/1/N: arrivals at 1/s as long as the other one is busy
    p = [probabilities(np.array([0.5]), n) for n in N]
    assert pytest.approx([1 - each[-1] for each in p], rel=1e-12) == X
    assert Q[1] == pytest.approx([each @ np.arange(len(each)) for each in p], rel=1e-12)


def test_more_work_is_never_thought_to_be_less():
    """Of more stations, more populations and larger ones, and of stations with longer heads."""
    rng = np.random.default_rng(2026)

    def work(lengths, populations, top):
        series = [_convolution._series(np.full(m, 0.5), top) for m in lengths]
        order, apart = _convolution._order(series, populations)
        some = populations * (apart is not None)
        return _convolution._work(series, np.ones(1), order, some, top)

    for _ in range(200):
        lengths = rng.integers(1, 50, rng.integers(1, 6)).tolist()
        populations, top = int(rng.integers(1, 5)), int(rng.integers(100, 10_000))
        least = work(lengths, populations, top)
        assert least > 0
        assert work(lengths, populations, 2 * top) >= least
        assert work([*lengths, *lengths], populations, top) > least
        assert work(lengths, populations + 1, top) >= least


@pytest.mark.parametrize("more", [1, 4])
def test_a_collapse_is_refused_in_proportion_to_its_work(more):
    """Every population is gone through for every station; and the rest of the network first."""

    def most(stations, populations):
        seconds = [np.array([1.0, 2.0])] + [np.array([0.5])] * (stations - 1)
        with pytest.raises(ValueError, match="throughput collapses") as refused:
            _convolution._collapsed(seconds, 0.0, np.arange(10**9, 10**9 + populations))
        return float(str(refused.value).split("at most ")[1].split(":")[0].replace(",", ""))

    assert most(1, 1) == pytest.approx(most(1 + more, 1) * (2 + more) / 2, rel=1e-6)
    assert most(2, 1) == pytest.approx(most(2, 1 + more) * (1 + more), rel=1e-6)

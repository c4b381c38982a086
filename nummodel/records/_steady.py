"""The steady part of samples of a run, and the mean over it with its error."""

from typing import NamedTuple

import numpy as np

#: Samples that are always left out, of a series of `LONG` samples or more: those at the beginning
#: and at the end were taken while the run started and stopped. Of a shorter series, in proportion.
FIRST, LAST, LONG = 5, 3, 50
#: Batches of the rest, and samples of which batches can be made.
BATCHES, FEWEST = 20, 8
#: Warm-up is cut if chance makes so large a difference of means with less than this probability, by
#: Student's t, for a cut that is known beforehand.
CHANCE = 1e-4


class Steady(NamedTuple):
    """The samples from `first` up to `end` (excluded) are steady; `warm` if more than the usual
    samples were cut at the beginning.
    """

    first: int
    end: int
    warm: bool

    def mean(self, values: np.ndarray) -> tuple[float, float]:
        """The mean of a column of samples over the steady part, and its standard error by batch
        means: neighbouring samples are not independent. NaN for what is not known.
        """
        some = np.asarray(values, dtype=float)[self.first : self.end]
        some = some[~np.isnan(some)]
        if not len(some):
            return np.nan, np.nan
        if len(some) < FEWEST:
            return float(some.mean()), np.nan
        means = _batches(some)
        return float(some.mean()), float(means.std(ddof=1) / np.sqrt(len(means)))


def find(values: np.ndarray) -> Steady:
    """The steady part of a series of samples.

    The usual samples at both ends are cut. Warm-up is cut as well, up to half of the series: the
    beginning whose removal makes the standard error of the mean least (White 1997), if the mean
    over it differs clearly from that of the rest.
    """
    from scipy.special import stdtrit

    values = np.asarray(values, dtype=float)
    n = len(values)
    first, end = min(FIRST, n * FIRST // LONG), n - min(LAST, n * LAST // LONG)
    some = values[first:end]
    if len(some) < 2 * FEWEST or np.isnan(some).any():
        return Steady(first, end, False)
    size = max(1, len(some) // (2 * BATCHES))
    means = some[: len(some) // size * size].reshape(-1, size).mean(axis=1)
    cuts = range(len(means) // 2 + 1)
    cut = min(cuts, key=lambda d: means[d:].var() / len(means[d:]))
    rest = some[cut * size :]
    error = np.std(_batches(rest), ddof=1)
    count = len(_batches(rest))
    share = np.sqrt(count * min(cut * size / len(rest), 1)) or 1.0
    clear = stdtrit(count - 1, 1 - CHANCE / 2) * error / share
    if cut and abs(some[: cut * size].mean() - rest.mean()) > clear:
        return Steady(first + cut * size, end, True)
    return Steady(first, end, False)


def _batches(some: np.ndarray) -> np.ndarray:
    """Means of `BATCHES` parts of a series, or fewer, that follow one another."""
    count = min(BATCHES, max(4, len(some) // 4))
    return np.array([part.mean() for part in np.array_split(some, count)])

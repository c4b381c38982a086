"""What a reader of a fit must know, in sentences."""

from collections.abc import Mapping
from contextlib import suppress
from itertools import combinations
from typing import Any

import numpy as np

from nummodel.answers.bottleneck import rival
from nummodel.fits import Fit, closed, laws, next_load, quantile
from nummodel.nomenclature import show

#: A lead in log-likelihood (`Fit.lead`) below which the points hardly tell which weights are right.
CLOSE = 2.0
#: A last result that is lower than the highest by as many standard errors is told.
LOWER = 3.0
#: Two estimates with a correlation above this are said to trade off.
TRADING = 0.98
#: How much higher than the last load a peak must be to be called beyond the measurements.
BEYOND = 1.05
#: A ceiling that is this many times the highest measurement is far above all measurements.
ABOVE = 1.5
#: A throughput that is lower than another by less than this share is told as being as high.
SAME = 0.005
#: If a curve falls from its peak by as many times more than what was measured falls from its
#: highest, the measurements hardly show this peak.
SHOWN = 3.0
#: A result per load that is as many times that at the first load is told as superlinear.
SUPERLINEAR = 1.25
#: A measurement that makes an interval narrower by less than this share is not worth its while.
WORTH = 0.05
#: How far such predictions were off; see `EXTRAPOLATION`.
OFF = "23 to 42 % off in the median"
#: A warning for every prediction of a law beyond the last load of a fit. The curves have 1 to 512
#: threads, and are of MySQL and MariaDB servers that Percona measured in 2026; they were fitted up
#: to 16, 32, 64 or 128 threads with weights `log`, and predicted from there on.
EXTRAPOLATION = (
    "predictions beyond the last load used are extrapolations: on 35 real curves of database "
    f"servers those by Amdahl's law and the USL were {OFF}, and once a limit had been met, from 64 "
    "threads on, the assumption that throughput stays the same was three to four times closer"
)


def answer(fit: Fit, x: str = "", y: str = "", level: float = 0.95) -> str:
    """What was measured, and where throughput stops growing by the fitted law, in sentences that
    call the load `x` and the result `y`.
    """
    x, y = x or fit.law.quantities[0], y or fit.law.result
    quantile(level, fit.dof)  # raises ValueError for a level that makes no sense

    def between(name: str) -> str:
        low = high = np.nan
        with suppress(ValueError):  # of several peaks, or one of which algebra finds nothing
            low, high = fit.interval(name, level)
        if np.isnan(low):
            return ""
        if name == "N_opt" and _whole(fit):
            low, high = np.floor(low), np.ceil(high)
        ends = [None if np.isinf(end) else float(end) for end in (low, high)]
        return f" ({100 * level:.15g} % interval: {show(ends)})"

    peak = fit.peak()
    if peak and peak[0] == 1:
        last = fit.interval("N_opt", level)[1]
        end = f"; if it has a peak, then at {show(last)} at most" if 1 < last < np.inf else ""
        return (
            f"The fitted curve of {y} only falls as {x} grows from 1{end} ({100 * level:.15g} %)."
        )
    loads, highest = np.unique(fit.N), float(fit.means[0].max())
    where, last = float(loads[fit.means[0].argmax()]), float(loads[-1])
    seen = f"The highest {y} measured is {show(highest)}, at the last load, {x} = {show(last)}."
    if where < last:
        less = float(1 - fit.means[0][-1] / highest)
        then = f"{show(less, '%')} lower" if less >= SAME else "as high"
        seen = (
            f"{y} was highest at {x} = {show(where)}, with {show(highest)}, and {then} at the last "
            f"load, {x} = {show(last)}."
        )
    if peak:
        at = round(peak[0]) if _whole(fit) else peak[0]
        beyond = ", beyond the measurements" if peak[0] > BEYOND * last else ""
        law = (
            f"The fitted law has its peak at {x} = {show(at)}{between('N_opt')}{beyond}, where its "
            f"curve reaches {show(peak[1])}{between('X_max')}"
        )
        if where < last:
            own = 1 - float(fit.at([last])[0]) / peak[1] if peak[0] < last else 0.0
            if own <= SHOWN * (1 - float(fit.means[0][-1]) / highest):
                return f"{seen} {law}."
            return (
                f"{seen} {law}. The measurements hardly show this peak: the curve falls by "
                f"{show(own, '%')} from there to {x} = {show(last)}."
            )
        return f"No peak was measured. {seen} {law}; with another law, {y} may go on rising."
    ceiling = f"{show(fit.X_max)}{between('X_max')}" if np.isfinite(fit.X_max) else ""
    if not ceiling:
        end = ": the fitted law has no ceiling, though every real system has one"
        if np.isnan(fit.X_max):
            end = ", and whether the fitted law has a ceiling is not known"
        return f"{seen} No limit was measured{end}."
    if fit.X_max * ABOVE < highest:
        return (
            f"{seen} The ceiling of the fitted law, {ceiling}, is far below that {show(highest)}: "
            f"the law does not describe what was measured at {x} = {show(where)}."
        )
    if ABOVE * highest < fit.X_max:
        return (
            f"{seen} No limit was measured: the ceiling of the fitted law, {ceiling}, is far above "
            "all measurements."
        )
    return f"{seen} The fitted law has no peak, but levels off at {ceiling}."


def superlinear(N: np.ndarray, X: np.ndarray, x: str, y: str) -> str:
    """Where the result per load is highest, if it is `SUPERLINEAR` times that at the first load."""
    loads, place = np.unique(N, return_inverse=True)
    each = np.bincount(place, X) / np.bincount(place) / loads
    best = int(each.argmax())
    if each[best] < SUPERLINEAR * each[0]:
        return ""
    return (
        f"{y} grew more than in proportion (superlinear): {y} divided by {x} rose from "
        f"{show(each[0])} at {x} = {show(loads[0])} to {show(each[best])} at {show(loads[best])}. "
        "No law here describes that, and no forecast goes on with it. Was the first run cold, or "
        f"does {y} count something else than work that is the same at each load?"
    )


def _whole(fit: Fit) -> bool:
    """Whether loads are counted, and not weighed."""
    return bool((fit.N == np.round(fit.N)).all())


def advice(fit: Fit, x: str = "N", level: float = 0.95) -> str:
    """Which load to measure next, in a sentence; empty if that is not known."""
    found = next_load(fit, level)
    if not found:
        return ""
    of = f"the law's curve at {x} = {show(2 * fit.N.max())}"
    of = "the peak" if found.what == "N_opt" else of
    narrower = f"{100 * found.narrower:.0f} % narrower"
    if found.narrower < WORTH:
        return (
            f"One more measurement would hardly tell more of {of}: its interval would become "
            f"{narrower} at best."
        )
    again = f"{x} = {show(found.N)} once more" if found.N in fit.N else f"at {x} = {show(found.N)}"
    return f"To know {of} better, measure {again}: its interval would become about {narrower}."


def remarks(fit: Fit, level: float = 0.95) -> list[str]:
    """Sentences about a fit: which estimates are on a bound, which ones the data do not determine,
    which pairs of errors nearly cancel, and whether points are superlinear.
    """
    sentences = []
    if fit.dof == 0:
        enough = len(fit.free) + 1
        sentences.append(f"no points to spare: standard errors and intervals need {enough} points")
    for name, bound in fit.at_bound.items():
        upper = bound == fit.law.meaning(name).high
        why = "X does not grow with N" if upper else "these data show no sign of it"
        why = f": {why}" if name not in fit.law.own else ""
        sentences.append(f"{name} is on its {'upper ' * upper}bound {bound:g}{why}")
    for name in fit.free:
        if name.startswith("c_") and name not in ("c_cpu", "c_lock", "c_bottleneck"):
            many = show(float(f"{fit.estimate[name]:.2g}"))
            sentences.append(f"{name[2:]} is no single server: {many} servers fit the measurements")
    peak = fit.peak()
    if peak and peak[0] > BEYOND * fit.N.max():
        last = show(float(fit.N.max()))
        sentences.append(f"the peak is beyond the last load, {last}: no point shows it")
    per_load = fit.X / fit.N
    if "sigma" in fit.at_bound and per_load.max() > per_load[fit.N == fit.N.min()].max():
        more = "some points have more X per N than the first"
        sentences.append(f"superlinear: sigma would be negative; {more}")
    if fit.dof > 0:
        for name, estimate in fit.estimates(level).items():
            if not estimate.identified and name not in fit.at_bound:
                open_above = np.isinf(estimate.high) and estimate.low > fit.law.range_of(name)[0]
                why = f"its interval {'has no upper end' if open_above else 'is its whole range'}"
                sentences.append(f"these data do not determine {name}: {why}")
    return sentences + _trading(fit)


def _trading(fit: Fit) -> list[str]:
    """Pairs of estimates whose errors nearly cancel."""
    stderr = np.sqrt(np.diag(fit.covariance))
    if not np.isfinite(fit.covariance).all() or not (stderr > 0).all():
        return []
    correlation = fit.covariance / stderr[:, None] / stderr
    sentences = []
    for (i, one), (j, other) in combinations(enumerate(fit.inner), 2):
        r = correlation[i, j]
        if abs(r) > TRADING:
            how = "more of one is less of the other" if r < 0 else "they rise together"
            sentences.append(f"{one} and {other} trade off (correlation {r:+.2f}): {how}")
    return sentences


def cautions(
    fits: Mapping[str, Fit], chosen: str | None, run: Any = None, x: str = "", y: str = ""
) -> list[str]:
    """What speaks against the weights or the law that was chosen, or why none was. `run` says of
    which run each point is, where that is known; `x` and `y` are what to call load and result.
    """
    if not chosen:
        return [f"no law could be chosen: {closed.choose(fits)[1]}"]
    fit = fits[chosen]
    if chosen == closed.CLOSED:
        columns = len(fit.part) / len(fit.N)
        runs = None if run is None or columns % 1 else np.tile(run, int(columns))
        other = rival(fit)
        return [*of_fit(fit, runs, x, y), *_lower(fit), *([other] if other else [])]
    return [*_too_few_points(chosen, fits), *of_fit(fit, run, x, y), *_against(chosen, fits)]


def of_fit(fit: Fit, run: Any = None, x: str = "", y: str = "") -> list[str]:
    """Sentences about what may make the intervals of a fit wrong: a law that misses the points, a
    point far from the others, errors that grow otherwise than the weights say, and runs.
    """
    x, y = x or fit.law.quantities[0], y or fit.law.result
    sentences = []
    lack = laws.lack_of_fit(fit)
    if lack and lack.p < laws.WRONG:
        sentences.append(f"the law {laws.missed(fit, lack)}")
    more, other = ("less", "absolute") if fit.weights in ("relative", "log") else ("more", "log")
    unsure = fit.lead < CLOSE and laws.scattered(fit)
    if unsure:
        sentences.append(
            f"these points hardly tell how errors grow with {y}: {fit.weights} "
            f"weights are {show(float(np.exp(fit.lead)))} times as likely as {other} weights, so "
            "compare the intervals by both"
        )
    p, fault = laws.errors(fit, run)
    if p < laws.ODD and fault == "weights" and not unsure:
        sentences.append(
            f"errors seem to grow {more} with {y} than the fit assumes ({fit.weights} weights), "
            "or the law misses some points: the intervals of laws may be wrong, but not those of "
            f"forecasts; try --weights {other} (in a report: -p weights={other})"
        )
    if p < laws.ODD and fault == "outlier":
        far = show(float(np.concatenate([c.N for c in fit.columns])[laws.outlier(fit)]))
        sentences.append(
            f"the point at {x} = {far} is farther from the curve than chance explains: "
            "measure it again, as it may be wrong"
        )
    if p < laws.ODD and fault == "runs":
        sentences.append(
            "the points of the same run are too high or too low together, but intervals assume "
            "that each point has its own error: the intervals are too narrow, and only "
            "measurements of more runs help"
        )
    return sentences


def _lower(fit: Fit) -> list[str]:
    """A warning, if the last result is much lower than the highest: this law cannot fall."""
    at_load, weight, _ = fit.means
    top = int(at_load.argmax())
    lower = 1 - at_load[-1] / at_load[top]
    if not lower > LOWER * np.sqrt(fit.variance * (1 / weight[-1] + 1 / weight[top])):
        return []
    last = f"{fit.law.result} is {show(lower, '%')} lower at the last load than at its highest"
    return [f"{last}, and this law cannot fall: measure the last loads again"]


def better(fits: Mapping[str, Fit], chosen: str | None) -> dict[str, float]:
    """Laws that fit significantly better than the chosen one, but have too few points to be chosen,
    and the p of each.
    """
    large = [large for small, large in laws.NESTED if small == chosen and large in fits]
    few = [name for name in large if np.isnan(laws.aicc(fits[name]))]
    found = {name: laws.nested(fits[chosen or ""], fits[name]) for name in few}
    return {name: p for name, p in found.items() if p < laws.SIGNIFICANT}


def _too_few_points(chosen: str, fits: Mapping[str, Fit]) -> list[str]:
    """Warnings of laws that have too few points to be chosen."""
    return [
        f"{name} fits significantly better than {chosen} (p = {p:.2g}), but cannot be chosen, as a "
        f"comparison takes {laws.enough(fits[name])} points, and there are {len(fits[name].N)}"
        for name, p in better(fits, chosen).items()
    ]


def _against(chosen: str, fits: Mapping[str, Fit]) -> list[str]:
    """A warning, if another law predicts left-out points much better than the chosen one."""
    errors = {name: f.loo_rmse for name, f in fits.items() if np.isfinite(f.loo_rmse)}
    best = min(errors, key=errors.__getitem__, default=chosen)
    noise = 1e-9 * fits[chosen].X.mean()
    if chosen not in errors or errors[chosen] <= 2 * errors[best] + noise:
        return []
    ratio = errors[chosen] / max(errors[best], noise)
    return [f"{best} predicts points that are left out {ratio:.1f} times better than {chosen}"]

"""The answer of `nummodel fit` in words: what the chosen law says, or why no law is chosen.

`study` is a `Study`, of the module `study`, which calls this one.
"""

from typing import Any

from nummodel.answers import remarks
from nummodel.answers.full import FULL
from nummodel.fits import Fit, closed
from nummodel.nomenclature import show


def answer(study: Any) -> str:
    """Paragraphs of the law, the forecast and what it rests on, the target, and the law's worth:
    where throughput stops growing and what limits it; what the next doubling brings; where the
    target is met; what speaks against the law, and which load to measure next.
    """
    N, X, _, x, y, *_ = study.used
    first = remarks.superlinear(N, X, x, y)
    ahead = [study.ahead.answer(study.at)]
    if study.wanted and study.target:
        ahead.append(study.ahead.said_of(study.target, study.wanted))
    if study.fit:
        found = [remarks.answer(study.fit, x, y, study.level)]
        for other in remarks.better(study.fits, study.chosen):
            more = f"{other} fits better, but has too few points to be chosen"
            found.append(f"This law, {study.chosen}, probably misses some points: {more}.")
        if study.limit:
            what = study.limit["what"]
            if f"U_{what}" not in study.measured:
                what = "something that was not measured, perhaps a lock, as the fit has it"
                if servers := study.fit.values.get(f"c_{study.limit['what']}"):
                    places = f"of about {show(float(f'{servers:.2g}'))} places"
                    what = f"something that was not measured, perhaps a pool {places}"
            found.append(f"What limits it is {what}: {study.limit['why']}.")
        elif study.measured and study.chosen == closed.CLOSED:
            found.append(_open_limit(study, study.fit))
        else:
            found += _nearly_full(study)
        starts = ["Of the fitted law:", *["Also,"] * len(study.cautions)]
        against = [f"{a} {b}." for a, b in zip(starts, study.cautions, strict=False)]
        if not _refuted(study):
            against.append(remarks.advice(study.fit, x, study.level))
        return "\n".join([first, " ".join(found), *ahead, " ".join(against)]).strip()
    why = f"No law is chosen: {study.choice[1]}"
    if " rejected: " in why and "too few points to compare" not in why:
        why = "No law fits these points: all laws are rejected, for the reasons below"
    highest = f"The highest {y} measured is {show(X.max())}, at {x} = {show(N[X.argmax()])}"
    unused = [text for text in study.used.warnings if "--law closed uses it" in text]
    refused = [f"{said[:1].upper()}{said[1:]}." for said in [*study.cautions, *unused]]
    found = [f"{why}. {highest}.", *_nearly_full(study), *refused]
    return "\n".join([first, " ".join(found), *ahead]).strip()


def _open_limit(study: Any, fit: Fit) -> str:
    """What each of the two nearest limits allows, where it is open which of them it is."""
    if not any(n.startswith("U_") for n in study.measured):
        return "What limits it is open, as no utilisation was measured."
    both = sorted(closed.times(fit).items(), key=lambda item: -item[1])[:2]
    said = [
        f"{'what was not measured' if f'U_{n}' not in study.measured else n} allows "
        f"{study.used.y} = {show(float(f'{1 / t:.3g}'))}"
        for n, t in both
        if t > 0
    ]
    last = study.used.N.argmax()
    U = {n: float(study.measured[f"U_{n}"][last]) for n, _ in both if f"U_{n}" in study.measured}
    used = [f"; {n} was {show(u, '%')} in use at the last load" for n, u in U.items()]
    return f"What limits it is open: by the fit, {' and '.join(said)}{''.join(used)}."


def _nearly_full(study: Any) -> list[str]:
    """Sentences about stations that were nearly full at the last load: the throughput that each of
    them allows, the lowest first. No model of the system is needed. A station that a caution names
    already is left out.
    """
    said, unsure, last = [], False, show(study.used.N.max())
    for column, (U, _) in sorted(study.allowed.items(), key=lambda item: item[1][1]):
        name = column[2:]
        if U < FULL or any(caution.startswith(f"{column} is") for caution in study.cautions):
            continue
        said.append(
            f"{name} was {show(U, '%')} in use at the last load, {study.used.x} = {last}: "
            f"{study.bounded(column)}."
        )
        unsure |= name not in ("cpu", "lock") and f"c_{name}" not in study.known
    if unsure:
        said.append(
            "But a device that serves several requests at once may be in use all the time and not "
            "be full, so the forecast does not use this limit."
        )
    return said


def _refuted(study: Any) -> bool:
    """Whether the law's curve at twice the last load lies outside the forecast's interval."""
    then = study.ahead.rows([2 * study.ahead.last])[0]
    return bool(then.law < then.low or then.law > then.high)

"""Claims: what counts as a hit, what fails, and what travels in a notebook."""

import json
import math

import nbformat
import pytest

from nummodel.records import claims, data

ITR = data.value("zvm-scaling", "itr", N=32)
#: What a claim is stored with, which earlier reports and other programs rely on.
STORED = set("schema what kind model documented low high hit expect ok why source unit".split())


def check(**options):
    """The claim that `claims.check` displays."""
    return shown(claims.check, "it", **{"kind": "fit"} | options)


def shown(function, *arguments, **options):
    rows = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(claims, "_display", lambda claim: (rows.append(claim), print(claim)))
        function(*arguments, **options)
    return rows[0]


@pytest.mark.parametrize(
    "model, documented, options, hit",
    [
        (16490, ITR, {}, True),  # known to 44
        (16540, ITR, {}, False),
        (20000, (15000, math.inf), {}, True),
        (14999, (15000, math.inf), {}, False),
        (1.04, 1.0, {"rtol": 0.05, "why": "about"}, True),
        (1.06, 1.0, {"atol": 0.05, "why": "about"}, False),
        ((16000, 17000), ITR, {}, True),
        ((16500, 16530), ITR, {}, True),  # within its rounding
        ((16600, 17000), ITR, {}, False),
        ((1, 2), (2, 3), {}, True),
        ((1, 2), (2.1, 3), {}, False),
        (True, True, {}, True),
        (False, True, {}, False),
        (False, False, {}, True),
    ],
)
def test_hits_and_misses(model, documented, options, hit, capsys):
    if hit:
        assert check(model=model, documented=documented, **options).hit
    else:
        with pytest.raises(AssertionError, match=r"FAILS.*: it: model"):
            check(model=model, documented=documented, **options)
        known = options | {"expect": "miss", "why": "known"}
        assert check(model=model, documented=documented, **known).ok
    assert ": it" in capsys.readouterr().out


@pytest.mark.parametrize(
    "model, documented, verdict",
    [
        ((2, 3), (1, 4), "holds"),
        ((2, 5), (1, math.inf), "holds"),
        ((2, 5), (1, 4), "is compatible"),
        ((0, 5), (1, 4), "is compatible"),
        ((0, 5), (-math.inf, 4), "is compatible"),
        (2, (1, 4), "holds"),
    ],
)
def test_an_interval_holds_only_as_a_whole(model, documented, verdict):
    claim = check(model=model, documented=documented)
    assert claim.verdict == verdict and str(claim).startswith(f"{verdict}: it")
    output = nbformat.v4.new_output("display_data", data=claim._repr_mimebundle_())
    cell = nbformat.v4.new_code_cell(outputs=[output])
    assert [c["verdict"] for c in claims.collected({"cells": [cell]})] == [verdict]


def test_an_unexpected_hit_fails():
    with pytest.raises(AssertionError, match="FAILS"):
        check(model=1.0, documented=(0, 2), expect="miss", why="too simple a model")


@pytest.mark.parametrize(
    "options, message",
    [
        ({"documented": 1.0}, "no tolerance"),
        ({"documented": 1.0, "rtol": 0.1}, "needs a why"),
        ({"documented": (0, 2), "expect": "miss"}, "needs a why"),
        ({"documented": (0, 2), "kind": "guess"}, "calibration"),
        ({"documented": (0, 2), "expect": "maybe"}, "'hit' or 'miss'"),
        ({"documented": (0, 2), "model": math.nan}, "finite"),
        ({"documented": (0, 2), "rtol": 0.1, "why": "about"}, "only a number"),
        ({"documented": True, "model": 0.5}, "cannot be held against"),
        ({"documented": 1.0, "atol": 1, "why": "about", "model": None}, "cannot be held"),
        ({"documented": (9, 1), "expect": "miss", "why": "known"}, "lower end first"),
        ({"documented": (math.nan, 1), "expect": "miss", "why": "known"}, "lower end first"),
        ({"documented": (2, 3), "model": (5, 1), "expect": "miss", "why": "known"}, "lower end"),
    ],
)
def test_claims_that_cannot_be_put(options, message):
    with pytest.raises(ValueError, match=message):
        check(**{"model": 1.0} | options)


def test_a_failed_claim_is_displayed_before_it_fails(capsys):
    with pytest.raises(AssertionError):
        claims.check("it", model=3, documented=(0, 2), kind="fit")
    assert capsys.readouterr().out.startswith("FAILS: it: model 3, documented 0 to 2")


def test_what_travels_in_a_notebook_is_json_with_a_schema():
    bundle = check(model=20000, documented=(15000, math.inf))._repr_mimebundle_()
    claim = json.loads(json.dumps(bundle[claims.MIME], allow_nan=False))
    assert claim["schema"] == 1 and claim["documented"] == [15000, None]
    assert claim["low"] == 15000 and claim["high"] is None
    output = nbformat.v4.new_output("display_data", data=bundle)
    cell = nbformat.v4.new_code_cell("", outputs=[output])
    assert list(claims.collected(nbformat.v4.new_notebook(cells=[cell]))) == [
        claim | {"verdict": "holds", "margin": ""}
    ]


@pytest.mark.parametrize(
    "model, documented, options, outcome",
    [
        (122, 100.0, {"rtol": 0.25, "why": "wide"}, "holds, 22 % off (tolerance 25 %)"),
        (78, 100.0, {"rtol": 0.25, "why": "wide"}, "holds, 22 % off (tolerance 25 %)"),
        (-1.04, -1, {"rtol": 0.055, "why": "about"}, "holds, 4 % off (tolerance 5.5 %)"),
        (6.17, 6, {"atol": 0.5, "why": "about"}, "holds, 2.8 % off (tolerance 8.3 %)"),
        (236, 100, {"rtol": 0.25, "why": "known"}, "misses, as known, 136 % off (tolerance 25 %)"),
        (16490, ITR, {}, "holds, within rounding (±44)"),
        (16400, ITR, {"why": "known"}, "misses, as known, 0.56 % off (tolerance 0.26 %)"),
        (1883, 1884.3, {"atol": 0.5, "why": "digits"}, "misses, as known, by more than ±0.5"),
        ((16000, 17000), ITR, {}, "is compatible, within rounding (±44)"),
        ((90, 96), 100, {"rtol": 0.05, "why": "about"}, "is compatible, within 5 %"),
        (1884, 1884.3, {"atol": 0.5, "why": "digits"}, "holds, within ±0.5"),
        (0.1, 0, {"atol": 0.25, "why": "about"}, "holds, within ±0.25"),
        (20000, (15000, math.inf), {}, "holds"),
        (True, True, {}, "holds"),
    ],
)
def test_every_verdict_shows_its_tolerance(model, documented, options, outcome):
    """An interval, and a statement, are shown as they are."""
    expect = "miss" if outcome.startswith("misses") else "hit"
    claim = check(model=model, documented=documented, expect=expect, **options)
    assert str(claim).startswith(f"{outcome}: it")
    bundle = claim._repr_mimebundle_()
    row = bundle["text/html"].replace("<b>", "").replace("</b>", "")
    assert 'id="it"' in row and f"<td>{outcome} <i>(fit" in row
    stored = json.loads(json.dumps(bundle[claims.MIME]))
    output = nbformat.v4.new_output("display_data", data={claims.MIME: stored})
    cell = nbformat.v4.new_code_cell(outputs=[output])
    (read,) = claims.collected({"cells": [cell]})
    assert outcome == ", ".join(filter(None, (read["verdict"], read["margin"])))
    assert set(stored) == STORED


def test_a_figure_beyond_its_rounding_fails_by_it():
    with pytest.raises(AssertionError, match=r"FAILS, by more than rounding \(±44\): it"):
        check(model=16400, documented=ITR)


def test_records_have_no_verdict():
    """Not even intervals without an end."""
    bundle = shown(claims.record, "it", (1.0, math.inf))._repr_mimebundle_()
    output = nbformat.v4.new_output("display_data", data=bundle)
    cell = nbformat.v4.new_code_cell("", outputs=[output])
    (claim,) = claims.collected({"cells": [cell]})
    assert claim["model"] == [1.0, None] and claim["verdict"] == claim["margin"] == ""


def test_a_row_is_safe_html():
    row = shown(claims.record, "<b>", 1)._repr_mimebundle_()["text/html"]
    assert "<b>" not in row and "&lt;b&gt;" in row


@pytest.mark.parametrize(
    "value, expected, agree",
    [
        (0.02571, 0.0257, True),
        (0.02576, 0.0257, False),
        (None, None, True),
        (None, 10.0, False),
        (10, 10.0, True),
        (1.04e-5, 1e-5, True),
        (1.6e-5, 1e-5, False),
        (5, [4, None], True),
        (None, [4, None], False),
        (5, [None, 4], False),
        ("amdahl", "amdahl", True),
        (False, True, False),
    ],
)
def test_an_answer_agrees_to_the_digits_it_is_written_with(value, expected, agree):
    assert claims.agrees(value, expected) is agree

"""Published tables: every one has a card that tells the truth, every identity holds."""

import csv
import hashlib
import re
from decimal import Decimal
from html import escape
from pathlib import Path

import numpy as np
import pytest

from nummodel.records import data

TABLES = data.tables()
AUDITED = [name for name in TABLES if data.card(name).get("identities")]

#: What a second person typed from the sources alone, without a look at data/. The same person typed
#: `zvm-text` twice.
TYPED = Path(__file__).parent / "typed"
#: Tables that a simulation of this project wrote, and their SHA-256. Each file came from one run of
#: the make target that is named beside it. A hash changes only when that target has run again.
SIMULATED = {
    # make coverage SEED=2026
    "coverage": "632ac303c666f45519535b3312b5a28a7d6fd5ceb05232821ba4e6f3cb3d4015",
    # make simulate SEED=2026
    "allen-cunneen": "f514cc67bcc08d6df7372e3294f68546d2058486897b46fa7aa1826ac4f2aec3",
    # .venv/bin/python benchmarks/limits.py --example
    "simulated-shop": "032f3d4a651d7f64710f14bd3fdb5f120331ef26d08d9afdc1e1adfa28ba304a",
}
#: Tables that a program made of logs and files of figures: nobody typed them.
COPIED = {
    "scaling-curves": "f7d46c3292807e2efa8684591eed8434558dc4acec7f6d147f99fdb67f5bb703",
    "mysql2026": "04488d80b1230cc756f7170d1d25634832eed72e1455f45b89b5e84fe6452e8a",
    "directory-lock": "cce68a7ae450b18356d3832db84e9270a9da46712ddbf760a83d2a6cd0fd0811",
    "lock-stat-lines": "fdf01f92d592a38601a3bff6d51ded7925ccb19d36ce3fd8e295fe50684cb110",
    "lock-stat-pair": "f02f0d404e13f0fd540ae36183c4502d0f0405d2da95ce92061963c64ade609f",
    "litl-locks-a48": "cff783cebdac08403bac685f9d3ec24e8cb22e4e51ee089d3ca997b6891f7b44",
    "litl-locks-i20": "346001fd2a82a675c5433850443b640a5bfad0096cac1c044417b62a3516952f",
}
#: Columns whose source the second person did not have. The hash of their table stands in for them.
TYPED_ONCE = {"sysv-semop": {"refactored_per_s", "fine_per_s"}}
TYPED_ONCE_HASHES = {
    "sysv-semop": "d52b4b911dfecffbd9a7a932f2e3042ebdc7132a29e239b9ac4e0a226259cfcc"
}


def lines(path):
    with open(path, newline="") as file:
        return list(csv.reader(file))


def path_of(name):
    return data.HOME / "data" / data.card(name)["path"]


def cells(name):
    return lines(path_of(name))


def columns(table):
    """Columns by name, in order."""
    header, *rows = table
    return dict(zip(header, zip(*rows, strict=True), strict=True))


def same(one, other, kind):
    """Texts as they are; numbers to the last printed digit: 0.290 is .290, but is not 0.29."""
    if kind == "string":
        return one == other
    return Decimal(one).as_tuple() == Decimal(other).as_tuple()


def test_every_table_has_a_card():
    files = {path.name for path in (data.HOME / "data").glob("*.csv")}
    assert files == {data.card(name)["path"] for name in TABLES}


@pytest.mark.parametrize("name", TABLES)
def test_cards_tell_the_truth(name):
    card, (header, *rows) = data.card(name), cells(name)
    assert header == [field["name"] for field in card["schema"]["fields"]]
    assert len(rows) == card["rows"]
    content = path_of(name).read_bytes()
    assert card["hash"] == f"sha256:{hashlib.sha256(content).hexdigest()}"
    assert card["title"] and card["standing"] and card["licenses"][0]["title"]
    assert all(source["title"] and source["locator"] for source in card["sources"])


def test_every_table_was_typed_a_second_time_or_came_from_a_program():
    copies = {path.stem: path for path in TYPED.iterdir()}
    assert set(copies) == set(TABLES) - set(SIMULATED) - set(COPIED)
    for name, copy in copies.items():
        assert not copy.is_symlink() and not copy.samefile(path_of(name))


@pytest.mark.parametrize("name", [name for name in TABLES if name not in SIMULATED | COPIED])
def test_both_typings_of_a_table_are_equal(name):
    first, second = columns(cells(name)), columns(lines(TYPED / f"{name}.csv"))
    assert list(second) == [column for column in first if column not in TYPED_ONCE.get(name, ())]
    kinds = {field["name"]: field["type"] for field in data.card(name)["schema"]["fields"]}
    for column, typed in second.items():
        pairs = zip(first[column], typed, strict=True)
        assert [pair for pair in pairs if not same(*pair, kinds[column])] == [], column


@pytest.mark.parametrize("name, known", (SIMULATED | COPIED | TYPED_ONCE_HASHES).items())
def test_tables_without_a_full_second_copy_are_as_they_were(name, known):
    assert hashlib.sha256(path_of(name).read_bytes()).hexdigest() == known


@pytest.mark.parametrize("name", TABLES)
def test_columns_are_in_si_units_and_named_without_them(name):
    frame = data.load(name)
    for field, column in zip(data.card(name)["schema"]["fields"], frame, strict=True):
        suffix, size = data.UNITS[field["unit"]]
        assert field["title"] and field["description"]
        assert field["name"] == column + suffix
        if field["type"] == "number":
            texts = [row[list(frame).index(column)] for row in cells(name)[1:]]
            printed = [size * float(text or "nan") for text in texts]
            assert frame[column].tolist() == pytest.approx(printed, nan_ok=True)


@pytest.mark.parametrize("name", AUDITED)
def test_all_identities_hold_to_the_printed_digits(name):
    audit = data.audit(name)
    assert len(audit) and audit["holds"].all(), audit[~audit["holds"]]


@pytest.mark.parametrize("name", AUDITED)
def test_an_audit_notices_a_misprint_of_three_units(name, monkeypatch):
    """In any figure that its sources know well enough; else the test above would prove little."""
    frame, halves = data._read(name)
    noticed = possible = 0
    for column in {identity["column"] for identity in data.card(name)["identities"]}:
        audit = data.audit(name)
        slack = audit[audit["column"] == column].groupby("row")["slack"].min()
        for row, allowed in zip(frame.index, slack.loc[frame.iloc[:, 0]], strict=True):
            unit = 2 * halves[column][row]
            if unit == 0 or allowed >= 3 * unit - 1e-12:
                continue
            wrong = frame.copy()
            wrong.loc[row, column] += 3 * unit
            monkeypatch.setattr(data, "_read", lambda _, wrong=wrong: (wrong, halves))
            possible += 1
            noticed += not data.audit(name)["holds"].all()
            monkeypatch.undo()
    assert noticed == possible > 0


def test_zvm_itr_is_known_to_the_rounding_of_the_utilisation():
    """design: at 32-way three digits of utilisation leave 0.26 %."""
    itr = data.value("zvm-scaling", "itr", N=32)
    assert itr.half / itr == pytest.approx(0.0026, abs=0.0001)
    assert "Table 1" in itr.source


def test_percent_and_parts_of_a_second_are_loaded_in_si_units():
    assert data.load("zvm-scaling").set_index("N")["util"][12] == pytest.approx(0.514)
    locks = data.load("zvm-lock-log").set_index("lock")
    assert locks["shared_wait"]["SRMSLOCK"] == pytest.approx(949.1e-6)
    latency = data.load("core-to-core").set_index("cpu")["p25"]
    assert latency["Dual Intel(R) Xeon(R) CPU E5-2690 0 @ 2.90GHz"] == pytest.approx(32.19e-9)


def test_columns_that_were_typed_once_have_the_figures_of_their_source():
    semop = data.load("sysv-semop").set_index("N")
    assert semop.loc[10, ["refactored", "fine"]].tolist() == [726325, 2142206]
    assert semop["fine"][100] == 3059159


@pytest.mark.parametrize(
    "name, cores", [("litl-locks", 10), ("litl-locks-i20", 10), ("litl-locks-a48", 6)]
)
def test_threads_of_the_lock_programs_are_as_many_a_node(name, cores):
    programs = data.load(name)
    assert (programs["N"] == cores * programs["nodes"]).all()


def test_the_copied_table_of_locks_has_the_figures_that_were_typed():
    keys = ["program", "lock", "nodes"]
    typed, copied = (data.load(name).set_index(keys) for name in ("litl-locks", "litl-locks-i20"))
    copied = copied.loc[typed.index]
    assert (copied["X"] == typed["X"]).all() and (copied["runs"] == typed["runs"]).all()
    for column in ("mean", "spread"):
        assert copied[column].to_numpy() == pytest.approx(typed[column].to_numpy(), abs=0.0501)


def test_quantiles_of_core_to_core_latency_are_in_order():
    quantiles = data.load("core-to-core").loc[:, "min":"max"].to_numpy()
    assert (np.diff(quantiles, axis=1) >= 0).all()


def test_memory_of_a_gs320_is_that_of_all_its_qbbs():
    memory = data.load("gs-examples").set_index("figure")["low"]
    nodes = data.load("gs-topology").set_index("system")["nodes"]
    assert memory["memory of a QBB, GB"] * nodes["GS320"] == memory["memory of a GS320, GB"]


@pytest.mark.parametrize("name", [n for n in TABLES if {"low", "high"} <= set(data.load(n))])
def test_figures_lie_between_what_their_words_allow(name):
    frame = data.load(name)
    assert (frame["low"] <= frame["high"]).all()
    for column in {"X", "value"} & set(frame):
        assert frame[column].between(frame["low"], frame["high"]).all()


def half_of(about: float) -> float:
    """The rule of `nummodel.records.data` for a figure that is called about."""
    digits = f"{about:.0f}"
    place = min(len(digits), max(2, len(digits.rstrip("0"))))
    fives = len(digits) > 1 and digits[place - 1] in "05"
    return (5 if fives else 1) * 10 ** (len(digits) - place) / 2


def test_about_means_the_same_in_all_four_documents():
    """`low` and `high` are equally far from the figure; what is second hand is not theirs."""
    seen = []
    for name in (name for name in TABLES if data.card(name)["standing"] != "second hand"):
        header, *rows = cells(name)
        low, high = ([i for i, h in enumerate(header) if h.startswith(e)] for e in ("low", "high"))
        for row in rows:
            if low and re.search(r"\b(about|approximately)\b", " ".join(row)):
                ends = float(row[low[0]]), float(row[high[0]])
                assert np.subtract(*ends[::-1]) / 2 == half_of(sum(ends) / 2), row
                seen.append(sum(ends) / 2)
    assert {50, 45_000, 3, 6, 20, 49_500, 71_000, 50_000_000} <= set(seen)


def test_the_lock_log_belongs_to_the_32_way_run():
    locks, runs = data.load("zvm-lock-log"), data.load("zvm-scaling").set_index("N")
    share = locks.set_index("lock")["total_spin"]
    assert share["SRMSLOCK"] == runs.loc[32, "sch_spin"]
    assert share["HCPTRQLK"] == runs.loc[32, "trq_spin"]
    assert share.sum() == pytest.approx(runs.loc[32, "spin"], abs=1.5e-4)


def test_half_widths_travel_through_identities():
    own, all_of_it = data._read("zvm-scaling")[1], data.half_widths("zvm-scaling")
    runs = data.load("zvm-scaling")
    for ratio, part in (("itr_ratio", "itr"), ("cpu_per_tx_ratio", "cpu_per_tx")):
        share = all_of_it / runs.drop(columns="run_id")
        assert (share[ratio] >= share[part] * (1 - 1e-9)).all()
    assert (all_of_it["itr"] > 100 * own["itr"]).all()
    assert (all_of_it["tx"] == own["tx"]).all()
    assert np.isfinite(all_of_it.to_numpy(dtype=float)).all()


def test_a_loaded_table_is_ones_own():
    mine = data.load("zvm-scaling")
    mine["tx"] = 0.0
    assert data.load("zvm-scaling")["tx"][0] == 4674.21


def test_unknown_names_are_told_what_there_is():
    with pytest.raises(KeyError, match="zvm-scaling"):
        data.load("nothing")
    with pytest.raises(KeyError, match="0 rows"):
        data.value("zvm-scaling", "itr", N=7)


@pytest.mark.parametrize("name", TABLES)
def test_a_card_shows_itself(name):
    shown, card = data.card(name)._repr_html_(), data.card(name)
    said = [card["title"], card["description"], card["standing"], card["licenses"][0]["title"]]
    said += [source["locator"] for source in card["sources"]]
    said += [field["description"] for field in card["schema"]["fields"]]
    assert [text for text in said if escape(text) not in shown] == []
    assert shown.count("<tr>") == 1 + len(card["schema"]["fields"])


def test_a_card_tells_units_as_printed_and_how_far_rounding_leaves_a_figure():
    rows = {name: more for name, *more in data.card("zvm-scaling")._columns()}
    assert rows["util"][:2] == ["%", "± 0.05"] and rows["N"][:2] == ["", "none"]
    assert rows["run_id"][:2] == ["", ""]
    # Of ITR the least certain figure is that of 32-way, by 0.0005 of a utilisation of 0.189.
    assert rows["itr"][:2] == ["1/s", f"± {16492.06 * 0.0005 / 0.189:.2g}"]

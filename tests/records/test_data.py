"""Published tables: every one has a card that tells the truth, every identity holds."""

import csv
import hashlib
from html import escape

import numpy as np
import pytest

from nummodel.records import data

TABLES = data.tables()
AUDITED = [name for name in TABLES if data.card(name).get("identities")]


def cells(name):
    with open(data.HOME / "data" / data.card(name)["path"], newline="") as file:
        return list(csv.reader(file))


def test_every_table_has_a_card():
    files = {path.name for path in (data.HOME / "data").glob("*.csv")}
    assert files == {data.card(name)["path"] for name in TABLES}


@pytest.mark.parametrize("name", TABLES)
def test_cards_tell_the_truth(name):
    card, (header, *rows) = data.card(name), cells(name)
    assert header == [field["name"] for field in card["schema"]["fields"]]
    assert len(rows) == card["rows"]
    content = (data.HOME / "data" / card["path"]).read_bytes()
    assert card["hash"] == f"sha256:{hashlib.sha256(content).hexdigest()}"
    assert card["title"] and card["standing"] and card["licenses"][0]["title"]
    assert all(source["title"] and source["locator"] for source in card["sources"])


@pytest.mark.parametrize("name", TABLES)
def test_columns_are_in_si_units_and_named_without_them(name):
    frame = data.load(name)
    for field, column in zip(data.card(name)["schema"]["fields"], frame, strict=True):
        suffix, size = data.UNITS[field["unit"]]
        assert field["title"] and field["description"]
        assert field["name"] == column + suffix
        if field["type"] == "number":
            printed = [float(row[list(frame).index(column)]) for row in cells(name)[1:]]
            assert frame[column].tolist() == pytest.approx([size * p for p in printed])


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


def test_zvm_figures_as_the_document_prints_them():
    """Figures of the running text and of the tables' corners, typed a second time."""
    runs = data.load("zvm-scaling").set_index("N")
    assert list(runs.index) == [6, 12, 18, 24, 30, 32]
    assert runs.loc[6, "tx"] == 4674.21 and runs.loc[32, "itr"] == 16492.06
    assert runs.loc[24, "diagnoses_ratio"] == 1.180 and runs.loc[32, "run_id"] == "AVPK5186"
    assert runs.loc[12, "util"] == pytest.approx(0.514)
    locks = data.load("zvm-lock-log").set_index("lock")
    assert len(locks) == 26
    assert locks.loc["SRMSLOCK", "shared_wait"] == pytest.approx(949.1e-6)


def test_lock_figures_as_their_sources_print_them():
    """Typed a second time."""
    programs = data.load("litl-locks").set_index(["program", "lock", "nodes"])
    assert programs["X"]["kyotocabinet", "mcs_spin", 1] == 617994
    assert programs["X"]["radiosity_ll", "spinlock", 2] == 84782
    assert (programs["N"] == 10 * programs.index.get_level_values("nodes")).all()
    semop = data.load("sysv-semop").set_index("N")
    assert semop.loc[10].tolist() == [610652, 726325, 1783589, 2142206]
    assert semop["fine"][100] == 3059159 and semop["rwlock"].max() == 1783589
    latency = data.load("core-to-core").set_index("cpu")
    e5 = latency.loc["Dual Intel(R) Xeon(R) CPU E5-2690 0 @ 2.90GHz"]
    assert e5["p25"] == pytest.approx(32.19e-9) and e5["p75"] == pytest.approx(114.44e-9)
    quantiles = latency[["min", "p5", "p25", "median", "p75", "p95", "max"]].to_numpy()
    assert (np.diff(quantiles, axis=1) >= 0).all()


@pytest.mark.parametrize("name", [n for n in TABLES if {"low", "high"} <= set(data.load(n))])
def test_figures_lie_between_what_their_words_allow(name):
    frame = data.load(name)
    assert (frame["low"] <= frame["high"]).all()
    for column in {"X", "value"} & set(frame):
        assert frame[column].between(frame["low"], frame["high"]).all()


def test_rdb_figures_as_the_document_says_them():
    """Typed a second time: about, less than and the like are intervals."""
    rates, shares, counts = (
        data.load(f"rdb-{table}").iloc[:, [0, 3, 4]].set_index(table[:-1])
        for table in ("rates", "shares", "counts")
    )
    assert tuple(rates.loc["final_rx4640"]) == (1700.5, 1701.5)
    assert tuple(rates.loc["load_rx4640"]) == (70_500, 71_500)
    assert tuple(shares.loc["first_lead"]) == (0.15, 0.25)
    assert tuple(shares.loc["first_busy_alpha"]) == (0, 0.25)
    assert tuple(shares.loc["v72_gain_some"]) == (0.1, np.inf)
    assert tuple(counts.loc["rows"]) == (5e8, 5e8)
    assert tuple(counts.loc["blocks"]) == (4.5e7, 5.5e7)
    penalty = data.load("alignment-penalty").set_index("processor")
    assert tuple(penalty.loc["Itanium", ["low", "high"]]) == (10_000, 15_000)


def test_alphaserver_figures_as_the_documents_say_them():
    """Typed a second time, in their units: about, or more, and slower are intervals."""
    run = data.load("gs-example3").set_index("figure")[["low", "high"]].T
    assert {figure: tuple(ends) for figure, ends in run.items()} == {
        "window": (60, 120),
        "run on GS140": (47.5, 52.5),
        "run on GS160, first": (47.5, np.inf),
        "run on GS160, last": (27.5, 28.5),
        "CPUs": (12, 12),
        "QBBs": (3, 3),
        "memory of GS140": (8, 8),
        "memory of GS160": (48, 48),
        "data on the RAMdisk": (2.5, 3.5),
        "RAMdisk I/O, first": (15_000, np.inf),
        "share of I/O across QBBs, first": (0.655, 0.665),
        "lock operations, first": (145_000, 155_000),
        "lock operations, last": (42_500, 47_500),
        "reporter processes": (1, 1),
    }
    others = data.load("gs-examples").set_index("figure")[["low", "high"]]
    assert tuple(others["low"].iloc[:13]) == (32, 256, 2, 1, 1, 3, 1, 1000, 1, 4, 4, 4, 4)
    assert tuple(others["high"].iloc[:13]) == (32, 256, 2, 1, 3, 3, 3, 1000, 3, 4, 4, 4, 4)
    assert others.iloc[13:].to_numpy().tolist() == [[0, 0.5], [0, 0.75]]
    memory, systems = others["low"].iloc[:2], data.load("gs-topology").set_index("system")
    assert memory.iloc[0] * systems["nodes"]["GS320"] == memory.iloc[1]
    guides = data.load("gs-guides").set_index("quantity").T
    assert tuple(guides["remote over local latency"]) == (1, 3)
    assert tuple(guides["CPUs that deserve a dedicated lock manager"]) == (6, np.inf)
    assert tuple(guides["MP synchronization that deserves it, CPUs"]) == (2, np.inf)
    modes = data.load("monitor-modes")["share"]
    assert modes.tolist() == pytest.approx([0.47, 7.49, 4.75, 1.16, 0.21, 0.16, 1.8])


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

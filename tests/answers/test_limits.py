"""What limits a system, and what a change brings: against networks that are solved directly."""

import html
import re

import numpy as np
import pandas as pd
import pytest
from quick import one_in, slow

from nummodel.answers import full, limits, study
from nummodel.errors import InputError
from nummodel.fits import closed
from nummodel.models import networks
from nummodel.records import data
from nummodel.reports import report, runs

N = np.array([1, 2, 5, 10, 20, 40, 60, 80])
#: Processors, a disk and a lock, whose demands are known.
C, D_CPU, D_DISK, D_LOCK, Z = 8, 0.032, 0.0032, 0.0016, 0.2


def stations(c=C, cpu=D_CPU, disks=1, disk=D_DISK, locks=1):
    """The network, with equal shares of the work at each disk and at each lock."""
    return [
        networks.queue(cpu, servers=c),
        *[networks.queue(disk / disks)] * disks,
        *[networks.queue(D_LOCK / locks)] * locks,
    ]


def written(path, error=0.0, seed=1, **changes):
    """A table of the system as CSV, with log-normal errors, and with columns changed."""
    random = np.random.default_rng(seed)
    solved = networks.solve(stations(), N, Z)
    X = solved.X
    columns = {"X": X, "R": N / X - Z, "U_cpu": X * D_CPU / C, "U_disk": X * D_DISK}
    for name, column in columns.items():
        noisy = column * np.exp(error * random.standard_normal(len(N)))
        columns[name] = np.minimum(noisy, 1.0) if name[0] == "U" else noisy
    table = pd.DataFrame({"N": N} | columns | {"c_cpu": C} | changes)
    table.dropna(axis=1).to_csv(path, index=False)
    return path


def one_station():
    """Columns of a system that has nothing but its processors."""
    X = networks.solve(stations()[:1], N, Z).X
    return {"X": X, "R": N / X - Z, "U_cpu": X * D_CPU / C}


def noisy(network):
    """What is measured of another system, with errors of a percent, but for the disk."""
    random = np.random.default_rng(3)
    X = networks.solve(network, N, Z).X * np.exp(0.01 * random.standard_normal(len(N)))
    return {"X": X, "R": N / X - Z, "U_cpu": np.minimum(X * D_CPU / C, 1)}


@pytest.fixture(scope="module")
def system(tmp_path_factory):
    """What is found from measurements with hardly any error."""
    return limits.read(written(tmp_path_factory.mktemp("limits") / "a.csv", error=1e-4))


@pytest.mark.parametrize("at", [80, 160])
@pytest.mark.parametrize(
    "name, change, after",
    [
        ("cpu", "twice as many servers", {"c": 2 * C}),
        ("cpu", "half the demand", {"cpu": D_CPU / 2}),
        ("disk", "two instead of one", {"disks": 2}),
        ("disk", "half the demand", {"disk": D_DISK / 2}),
        ("lock", "two instead of one", {"locks": 2}),
    ],
)
def test_a_gain_is_that_of_the_changed_network(system, name, change, after, at):
    before, then = (networks.solve(s, at, Z).X for s in (stations(), stations(**after)))
    (gain,) = (g for g in system.gains if (g.station, g.change, g.N) == (name, change, at))
    assert gain.gain == pytest.approx(then / before - 1, abs=0.002)
    assert gain.low <= gain.gain <= gain.high and gain.high - gain.low < 0.01
    assert gain.R == pytest.approx(2 * [at / then - Z], rel=0.02)


@pytest.mark.slow
def test_the_servers_of_an_only_device_are_found_where_one_is_rejected(tmp_path):
    """A disk that serves four requests at a time, and is busy in proportion to them."""
    X = networks.solve([networks.queue(0.01, C), networks.queue(0.02, 4)], N, 0).X
    columns = {"X": X, "R": N / X, "U_cpu": X * 0.01 / C, "U_disk": X * 0.02 / 4}
    noise = np.random.default_rng(7).standard_normal((4, len(N)))
    noisy = {n: v * np.exp(0.005 * e) for (n, v), e in zip(columns.items(), noise, strict=True)}
    found = limits.read(written(tmp_path / "a.csv", **noisy))
    assert found.stations[0] == "disk" and found.servers("disk") == pytest.approx(4, rel=0.15)
    assert "the disk, as if it had " in found.answer()
    gain = next(g for g in found.gains if (g.station, g.change) == ("disk", "half the demand"))
    then = networks.solve([networks.queue(0.01, C), networks.queue(0.01, 4)], N[-1], 0).X
    assert gain.gain == pytest.approx(then / X[-1] - 1, abs=0.03)


@pytest.mark.slow
def test_a_rejected_model_may_be_as_far_off_after_a_change(tmp_path):
    """Every third load is 1 % too high, again and again, which no errors of 0.05 % explain."""
    X = networks.solve(stations()[:1], N, Z).X * np.where(np.arange(len(N)) % 3 == 1, 1.01, 1.0)
    once = {"N": N, "X": X, "U_cpu": X * D_CPU / C, "c_cpu": C}
    noise = np.random.default_rng(2).standard_normal(4 * len(N))
    rows = pd.concat([pd.DataFrame(once)] * 4, ignore_index=True)
    rows["X"] *= np.exp(0.0005 * noise)
    rows.assign(R=rows.N / rows.X - Z).to_csv(tmp_path / "a.csv", index=False)
    found = limits.read(tmp_path / "a.csv")
    assert found.rejected and not found.unmet
    for gain in found.gains:
        assert gain.low <= max(gain.gain - 0.01, 0.0) and gain.high >= gain.gain + 0.01


def test_a_second_processor_serves_the_same_queue(tmp_path):
    """A lock that is split has two queues, of which one may be empty while requests wait."""
    one, two = (networks.solve([networks.queue(0.0035, c)], N, Z).X for c in (1, 2))
    columns = {"X": one, "R": N / one - Z, "U_cpu": one * 0.0035, "U_disk": np.nan, "c_cpu": 1}
    found = limits.read(written(tmp_path / "a.csv", **columns))
    gain = next(g for g in found.gains if (g.station, g.change) == ("cpu", "two instead of one"))
    assert gain.N == N[-1] and gain.gain == pytest.approx(two[-1] / one[-1] - 1, abs=0.001)


def test_a_station_is_full_at_its_servers_over_its_demand(system):
    assert system.stations == ["cpu", "disk", "lock"]
    for name, most in {"cpu": C / D_CPU, "disk": 1 / D_DISK, "lock": 1 / D_LOCK}.items():
        value, (low, high) = system.full_at(name)
        assert value == pytest.approx(most, rel=0.02) and low <= value <= high


@pytest.mark.slow
def test_a_station_without_demand_is_never_full(tmp_path):
    """Nothing is left for the lock in the response times: only the interval has a lower end."""
    R = networks.solve(stations()[:2], N, Z)
    known = {"X": R.X, "R": N / R.X - Z, "U_cpu": R.X * D_CPU / C, "U_disk": R.X * D_DISK}
    found = limits.read(written(tmp_path / "a.csv", **known))
    low, high = found.full_at("lock")[1]
    assert low > 1 / D_DISK and high == np.inf and "lock" in found.demands().index
    alone = limits.read(written(tmp_path / "b.csv", U_disk=np.nan, **one_station()))
    assert "no other limit shows in the measurements" in alone.answer()


def test_three_ways_find_the_same_demand(system):
    table = system.demands()
    for name, D in {"cpu": D_CPU, "disk": D_DISK}.items():
        assert table.loc[name, ["D", "D at the last load"]].tolist() == pytest.approx([D] * 2, 1e-3)
        low, high = table.loc[name, "D by regression"]
        assert low <= high and (low + high) / 2 == pytest.approx(D, rel=1e-3)


@pytest.mark.slow
def test_what_is_busy_without_transactions_is_found_by_regression(tmp_path):
    """Half a processor works for somebody else, at every load."""
    X = networks.solve(stations(), N, Z).X
    found = limits.read(written(tmp_path / "a.csv", U_cpu=(0.9 * X * D_CPU + 0.5) / C))
    assert found.demands().loc["cpu", "busy without work"] == pytest.approx([0.5, 0.5], rel=1e-3)


def test_model_and_measurements_stand_side_by_side(system):
    table = system.beside()
    solved = networks.solve(stations(), N, Z)
    assert table["X, model"].tolist() == pytest.approx(solved.X.tolist(), rel=1e-3)
    assert table["R, model"].tolist() == pytest.approx((N / solved.X - Z).tolist(), rel=1e-2)
    assert table[["X, off", "R, off"]].abs().max().max() < 0.01


def test_the_answer_names_the_limit_how_sure_what_to_do_and_what_it_brings(system):
    what, sure, gain, after = system.answer().removesuffix(".").split(". ")
    assert what.startswith(
        "The limit of this system is the processor capacity, which allows X = 250"
    )
    assert "the next limit is the disk, which allows 31" in what
    assert sure.startswith("That is sure if the model of users and resources holds, which no test ")
    assert "all simulated repetitions of the measurements have this limit, and " in sure
    end = f"U_cpu was {100 * networks.solve(stations(), 80, Z).X * D_CPU / C:.3g} % at N = 80"
    assert sure.endswith(end)
    changes = {"processors, if they do not slow each other down, would bring": {"c": 2 * C}}
    changes |= {"half the processor time of a transaction": {"cpu": D_CPU / 2}}
    for words, change in changes.items():
        before, then = (networks.solve(s, 80, Z).X for s in (stations(), stations(**change)))
        ends = re.search(rf"{words} (?:about )?(\S+)(?: to (\S+))? %", gain).groups()
        low, high = float(ends[0]), float(ends[1] or ends[0])
        assert low - 1 <= 100 * (then / before - 1) <= high + 1
    more, now, less = re.search(
        r"time of (\S+) instead of (\S+), and .* with (\S+);", gain
    ).groups()
    twice = networks.solve(stations(c=2 * C), 80, Z).X
    for said, X in ((more, twice), (now, before), (less, then)):
        assert float(said) == pytest.approx(80 / X - Z, rel=0.02)
    assert "not more, because the disk would limit then" in gain
    assert after == "Then measure again"


def test_below_its_limit_a_system_gains_nothing_yet(tmp_path):
    """Users think for 2 s: 320 of them leave every station room, 640 fill the processors."""
    loads = 4 * N
    X = networks.solve(stations(), loads, 2.0).X
    table = {"N": loads, "X": X, "R": loads / X - 2, "U_cpu": X * D_CPU / C, "U_disk": X * D_DISK}
    pd.DataFrame(table | {"c_cpu": C}).to_csv(tmp_path / "a.csv", index=False)
    said = limits.read(tmp_path / "a.csv").answer()
    assert "No change of one station is sure to bring 1 % at N = 320; at N = 640, " in said
    assert said.endswith("What to do next: measure at higher loads, up to N = 640.")


@pytest.mark.slow
def test_an_empty_cell_leaves_out_its_row_and_a_wrong_one_its_column(tmp_path):
    whole = written(tmp_path / "a.csv", error=0.01)
    rows = whole.read_text().splitlines()
    cells = rows[4].split(",")
    for cell in ("", "N/A", "slow"):
        cells[2] = cell
        gap = tmp_path / "gap.csv"
        gap.write_text("\n".join([*rows[:4], ",".join(cells), *rows[5:]]) + "\n")
        found = limits.read(gap)
        if cell == "slow":
            wrong = f"R is not used: {gap}:5: R is 'slow', expected a number"
            assert wrong in found.study.remarks and "R" not in found.study.measured
        else:
            assert "row 5 of the file: left out, as R is empty there" in found.study.remarks
            assert found.study.used.N.tolist() == [n for n in N if n != 10]
            assert found.answer().startswith("The limit of this system is the processor capacity")
    alone = tmp_path / "alone.csv"
    alone.write_text("N,X,R\n1,10,0.1\n2,19,slow\n4,30,0.13\n")
    assert f"R is not used: {alone}:3: R is 'slow'" in limits.read(alone).unmet


def test_gaps_of_several_columns_leave_out_the_rows_of_all(tmp_path):
    table = pd.read_csv(written(tmp_path / "a.csv", error=0.01))
    table.loc[1, "R"] = table.loc[4, "U_disk"] = np.nan
    table.to_csv(tmp_path / "b.csv", index=False)
    kept = limits.read(tmp_path / "b.csv").study.used
    assert kept.N.tolist() == table.N.drop([1, 4]).tolist()
    assert kept.others["R"] == pytest.approx(table.R.drop([1, 4]))


@pytest.mark.slow
def test_gaps_of_other_columns_leave_all_throughputs_to_the_laws(tmp_path):
    """The rows with the highest loads are those in which tools fail."""
    table = pd.read_csv(written(tmp_path / "a.csv", error=0.01))
    table.loc[len(table) - 2 :, "R"] = np.nan
    table.to_csv(tmp_path / "b.csv", index=False)
    found = study.fit_table(tmp_path / "b.csv", known="c_cpu=8,c_disk=1")
    assert found.used.X.tolist() == table.X.tolist() and "R" not in found.measured
    last = len(table) + 1
    said = f"R is not used: it is empty in rows {last - 1}, {last}; --law closed uses it, and"
    assert any(told.startswith(said) for told in found.remarks)


@pytest.mark.slow
def test_the_answer_of_fit_names_the_column_without_which_no_law_fits(tmp_path):
    """The processors are busy with other work, too, so that no closed system fits them."""
    X = networks.solve(stations(disk=0.01)[:2], N, Z).X
    noise = np.exp(0.002 * np.random.default_rng(1).standard_normal(4 * len(N)))
    rows = pd.DataFrame({"N": [*N] * 4, "X": [*X] * 4 * noise, "c_cpu": C, "c_disk": 1})
    rows = rows.assign(R=rows.N / rows.X - Z, U_cpu=rows.N * 1e-4, U_disk=rows.X * 0.01)
    rows.loc[0, "U_disk"] = np.nan
    rows.to_csv(tmp_path / "a.csv", index=False)
    first = study.fit_table(tmp_path / "a.csv").answer().partition("\n")[0]
    assert first.startswith("No law fits these points: all laws are rejected")
    assert "U_disk is not used: it is empty in row 2; --law closed uses it" in first


@pytest.mark.parametrize(("factor", "unit"), one_in(3, [(1e3, "ms"), (1e6, "us"), (5, "")]))
@pytest.mark.slow
def test_a_response_time_in_another_unit_is_told(tmp_path, factor, unit):
    table = pd.read_csv(written(tmp_path / "a.csv", error=0.01))
    table["R"] *= factor
    table.to_csv(tmp_path / "b.csv", index=False)
    told = limits.read(tmp_path / "b.csv").study.remarks
    assert any(f"it would agree in {unit}: then call it R_{unit}" in t for t in told) == bool(unit)


@pytest.mark.slow
def test_the_work_of_others_is_told(tmp_path):
    """The processors are full already with one user, who can keep one of them busy."""
    found = limits.read(written(tmp_path / "a.csv", error=0.01, U_cpu=1.0))
    assert "at N = 1, U_cpu says that 8 servers are busy" in found.answer()
    assert found.answer().endswith("stop what else runs on the machine, and measure again.")


@pytest.mark.slow
def test_a_pool_that_was_not_measured_is_told_with_its_places(tmp_path):
    X = networks.solve([networks.queue(0.01, 4), networks.queue(0.08, 8)], N, 0).X
    noise = np.random.default_rng(5).standard_normal((3, len(N)))
    X, R, U = (v * np.exp(0.005 * e) for v, e in zip((X, N / X, X * 0.01 / 4), noise, strict=True))
    columns = {"X": X, "R": R, "U_cpu": U, "U_disk": np.nan, "c_cpu": 4}
    said = limits.read(written(tmp_path / "a.csv", **columns)).answer()
    assert re.search(r"perhaps a pool that serves about (7\.\d|8|8\.\d) requests at a time", said)


@pytest.mark.slow
def test_a_single_disk_beside_a_pool_keeps_its_server(tmp_path):
    """A disk of several servers beside a lock meets these, too, but much less likely."""
    loads = np.array([1, 2, 4, 8, 16, 32])
    X = networks.solve(
        [networks.queue(0.02, 4), networks.queue(0.006), networks.queue(0.05, 4)], loads, 0
    ).X
    random = np.random.default_rng(3)
    columns = {"X": X, "R": loads / X, "U_cpu": X * 0.02 / 4, "U_disk": X * 0.006}
    noisy = {n: v * (1 + 0.01 * random.standard_normal(6)) for n, v in columns.items()}
    pd.DataFrame({"N": loads, **noisy, "c_cpu": 4}).to_csv(tmp_path / "a.csv", index=False)
    found = limits.read(tmp_path / "a.csv")
    assert found.servers("disk") == 1 and found.servers("lock") == pytest.approx(4, rel=0.1)
    assert "makes the same curves as a pool" in found.answer()


@pytest.mark.slow
def test_full_processors_count_for_more_than_what_was_not_measured(tmp_path):
    """A table in which a model finds a second limit that would allow as much as the processors."""
    rows = "25,24.4,24,7\n50,48.9,23.5,13\n100,97.2,25,26\n200,195,27,52\n300,287,38,77\n"
    rows += "400,356,118,95\n500,371,342,99\n"
    (tmp_path / "a.csv").write_text(
        "users,throughput,R_ms,cpu%,c_cpu\n" + rows.replace("\n", ",8\n")
    )
    found = limits.read(tmp_path / "a.csv")
    first, how, brings, _ = found.answer().split(". ")
    assert first.startswith("The limit of this system is probably the processor capacity, which ")
    assert "and was 99 % in use at users = 500; if the model holds, what was not" in first
    assert how.startswith("That is not sure: the two differ by 1 % only")
    D, Z = (found.fit.values[n] for n in ("D_cpu", "Z"))
    one, two = (networks.solve([networks.queue(D, c)], 500, Z).X for c in (8, 16))
    more = round(100 * (two / one - 1))
    assert brings.endswith(f", or {more} % if what was not measured is no limit")


@pytest.mark.parametrize(
    "name, c, told",
    [("cpu", 4, True), ("disk", 1, False), slow("cpu", 1, True), slow("disk", 4, True)],
)
def test_more_servers_help_only_if_they_do_not_slow_each_other_down(name, c, told, tmp_path):
    """Processors of a machine share its memory; a second disk is taken for one of its own."""
    X = networks.solve([networks.queue(0.02, servers=c)], N, 0).X
    table = {"N": N, "X": X, "R": N / X, f"U_{name}": X * 0.02 / c, f"c_{name}": c}
    pd.DataFrame(table).to_csv(tmp_path / "a.csv", index=False)
    said = limits.read(tmp_path / "a.csv").answer()
    assert said.count("% more X") == 1
    assert said.count(", if they do not slow each other down, or half ") == told


@pytest.mark.slow
def test_intervals_of_gains_hold_the_true_gain(tmp_path):
    """In 95 % of cases: of 15, fewer than 12 would be a surprise of one in 1800."""
    before, then = (networks.solve(s, 80, Z).X for s in (stations(), stations(c=2 * C)))
    inside = 0
    for seed in range(15):
        gain = limits.read(written(tmp_path / "a.csv", error=0.02, seed=seed)).gains[0]
        assert gain.N == 80 and gain.change == "twice as many servers"
        inside += gain.low <= round(then / before - 1, 4) <= gain.high
    assert inside >= 12


@pytest.mark.parametrize(
    "changes, why",
    [
        ({"R": np.nan, "U_cpu": np.nan, "U_disk": np.nan}, "do not tell one station from another"),
        slow({"R": 5.0}, "requests are under way"),
        slow({"R": 0.05}, "users think for"),
        ({"c_cpu": 16}, "no model of users and resources fits"),
    ],
)
def test_where_no_closed_system_fits_no_gain_is_told(tmp_path, changes, why):
    found = limits.read(written(tmp_path / "a.csv", error=0.01, **changes))
    said = found.answer()
    assert why in found.unmet and why in said
    assert said.startswith("X still grows at N = 80, and what will limit it is not known. ")
    assert "would bring most" not in said and said.count("refits") == 0
    with pytest.raises(InputError, match="these measurements do not tell demands"):
        found.figures()


@pytest.mark.parametrize(
    "X, U, seen, shares, then",
    one_in(
        3,
        [
            ([10, 20, 40, 41, 41], 0.3, "stays at about 40.7 from N = 4", "below 60 %", "wait for"),
            ([10, 20, 40, 20, 4], 0.99, "falls by 90 % from N = 4", "10 times as much", "spin"),
            ([10, 20, 40, 41, 41], 0.99, "stays at", "does not prove", "check the units"),
        ],
    ),
)
def test_a_refusal_says_what_the_measurements_show(X, U, seen, shares, then, tmp_path):
    """Without any model: where throughput stays or falls, and which resource is far from full.
    U_cpu is the same at all loads, which no closed system explains.
    """
    R = np.array([1, 2, 4, 8, 16]) / X
    table = {"N": [1, 2, 4, 8, 16], "X": X, "R": R, "U_cpu": U, "c_cpu": 1}
    pd.DataFrame(table).to_csv(tmp_path / "a.csv", index=False)
    found = limits.read(tmp_path / "a.csv")
    first, second, third, fourth = found.answer().removesuffix(".").split(". ")
    assert seen in first and shares in second and then in fourth
    assert third.startswith("What a change would bring is not known: ")


@pytest.mark.parametrize("off, told", one_in(2, [(0.02, True), (0.1, False)]))
def test_a_model_that_is_rejected_but_nearly_right_makes_a_limit_likely(off, told, tmp_path):
    """Runs that scatter by 0.1 % show that X is `off` by turns, less or more than the model."""
    users, random = np.repeat([5.0, 10, 20, 40, 60, 80], 3), np.random.default_rng(1)
    X = networks.solve(stations(), users.astype(int)).X * (
        1 + off * np.tile([-1, -1, -1, 1, 1, 1], 3)
    )
    X *= np.exp(0.001 * random.standard_normal(len(X)))
    table = pd.DataFrame({"N": users, "X": X, "R": users / X, "U_cpu": X * D_CPU / C, "c_cpu": C})
    table.to_csv(tmp_path / "a.csv", index=False)
    found = limits.read(tmp_path / "a.csv")
    assert found.rejected and bool(found.unmet) != told
    if told:
        assert "That is likely, not sure: " in found.answer()
        assert "a test rejects the model, which is up to " in found.answer()
        assert 250 < found.full_at("cpu")[1][1] and found.full_at("cpu")[1][0] < 250


def test_a_resource_of_medium_use_is_not_excluded(tmp_path):
    for U, excluded in ((0.59, True), (0.61, False)):
        table = {"N": [1, 2, 4, 8], "X": [10, 20, 20, 20], "R": 9.0, "U_cpu": U, "c_cpu": 4}
        pd.DataFrame(table).to_csv(tmp_path / "a.csv", index=False)
        assert ("is not the limit" in limits.read(tmp_path / "a.csv").answer()) == excluded


@pytest.mark.slow
def test_one_column_that_is_missed_alone_is_named(tmp_path):
    """Something else kept the processors busy during the first two runs."""
    U = networks.solve(stations(), N, Z).X * D_CPU / C * np.where(N < 5, 6, 1)
    found = limits.read(written(tmp_path / "a.csv", error=0.002, U_cpu=U))
    assert "the best one misses only U_cpu, by up to 83 %, and only at low loads" in found.answer()
    assert found.answer().endswith("measure U_cpu without any load, and with more decimals.")


def saturating(X):
    """What iostat calls %util of a disk that serves several requests at once."""
    return 1 - np.exp(-X / 20)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("servers", "known"), one_in(3, [({}, ""), ({"c_disk": 1}, ""), ({}, "c_disk=1")])
)
def test_one_utilisation_that_alone_rejects_the_system_is_left_out(tmp_path, servers, known):
    """The other columns name the limit, and predict what the changed network does."""
    before, after = (networks.solve(stations(c=c)[:2], N, Z).X for c in (C, 2 * C))
    columns = {"X": before, "R": N / before - Z, "U_cpu": before * D_CPU / C}
    noise = np.random.default_rng(1).standard_normal((3, len(N)))
    columns = {n: v * np.exp(0.003 * e) for (n, v), e in zip(columns.items(), noise, strict=True)}
    columns |= {"U_cpu": np.minimum(columns["U_cpu"], 1), "U_disk": saturating(before)}
    found = limits.read(written(tmp_path / "a.csv", **columns | servers), known=known)
    assert found.left_out == "U_disk" and {*found.study.measured} == {"R", "U_cpu"}
    assert found.stations == ["cpu", "lock"]
    low, high = found.full_at("cpu")[1]
    assert low <= C / D_CPU <= high
    gain = next(g for g in found.gains if (g.station, g.N) == ("cpu", N[-1]))
    assert gain.change == "twice as many servers"
    assert gain.low <= after[-1] / before[-1] - 1 <= gain.high
    first, how, then = found.answer().removesuffix(".").split(". ")
    assert first.startswith("The limit of this system is probably the processor capacity, which ")
    assert how.startswith("That is likely, not sure: ")
    used = f"{100 * saturating(before)[-1]:.3g}"
    assert how.endswith("no closed system explains U_disk as well")
    said = f"U_disk is not used: it was {used} % at the last load, but the best system with it "
    assert f"{said}misses only it, by up to " in then


@pytest.mark.parametrize("spoilt", [slow("two columns"), slow("X"), "the limit"])
def test_no_more_than_one_utilisation_is_left_out_and_none_that_may_be_the_limit(spoilt, tmp_path):
    """A full disk is no limit that was not measured, even if others use the disk at low loads."""
    X, slow = (networks.solve(stations(disk=D)[:2], N, Z).X for D in (D_DISK, 0.01))
    U = X * D_CPU / C
    throughput, changes = {
        "two columns": (X, {"U_disk": saturating(X), "U_cpu": np.where(N < 5, 6 * U, U)}),
        "X": (X * np.where(N < 60, 1, 1.8), {"R": np.nan, "U_cpu": U, "U_disk": X * D_DISK}),
        "the limit": (slow, {"U_disk": 0.3 + 0.007 * slow}),
    }[spoilt]
    R, U_cpu = N / throughput - Z, throughput * D_CPU / C
    changes = {"X": throughput, "R": R, "U_cpu": U_cpu} | changes
    found = limits.read(written(tmp_path / "a.csv", **changes, c_disk=1))
    assert found.unmet and not found.left_out
    assert "U_disk" in found.study.measured and "is not used" not in found.answer()


@pytest.mark.parametrize("columns", [("R",), ("R", "U_cpu")])
def test_what_was_not_measured_is_not_sure_while_processors_may_be_waited_for(columns, tmp_path):
    """The disk limits, and only what is named here was measured: of 8 processors 40 % are used."""
    known = noisy(stations(disk=0.01)) | {"U_disk": np.nan}
    known |= {n: np.nan for n in ("R", "U_cpu") if n not in columns}
    found = limits.read(written(tmp_path / "a.csv", **known))
    what, sure, *_ = found.answer().split(". ")
    assert found.stations[0] == "lock" and "was not measured" in what
    assert ("That is sure" in sure) == ("U_cpu" in columns) == ("probably" not in what)
    assert ("the processors were not measured" in sure) == ("U_cpu" not in columns)
    assert " at most " in found.answer()


def test_a_limit_beyond_the_last_load_is_said_with_its_load(tmp_path):
    """Users who never wait fill the processors at c / D (Z + all demands) = 59 of them."""
    table = pd.read_csv(written(tmp_path / "a.csv", error=1e-3))
    table[:-3].to_csv(tmp_path / "b.csv", index=False)
    said = limits.read(tmp_path / "b.csv").answer()
    assert "from about N = 59 on" in said and "more X at N = 40" in said


def test_a_device_counts_as_one_server_and_processors_are_found(tmp_path):
    found = limits.read(written(tmp_path / "a.csv", error=1e-3, c_cpu=np.nan))
    servers = found.demands()["servers"]
    assert servers["disk"] == 1 and servers["cpu"] == pytest.approx(C, rel=0.05)
    told = limits.read(written(tmp_path / "b.csv", c_cpu=np.nan), known="c_cpu=8, c_disk=1")
    assert told.demands()["servers"].tolist() == [8, 1, 1]


@pytest.mark.slow
def test_a_utilisation_that_was_rounded_to_zero_is_left_out(tmp_path):
    """In whole percents, four disks are at 0 with one user; all else is measured there."""
    disks = [networks.queue(D_DISK, servers=4)]
    known = noisy([*stations()[:1], *disks, *stations()[2:]])
    U = np.round(known["X"] * D_DISK / 4, 2)
    assert U[0] == 0 < U[1]
    found = limits.read(written(tmp_path / "a.csv", **known, U_disk=U, c_disk=4))
    assert not found.unmet and found.stations[0] == "cpu"
    assert found.full_at("cpu")[0] == pytest.approx(C / D_CPU, rel=0.02)
    assert found.beside()["U_disk, off"].isna().tolist() == (U == 0).tolist()


def test_a_lock_that_nobody_measured_is_said_to_be_one(tmp_path):
    """The disk limits, and only the processors and the response times are known."""
    known = noisy(stations(disk=0.01))
    found = limits.read(written(tmp_path / "a.csv", **known, U_disk=np.nan))
    said = found.answer()
    assert found.stations[0] == "lock"
    assert said.startswith("Something that was not measured limits this system, perhaps a lock")
    assert "What to do next: find out what requests wait for" in said
    assert said.endswith("would bring nothing at N = 80."), "processors do not help"


@pytest.mark.slow
def test_a_lock_whose_holder_computes_is_told_from_what_it_does_to_the_processors(tmp_path):
    """A simulation that knows no formula: 16 processors, 10 ms of computing, and 1.5 ms under a
    lock, on a processor as well. The lock allows 667 a second, the processors 16/11.5 ms = 1,391.
    """
    path, users = tmp_path / "holder.csv", (1, 2, 4, 8, 16, 32, 64)
    lines = ["N,X,R,U_cpu,c_cpu"]
    for seed, N in enumerate(users):
        X, R, U = simulated(N, 16, 0.010, 0.0015, count=40_000, seed=seed)
        lines.append(f"{N},{X:.1f},{R:.5f},{U:.4f},16")
    path.write_text("\n".join(lines) + "\n")
    found = limits.read(path)
    assert found.stations == ["lock", "cpu"]
    assert [1 / time for time in closed.times(found.fit).values()] == pytest.approx(
        [1391, 667], rel=0.03
    )
    assert "perhaps a lock that is held while its holder computes" in found.answer()
    split, half, servers, computing = found.gains[::2]
    assert (split.station, servers.station) == ("lock", "cpu")
    assert split.gain == pytest.approx(0.9, abs=0.1) and half.gain == pytest.approx(0.95, abs=0.1)
    assert max(servers.high, computing.high) < 0.02
    demand = found.demands().loc["cpu"]
    assert demand["D"] == pytest.approx(demand["D at the last load"], rel=0.03)


def simulated(N, c, D, L, count, seed):
    """X, R and the share of c processors in use, of N users who compute and then hold the lock, by
    drawing the time to the next event of all who run.
    """
    random = np.random.default_rng(seed)
    n, clock, busy, done = N, 0.0, 0.0, 0  # n compute, and the others hold the lock or wait
    while done < count:
        held = n < N
        share = min(1.0, c / (n + held))
        ends, released = n * share / D, held * share / L
        step = random.exponential(1 / (ends + released))
        clock, busy = clock + step, busy + step * min(n + held, c)
        if random.random() * (ends + released) < ends:
            n -= 1
        else:
            n, done = n + 1, done + 1
    return done / clock, N * clock / done, busy / clock / c


def test_a_plan_starts_from_what_was_measured(system, tmp_path):
    *figures, drives, each = system.figures()
    assert figures == pytest.approx((80, Z, D_CPU, C, D_LOCK), rel=0.02)
    assert drives == pytest.approx([D_DISK], rel=0.02) and each == 1
    short = 1e-4 * networks.solve(stations(), N, Z).X  # a device that hardly anybody waits for
    several = limits.read(written(tmp_path / "a.csv", error=0.01, U_net=short))
    assert not several.unmet
    *_, drives, each = several.figures()
    assert drives == pytest.approx([D_DISK, 1e-4], rel=0.05) and each == 1


@pytest.mark.slow
@pytest.mark.parametrize("disks", [0, 1, 2])
def test_notebook_23_plans_with_any_number_of_disks(disks, tmp_path):
    """Twice as many processors bring what they bring to the network that was measured."""
    measured = [D_DISK / (i + 1) for i in range(disks)]
    before, after = (
        networks.solve([networks.queue(D_CPU, servers=c), *map(networks.queue, measured)], N, Z).X
        for c in (C, 2 * C)
    )
    table = {"N": N, "X": before, "R": N / before - Z, "U_cpu": before * D_CPU / C, "c_cpu": C}
    table |= {f"U_sd{i}": before * D for i, D in enumerate(measured)}
    pd.DataFrame(table).to_csv(tmp_path / "mine.csv", index=False)
    (run,) = runs.plan(["23"], [f"file={tmp_path / 'mine.csv'}"])
    outcome = report.execute_run(run, tmp_path)
    assert outcome.error == "", outcome.error
    (gain,) = (c["model"] for c in outcome.claims if c["what"] == "gain by processors")
    assert gain == pytest.approx(after[-1] / before[-1] - 1, abs=0.01)
    assert "would bring most (processors: 16 instead of 8)" in outcome.found


def test_a_station_that_is_nearly_full_will_be_full():
    """Throughput and utilisation in proportion to the load; a station of which little is used."""
    loads = np.array([1.0, 2, 4, 8, 16])
    busy, idle = (full.chance_full(loads, 10 * loads, u * loads / 16, [32])[0] for u in (0.8, 0.02))
    assert full.verdict(busy) == "yes" and full.verdict(idle) == "no"
    few = full.chance_full(loads, 10 * loads, np.where(loads < 16, 0.0, 0.8), [32])[0]
    assert few == pytest.approx(busy, abs=0.1), "by the demand at the last load"
    assert np.isnan(full.chance_full(loads, 10 * loads, 0.0 * loads, [32])[0])
    assert full.verdict(np.nan) == "open"


@pytest.mark.parametrize("cut", [16, 64])
def test_of_real_servers_most_are_judged_and_judged_right(cut):
    """35 curves reach 512 threads: five use more than 90 % of the processors there."""
    rows = data.load("mysql2026")
    keys = ["mix", "server", "version", "buffer_pool_gb"]
    curves = [curve for _, curve in rows.groupby(keys) if curve.N.max() == 512]
    right, said = {"yes": [], "no": []}, []
    for curve in curves:
        U = (curve.user + curve.system).to_numpy()
        seen = curve.N.to_numpy() <= cut
        known = [v.to_numpy(float)[seen] for v in (curve.N, curve.X)]
        said.append(full.verdict(full.chance_full(*known, U[seen], [512])[0]))
        right.get(said[-1], []).append((U[-1] > full.FULL) == (said[-1] == "yes"))
    assert len(said) == 35 and said.count("open") <= 35 / 4
    assert np.mean(right["yes"]) >= 0.8 and np.mean(right["no"]) >= 0.95


def test_growth_is_that_of_the_highest_throughput_and_never_below_one():
    loads = np.array([1.0, 2, 4, 8])
    rising = full.growth({"N": loads, "X": 10 * loads}, [16, 32])
    falling = full.growth({"N": loads, "X": [10, 12, 9, 6]}, [16, 32])
    for middle, low, high in (rising, falling):
        assert 1 <= low <= middle <= high
    assert rising[0] > 1.5 and rising[2] <= 4 and falling[0] == 1


@pytest.mark.slow
@pytest.mark.parametrize("columns", one_in(2, ["N,X", "N,X,R,U_cpu,c_cpu"]))
def test_a_page_about_a_file_speaks_of_that_file(columns, tmp_path):
    rows = ["1,10,0.1,0.25,4", "2,20,0.1,0.5,4", "4,38,0.105,0.95,4", "8,40,0.2,1,4"]
    cells = [",".join(row.split(",")[: columns.count(",") + 1]) for row in rows]
    (tmp_path / "mine.csv").write_text("\n".join([columns, *cells]) + "\n")
    (run,) = runs.plan(["22"], [f"file={tmp_path / 'mine.csv'}", "at=16,32"])
    outcome = report.execute_run(run, tmp_path)
    assert outcome.error == "" and outcome.found
    page = html.unescape((tmp_path / f"{run.name}.html").read_text())
    beside_exercises = page.partition("exercise")[0]
    assert outcome.found in page and "In the simulated shop" not in beside_exercises
    refused = outcome.records["what speaks against a closed system"] is not None
    assert ("What would a change bring?" in page) == (not refused) == (columns != "N,X")


@pytest.mark.slow
def test_a_point_far_from_the_others_makes_the_answer_less_sure(tmp_path):
    """A run at a medium load that stood still for half of its time."""
    X = networks.solve(stations(), N, Z).X * (1 + 0.005 * np.array([1, -1, -1, 1, 1, -1, 1, -1]))
    columns = {"R": np.nan, "U_disk": X * D_DISK, "U_cpu": X * D_CPU / C}

    def answers():
        whole = pd.read_csv(written(tmp_path / "a.csv", X=X, **columns))
        whole[:-1].to_csv(tmp_path / "b.csv", index=False)
        return [limits.read(tmp_path / name).answer() for name in ("a.csv", "b.csv")]

    assert all("That is sure" in said and "farther" not in said for said in answers())
    X[3] /= 2
    full, doubted = answers()
    far = f"but the point at N = {N[3]} is farther from the curve than chance explains"
    assert full.startswith("The limit of this system is probably the processor capacity")
    assert far not in full, "at the last load, U_cpu is 99 %, whatever a low load says"
    assert doubted.startswith("It is open") and far.removeprefix("but ") in doubted


def test_readme_quotes_the_answer_of_the_example():
    text = (data.path("simulated-shop").parents[1] / "README.md").read_text(encoding="utf-8")
    (quote,) = re.findall(r"^> (.*(?:\n> .*)*)", text, re.MULTILINE)
    assert limits.read("simulated-shop").answer().startswith(quote.replace("\n> ", " "))


def test_no_limit_is_named_that_is_far_away(tmp_path):
    """Ten users who think for a second leave half of the disk unused, whatever is changed."""
    loads = np.arange(1, 11)
    X = networks.solve([networks.queue(0.1), networks.queue(0.06)], loads, 1.0).X
    columns = {"N": loads, "X": X, "R": loads / X - 1, "U_cpu": X * 0.1, "U_disk": X * 0.06}
    pd.DataFrame(columns | {"c_cpu": 1}).to_csv(tmp_path / "a.csv", index=False)
    said = limits.read(tmp_path / "a.csv").answer()
    assert "half the processor time" in said and "not more, because" not in said


@pytest.mark.slow
def test_a_column_in_another_unit_is_set_aside_alone(tmp_path):
    """The other columns still tell which station limits, and the answer says what to mend."""
    X = networks.solve(stations(), N, Z).X
    for changes, named in (
        ({"U_cpu": 100 * X * D_CPU / C}, "if it is in percent: --use 'U_cpu[%]=U_cpu'"),
        ({"R": 1000 * (N / X - Z)}, "it would agree in ms: then call it R_ms"),
    ):
        found = limits.read(written(tmp_path / "a.csv", error=0.01, **changes))
        left = {"R", "U_cpu", "U_disk"} - {*changes}
        assert {*found.study.measured} == left and found.stations[0] == "cpu"
        assert found.full_at("cpu")[0] == pytest.approx(C / D_CPU, rel=0.02)
        end = found.answer().partition("What to do next: ")[2]
        assert end.startswith("mend the file, in which ") and named in end


@pytest.mark.parametrize(
    "names, sizes",
    [
        slow(("R_ms", "U_cpu_pct", "U_disk_percent"), (1e3, 100, 100)),
        (("avg_latency_us", "cpu%", "disk_util"), (1e6, 100, 1)),
        slow(("response time (s)", "CPU usage [%]", "U_disk"), (1, 100, 1)),
    ],
)
@pytest.mark.slow
def test_units_in_names_change_nothing(tmp_path, names, sizes):
    """The same measurements in other units have the same demands."""
    table = pd.read_csv(written(tmp_path / "a.csv", error=0.01))
    plain = limits.read(tmp_path / "a.csv").fit.values
    for old, new, size in zip(("R", "U_cpu", "U_disk"), names, sizes, strict=True):
        table[new] = table.pop(old) * size
    table.to_csv(tmp_path / "b.csv", index=False)
    assert limits.read(tmp_path / "b.csv").fit.values == pytest.approx(plain, rel=1e-6)


def test_columns_that_no_fit_takes_are_named(tmp_path):
    """A percentile is no mean, and what stands beside a column of the same quantity is left."""
    changes = {"p95_ms": 500.0, "latency": 0.2, "lat_ms": 1.0, "R_se": 0.1, "note": "warm"}
    found = limits.read(written(tmp_path / "a.csv", error=0.01, **changes))
    first, *others = found.study.used.warnings
    assert not found.unused
    assert first == "lat_ms is not used: another column is R already"
    assert others == [
        "not used: p95_ms (R_p95), R_se (R_se); a fit takes means, and no errors of them"
    ]


def test_servers_of_a_station_that_no_column_has_are_told(tmp_path):
    """A mistyped name would be one more station without a word."""
    warnings = limits.read(written(tmp_path / "a.csv"), known="c_dsk=1").study.used.warnings
    assert any(text.startswith("--known c_dsk: no column U_dsk is used, so ") for text in warnings)
    assert not limits.read(written(tmp_path / "a.csv"), known="c_disk=1").study.used.warnings


@pytest.mark.parametrize(
    "spoil",
    one_in(
        3, [lambda U: np.round(U, 2), lambda U: U + 0.003 * (1 - U), lambda U: U + 0.01 * (1 - U)]
    ),
)
@pytest.mark.parametrize("seed", one_in(3, range(3)))
def test_whole_percents_and_the_work_of_others_change_no_answer(tmp_path, spoil, seed):
    """As vmstat prints utilisations, and with some processors busy for other programs."""
    X = networks.solve(stations(), N, Z).X
    columns = {"U_cpu": spoil(X * D_CPU / C), "U_disk": spoil(X * D_DISK)}
    found = limits.read(written(tmp_path / "a.csv", 0.01, seed, **columns))
    assert not found.unmet and found.stations[0] == "cpu"
    assert found.full_at("cpu")[0] == pytest.approx(C / D_CPU, rel=0.02)

"""Outputs as people keep them: from public files, and recordings in whatever may stand around them.

The figures of the cases were read from the outputs by a person.
"""

from pathlib import Path

import pytest
from quick import one_in

from nummodel.errors import InputError
from nummodel.records import readers

FOLDER = Path(__file__).parent
RECORDINGS = FOLDER / "recordings"
#: The case, the reader, how many rows its samples have, else its table, and means of columns.
CASES = [
    ("01-vmstat-cron-dates/vmstat.log", "vmstat", 6, {"U_cpu": 1.36 / 6}),
    ("01-vmstat-cron-dates/vmstat-without-dates.log", "vmstat", 6, {"U_cpu": 1.36 / 6}),
    ("15-mlc-rst-prompts/mlc.txt", "mlc", 5, {"latency": 572.0e-9 / 5}),
    ("17-perf-lock-bench-before/perf.txt", "perf_lock", 10, {"contended": 23.6}),
    ("18-perf-lock-snip/perf.txt", "perf_lock", 6, {"total_wait": 154.78 / 6}),
    ("27-lock-stat-numbered/lock_stat.txt", "lock_stat", 2, {"contentions": 92}),
    ("29-lock-stat-snip/lock_stat.txt", "lock_stat", 1, {"contentions": 56830}),
    ("40-iostat-dmx-no-head/iostat.txt", "iostat", 1, {"U_sda": 0.1188}),
    ("42-iostat-t-mixed-dates/iostat.txt", "iostat", 1, {"t": 3, "U_vda": 0.0128}),
    (
        "44-iostat-11-24cpu/iostat.txt",
        "iostat",
        2,
        {"U_qbd0": 0.943, "U_cpu": 0.17225, "c_cpu": 24, "writes_qbd0": 24783},
    ),
    (
        "47-mpstat-8cpu/mpstat.txt",
        "sysstat",
        1,
        {"U_cpu": 1, "user": 0.6909, "system": 0.3092, "c_cpu": 8},
    ),
    ("65-vmstat-top-before/vmstat.txt", "vmstat", 3, {"U_cpu": 1.15 / 3}),
    ("65-vmstat-top-before/vmstat-only.txt", "vmstat", 3, {"U_cpu": 1.15 / 3}),
    ("70-core-to-core-screen/c2c.txt", "core_to_core", 6, {"latency": 717e-9 / 6}),
    ("72-rhel-prompt/vmstat.txt", "vmstat", 2, {"U_cpu": 0.14}),
    ("72-rhel-prompt/vmstat-debian.txt", "vmstat", 2, {"U_cpu": 0.14}),
    ("72-rhel-prompt/vmstat-hash.txt", "vmstat", 2, {"U_cpu": 0.14}),
    ("72-rhel-prompt/mpstat.txt", "sysstat", 2, {"U_cpu": 0.26}),
    ("72-rhel-prompt/iostat.txt", "iostat", 1, {"U_sda": 0.0912}),
    ("73-iostat-appended/iostat.txt", "iostat", 2, {"U_sda": 0.0912}),
]


@pytest.mark.parametrize(("name", "reader", "rows", "means"), CASES, ids=[c[0] for c in CASES])
def test_figures_of_a_case(name, reader, rows, means):
    found, reading = readers.read(FOLDER / "cases" / name)
    table = reading.table if reading.samples is None else reading.samples
    assert (found, len(table)) == (reader, rows)
    for column, mean in means.items():
        assert table[column].mean() == pytest.approx(mean, rel=1e-9), column


@pytest.mark.parametrize("name", ["44-iostat-11-24cpu/iostat.txt"])
def test_what_is_cut_is_told(name):
    told = readers.read(FOLDER / "cases" / name)[1].left_out
    assert "The last line is cut off and left out." in told


COMMANDS = {
    "vmstat": "vmstat 1 3",
    "iostat": "iostat -x 1 3",
    "mpstat": "mpstat -P ALL 1",
    "sar": "sar -u 1 3",
    "sadf": "sadf -j",
    "mlc": "./mlc",
    "perf-lock": "perf lock contention -ab sleep 1",
    "lock-stat": "cat /proc/lock_stat",
    "core-to-core": "taskset -c 0-3 core-to-core-latency --csv",
    "cgroup": "cat cpu.stat; sleep 9; cat cpu.stat",
    "fcx265": "cat fcx265",
    "monitor-modes": "cat modes",
}
REFUSED = ("iostat-12.6-xh.txt", "mpstat-12.6-nodes.txt")
OWN = [
    path
    for path in sorted(RECORDINGS.iterdir())
    if path.name.startswith(tuple(COMMANDS)) and path.name not in REFUSED
]
AROUND = {
    "RHEL": "[root@db1 ~]# {command}\n{text}[root@db1 ~]# \n",
    "RHEL user": "[me@db1 log files]$ sudo {command}\n{text}[me@db1 log files]$",
    "Debian": "me@web01:/var/log$ {command}\n{text}me@web01:/var/log$ exit\n",
    "virtual": "(venv) me@web01:~/work$ {command}\n{text}(venv) me@web01:~/work$ ",
    "SUSE": "linux-7:~ # {command}\n{text}linux-7:~ #\n",
    "hash": "# {command}\n{text}#\n",
    "dollar": "$ {command}\n\n{text}$ \n",
    "bash": "bash-4.2$ {command}\n{text}bash-4.2$\n",
    "zsh": "me@mac ~ % {command}\n{text}me@mac ~ % \n",
    "zsh arrow": "➜  ~ {command}\n{text}➜  ~ \n",
    "two lines": "╭─me@mac ~\n╰─$ {command}\n{text}╭─me@mac ~\n╰─$\n",
    "date": "Wed Aug 28 16:02:01 IST 2019\n{text}Wed 28 Aug 2019 04:02:09 PM IST\n",
    "fence": "```console\n$ {command}\n{text}```\n",
    "prose": "This is what I see:\n\n{text}\nWhat may it be?\n",
    "interrupt": "$ {command}\n{text}^C\n$\n",
    "time": "$ time {command}\n{text}\nreal\t0m3.005s\nuser\t0m0.001s\nsys\t0m0.004s\n",
}


def each_line(text, change):
    return "".join(change(i, line) for i, line in enumerate(text.splitlines(True), 1))


LINES = {
    "indent": lambda text: each_line(text, lambda i, line: f"    {line}"),
    "tab": lambda text: each_line(text, lambda i, line: f"\t{line}"),
    "numbers": lambda text: each_line(text, lambda i, line: f"{i:4d}  {line}"),
    "cat -n": lambda text: each_line(text, lambda i, line: f"{i:6d}\t{line}"),
    "colon": lambda text: each_line(text, lambda i, line: f"{i}: {line}"),
    "quote": lambda text: each_line(text, lambda i, line: f"> {line}"),
    "dates": lambda text: each_line(text, lambda i, line: f"2026-11-23 07:40:44 {line}"),
    "journal": lambda text: each_line(text, lambda i, line: f"Nov 23 07:40:44 h log[9]: {line}"),
    "colours": lambda text: each_line(text, lambda i, line: f"\x1b[1;32m{line[:-1]}\x1b[0m\n"),
    "CRLF": lambda text: text.replace("\n", "\r\n"),
    "page": lambda text: LINES["numbers"](f"$ command\n{text}$\n"),
    "code": lambda text: f"Output:\n\n::\n\n{LINES['indent'](text)}\nThat is all.\n",
    "fence": lambda text: f"```\n{LINES['numbers'](text)}```\n",
}


def reads_the_same(path, text, tmp_path):
    (tmp_path / "kept.txt").write_bytes(text.encode())
    name, reading = readers.read(tmp_path / "kept.txt")
    whole = readers.read(path)
    assert name == whole[0]
    assert reading.table.equals(whole[1].table)
    samples = whole[1].samples
    assert samples is None or reading.samples.equals(samples)


@pytest.mark.parametrize("kind", AROUND)
@pytest.mark.parametrize("path", one_in(5, OWN), ids=lambda p: p.name)
def test_a_recording_in_a_shell(path, kind, tmp_path):
    command = COMMANDS[next(tool for tool in COMMANDS if path.name.startswith(tool))]
    text = AROUND[kind].format(command=command, text=path.read_text())
    if kind != "prose" or path.suffix != ".json":
        reads_the_same(path, text, tmp_path)


@pytest.mark.parametrize("kind", LINES)
@pytest.mark.parametrize("path", one_in(5, OWN), ids=lambda p: p.name)
def test_a_recording_in_a_page(path, kind, tmp_path):
    if kind != "code" or path.suffix != ".json":
        reads_the_same(path, LINES[kind](path.read_text()), tmp_path)


#: The last line of these has a time zone at its end, or is of a table that is left out.
NO_ROW_AT_THE_END = ("vmstat-3-t", "mpstat-12.6-A", "sar-12.6-urd", "perf-lock-csv-lock")
NO_ROW_AT_THE_END += ("perf-lock-6.1-stacks", "perf-lock-6.2-stacks")


def figures_of(reading):
    """The figures of processors, devices and locks, but for numbers of parts."""
    table = reading.table if reading.samples is None else reading.samples
    return table.select_dtypes("number").drop(columns="part", errors="ignore")


@pytest.mark.parametrize("path", OWN, ids=lambda p: p.name)
def test_a_recording_whose_last_line_is_cut(path, tmp_path):
    """The figures that remain are those of the whole file, and a sentence says what is cut."""
    whole = figures_of(readers.read(path)[1])
    for before in ("", "[root@db1 ~]# command\n"):
        (tmp_path / "cut.txt").write_text(before + path.read_text().rstrip()[:-2])
        try:
            reading = readers.read(tmp_path / "cut.txt")[1]
        except InputError as error:
            assert "cut" in str(error) or path.suffix == ".json"
            continue
        told = " ".join(reading.left_out)
        assert "cut off" in told or path.name.startswith(NO_ROW_AT_THE_END)
        if "may be the average since boot" not in told:
            found = figures_of(reading)
            assert found.equals(whole[found.columns].iloc[: len(found)])

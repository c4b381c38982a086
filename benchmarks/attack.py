"""Attack the command: odd tables, lists and notebooks, signals, kills, a full disk.

`make attack` (SEED=2026) does all of it, in some hours, and writes `benchmarks/ATTACK.md`; with
`--share 0.001` a thousandth, and `--part fit` one part alone, printed. Wrong is a traceback, an
exit code that is not 0, 1 or 2 (130 after a signal), a refusal of several lines, more than 1 GiB, a
call in this process that takes more than 20 s of processor time (of the clock, if it mostly waits),
a report that takes more than 20 s longer than plain Jupyter needs for the same notebooks, a formula
that takes more than 2 s of processor time, and whatever is lost without a word.
"""

import argparse
import csv
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from datetime import date
from pathlib import Path
from unittest import mock

import nbformat
import numpy as np
import psutil
from attacker import WORDS, Attack  # it adds the folder of tests to sys.path, for `limited`
from limited import Hang

ROOT = Path(__file__).resolve().parent.parent
MOST = 2**30  # bytes that a process may take
MILD = "usl amdahl linear kappa log relative absolute 0.9 0.5 N>8 N<4 N>1e9 N X".split()
RECORD = "from nummodel.records import claims\nclaims.record('square', size**2)"
CHECK = "claims.check('size', model=size, documented=(0, 9e9), kind='fit')"


def fit(attack: Attack) -> None:
    """Mutated tables and options through `nummodel fit`."""
    tables = [path.read_text() for path in sorted((ROOT / "data").glob("*.csv"))]
    tables += ["N,X\n1,10\n2,19\n2,18\n4,33\n4,34\n4,35\n", "threads;tps\n1;10,4\n2;19,1\n4;34,2\n"]
    tables = [table for table in tables if len(table) < 3000]
    options = ["--x", "--y", "--law", "--weights", "--holdout", "--level"]
    path, sound = attack.folder / "table.csv", []
    for table in tables:
        path.write_text(table)
        sound += [table] * bool(attack.main("fit", str(path)))
    for _ in attack.rounds(100_000):
        if attack.random.random() < 0.2:  # so that something is left to be fitted
            text, values = attack.mutated_rows(attack.random.choice(sound)), MILD
        else:
            text, values = attack.mutated(attack.random.choice(tables)), WORDS
        encoding = attack.random.choice(["utf-8"] * 8 + ["utf-16", "latin-1"])
        path.write_bytes(text.encode(encoding, "ignore"))
        told = [str(path)]
        for option in attack.random.sample(options, attack.random.choice([0, 0, 1, 2])):
            told += [option, attack.random.choice(values)]
        as_json = attack.random.random() < 0.5
        wrong = len(attack.wrong)
        found = attack.main("fit", *told, *["--json"] * as_json)
        if len(attack.wrong) > wrong:
            attack.wrong.append(f"with the table {path.read_bytes()[:3000]!r}")
        if as_json and found:
            figures: list[str] = []
            json.loads(found, parse_constant=figures.append)
            attack.expect(f"{figures} of {told}", not figures)


def lists(attack: Attack) -> None:
    """Mutated lists of runs, and parameters of the command line, without executing them."""
    path, listed = attack.notebook("notebook", RECORD), attack.folder / "runs.yaml"
    base = (
        f"- notebook: {path}\n  parameters: {{size: 4}}\n- {{notebook: {path}}}\n- notebook: 01\n"
    )
    out = attack.folder / "out"
    for _ in attack.rounds(10_000):
        text = attack.mutated(base * attack.random.choice([1, 1, 2]))
        listed.write_bytes(text.encode("utf-8", "surrogatepass"))
        given = [
            f"{attack.mutated('size')}={attack.random.choice(WORDS)}",
            attack.mutated("size=4"),
        ]
        option = attack.random.choice(["-p", "--sweep", "--jobs", "--timeout"])
        odd = [str(path), option, attack.random.choice(given).replace("\0", "")]
        told = odd if attack.random.random() < 0.3 else ["--params", str(listed)]
        attack.main("report", *told, "--no-execute", "--output", str(out))
        shutil.rmtree(out, ignore_errors=True)


def notebooks(attack: Attack) -> None:
    """Mutated notebooks, to be planned and kept, and mutated executed ones, without a kernel."""
    from nummodel.reports import report, results, runs

    path, out = attack.notebook("notebook", RECORD, CHECK), attack.folder / "out"
    sound = json.loads(path.read_text())
    report.execute_run(runs.Run(path), out)
    done = json.loads((out / "notebook.ipynb").read_text())

    def not_executed(run, timeout, warm):
        return results.Outcome(run, nbformat.from_dict(done), 0.0, "")

    with mock.patch.object(report, "carry_out", not_executed):
        for _ in attack.rounds(10_000):
            which = attack.random.random() < 0.5
            odd = attack.mutated_tree(attack.mutated_tree(done if which else sound))
            text = json.dumps(odd, ensure_ascii=attack.random.random() < 0.5)
            text = attack.mutated(text) if attack.random.random() < 0.2 else text
            (out / "notebook.ipynb" if which else path).write_bytes(text.encode("utf-8", "replace"))
            fresh = attack.random.choice([[], ["--no-execute"], ["--force"]])
            attack.main("report", str(path), *fresh, "--output", str(out))
            path.write_text(json.dumps(sound))


def writers(attack: Attack) -> None:
    """Two reports into one folder at once: both go well, and each file is whole."""
    path = attack.notebook("two", RECORD)
    needed = attack.needed(path, runs=12)
    for _ in attack.rounds(10):
        sweep = (path, "--sweep", "size=1,2,3,4,5,6", "--force", "--output", "out")
        with tempfile.TemporaryFile("w+") as told:
            other = attack.start(*sweep, stdout=subprocess.DEVNULL, stderr=told)
            attack.finish("two reports", attack.start(*sweep), needed=needed)
            other.kill()  # if it still runs
            went_well = other.wait() == 0
            told.seek(0)
            attack.expect(f"the other of two reports: {told.read()[-1000:]}", went_well)
        found = json.loads((attack.folder / "out" / "claims.json").read_text())
        attack.expect("claims of two reports", [c["model"] for c in found] == [1, 4, 9, 16, 25, 36])
        hidden = [p.name for p in (attack.folder / "out").iterdir() if p.name[0] == "."]
        attack.expect(f"parts left: {hidden}", not hidden)


def errors(output: Path) -> list[str]:
    """What made runs of a report fail."""
    with open(output / "results.csv", newline="") as file:
        return [row["error"][:300] for row in csv.DictReader(file) if row["error"]]


def kills(attack: Attack) -> None:
    """A sweep that is killed thirty times ends as one that is not."""
    path = attack.notebook("long", "import time; time.sleep(0.3)", RECORD)
    sweep = (path, "--sweep", f"size={','.join(map(str, range(30)))}", "--output")
    needed = attack.needed(path, runs=30)
    attack.finish("undisturbed", attack.start(*sweep, "undisturbed"), needed=needed)
    for _ in attack.rounds(30):
        process = attack.start(*sweep, "out")
        time.sleep(attack.random.uniform(0, 8))
        process.kill()
        attack.finish("kill", process, may=(-9,))
        for whole in (attack.folder / "out").glob("*.ipynb"):
            nbformat.read(whole, as_version=4)
    needed *= 1 - len([*(attack.folder / "out").glob("*.ipynb")]) / 30  # the others are kept
    attack.finish("after the kills", attack.start(*sweep, "out"), needed=needed)
    texts = [(attack.folder / name / "claims.json").read_text() for name in ("out", "undisturbed")]
    failed = [error for name in ("out", "undisturbed") for error in errors(attack.folder / name)]
    attack.expect(f"claims after the kills: {failed}", texts[0] == texts[1])


def signals(attack: Attack) -> None:
    """SIGTERM, SIGHUP and SIGINT at any moment after the first line, some of them twice."""
    slow = "import subprocess, time\nsubprocess.Popen(['sleep', '300'], start_new_session=True)"
    quick, path = attack.notebook("quick", RECORD), attack.notebook("slow", slow, "time.sleep(2)")
    for _ in attack.rounds(40):
        shutil.rmtree(attack.folder / "out", ignore_errors=True)
        process = attack.start(quick, path, "--output", "out")
        process.stderr.readline()
        sent = []
        for _ in range(attack.random.choice([1, 1, 2])):
            time.sleep(attack.random.uniform(0, 6))
            sent.append(attack.random.choice([signal.SIGTERM, signal.SIGHUP, signal.SIGINT]))
            process.send_signal(sent[-1])
        # When the report is done, a signal ends what is left of the process as it ends any other.
        names, done = ", ".join(s.name for s in sent), [-number for number in sent]
        attack.finish(names, process, may=(130, *done))
        index = attack.folder / "out" / "index.html"
        attack.expect(f"no index after {names}", index.exists() or process.returncode in done)
        left = [p.name for p in (attack.folder / "tmp").iterdir() if p.suffix == ".json"]
        attack.expect(f"connection files left: {left}", not left)


def server(attack: Attack) -> None:
    """A server of kernels that is stopped at any moment."""
    path = attack.notebook("one", RECORD)
    for _ in attack.rounds(10):
        process = attack.start(path, "--sweep", "size=1,2,3,4", "--force", "--output", "out")
        time.sleep(attack.random.uniform(1, 6))
        for child in psutil.Process(process.pid).children():
            child.suspend()
        err = attack.finish("stopped server", process)
        attack.expect(f"stopped server: {err[-300:]}", process.returncode == 0)


def outputs(attack: Attack) -> None:
    """30,000 displays in a cell before its claims."""
    many = "from IPython.display import display\nfor i in range(30_000): display(i)\n"
    path = attack.notebook("many", f"{many}{RECORD}\n{CHECK}")
    needed = attack.needed(path)
    process = attack.start(path, "--output", "out")
    attack.finish("30,000 outputs", process, needed=needed)
    found = json.loads((attack.folder / "out" / "claims.json").read_text())
    attack.expect(f"{len(found)} of 2 claims", len(found) == 2 and process.returncode == 0)
    cells = json.loads((attack.folder / "out" / "many.ipynb").read_text())["cells"]
    attack.expect("fewer outputs", len(cells[-1]["outputs"]) == 30_002)


def disk(attack: Attack) -> None:
    """Files that cannot grow beyond a limit, as on a full disk."""
    path = attack.notebook("big", "import random; print(random.randbytes(size).hex())", RECORD)
    sizes, needed = "size=10,100000,1000000,20", attack.needed(path, runs=4)
    for _ in attack.rounds(20):
        limit = attack.random.choice([0, 100, 5_000, 50_000, 300_000])
        shutil.rmtree(attack.folder / "out", ignore_errors=True)

        def with_limit(limit=limit):
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

        # Python would cut its own files of compiled modules, for good.
        with mock.patch.dict(os.environ, PYTHONDONTWRITEBYTECODE="1"):
            process = attack.start(path, "--sweep", sizes, "--output", "out", preexec_fn=with_limit)
        err = attack.finish(f"full at {limit}", process, needed=needed)
        attack.expect(
            f"full at {limit}: {err[-1000:]}", process.returncode > 0 and "File too large" in err
        )
        parts = [p for p in (attack.folder / "out").glob(".*")]
        attack.expect(f"full at {limit}: parts left", not parts)


def large(attack: Attack) -> None:
    """Calls and tables so large that they once took 12 s to 3 min: 2 s at most for a formula"""
    from nummodel.models import locks, networks

    draw, collapsing = attack.random, np.maximum(0.1, 1 - np.arange(1000) / 1000)
    many = [networks.queue(draw.uniform(0.1, 1), servers=draw.randint(16, 64)) for _ in range(50)]
    falling = networks.load_dependent(0.1, 1 - 0.5 * np.arange(10**5) / 10**5)
    collapses = [networks.load_dependent(0.1, collapsing), networks.queue(0.15)]
    calls = {
        "solve with 10^9 threads": lambda: locks.solve(lambda n: 1.0, 10**9, 1.0),
        "solve with a shared lock": lambda: locks.solve(
            lambda n: locks.shared_grant(n, 1.0, 0.01), 2000, 10.0
        ),
        "fewest_shards": lambda: locks.fewest_shards(
            lambda n: 1.0 + 0.01 * n, 800, 100.0, draw.uniform(0.1, 0.3)
        ),
        "50 stations, N = 10^5": lambda: networks.solve(many, 10**5, 10.0),
        "50 stations, N = 10^6": lambda: networks.solve(many, 10**6, 10.0),
        "a capacity that falls": lambda: networks.solve(
            [falling, networks.queue(0.05)], 10**5, 1.0
        ),
        "a capacity that collapses": lambda: networks.solve(collapses, 100_001, 1000.0),
    }
    found = {what: attack.call(what, call, limit=2.0) for what, call in calls.items()}
    X = getattr(found["a capacity that collapses"], "X", np.nan)
    attack.expect(f"a capacity that collapses to a tenth of 10/s: X = {X}", np.isclose(X, 1.0))
    refused = [what for what, result in found.items() if result is None]
    attack.expect(f"refused: {refused}", refused == ["solve with 10^9 threads"])
    path = attack.folder / "large.csv"
    for rows in (500, 5000):
        N = [*range(1, 1 + rows), *range(1000, 1000 + rows)]
        X = [n / (1 + 0.01 * n) * draw.gauss(1, 0.03) for n in N]
        path.write_text("N,X\n" + "".join(f"{n},{x}\n" for n, x in zip(N, X, strict=True)))
        attack.main("fit", str(path), "--holdout", "N>=1000")
    names = [f"c{i}" for i in range(30_000)]
    cells = "".join(f"{n},{10 * n}{',1' * len(names)}\n" for n in (1, 2, 4, 8, 16))
    for known in ("N,X", "threads,c", "a,b"):
        path.write_text(f"{known},{','.join(names)}\n{cells}")
        attack.main("fit", str(path))


def formulas(attack: Attack) -> None:
    """Public functions of the models with extreme values: 2 s of processor time at most each"""
    calls = {"NUMMODEL_CALLS": str(len(attack.rounds(20_000)))}
    calls["NUMMODEL_SEED"] = str(attack.random.randrange(10**6))
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-m",
        "",
        "-q",
        "-x",
        "-rPf",
        "tests/models/test_extremes.py",
    ]
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ | calls, stdout=subprocess.PIPE, text=True
    )
    attack.codes[done.returncode] += int(calls["NUMMODEL_CALLS"])
    attack.slowest = max(
        map(float, re.findall("slowest call: ([0-9.]+) s", done.stdout)), default=0
    )
    _, _, failed = done.stdout.partition("= FAILURES =")
    attack.expect(f"{calls}: {failed[:2000]}", done.returncode == 0)


PARTS = fit, lists, notebooks, writers, kills, signals, server, outputs, disk, large, formulas


def one(part, seed: int, share: float) -> dict:
    """Do one part in this process."""
    signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(Hang()))
    with tempfile.TemporaryDirectory() as folder:
        attack = Attack(seed, share, Path(folder))
        part(attack)
    used = [resource.getrusage(who).ru_maxrss * 1024 for who in (0, resource.RUSAGE_CHILDREN)]
    attack.expect(f"{max(used) / MOST:.1f} GiB", max(used) < MOST)
    codes = {str(code): n for code, n in attack.codes.items()}
    return {"codes": codes, "slowest": attack.slowest, "MiB": max(used) >> 20} | {
        "wrong": attack.wrong
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--part", choices=[part.__name__ for part in PARTS])
    asked = parser.parse_args()
    if asked.part:
        (part,) = (part for part in PARTS if part.__name__ == asked.part)
        print(json.dumps(one(part, asked.seed, asked.share)), file=sys.stderr)
        return
    lines = [
        f"# The attack of {date.today()}",
        "",
        f"Seed {asked.seed}, share {asked.share:g}.",
        "",
    ]
    lines += [
        "| part | calls by exit code | slowest [s] | memory [MiB] | wrong |",
        "|---|---|---|---|---|",
    ]
    found: list[str] = []
    for part in PARTS:
        options = ["--part", part.__name__, "--seed", str(asked.seed), "--share", str(asked.share)]
        done = subprocess.run(
            [sys.executable, __file__, *options], stderr=subprocess.PIPE, text=True
        )
        told = done.stderr.strip().rpartition("\n")[2]
        result = json.loads(told) if done.returncode == 0 else {"wrong": [done.stderr[-500:]]}
        codes = ", ".join(f"{code}: {n:,}" for code, n in sorted(result.get("codes", {}).items()))
        row = [part.__doc__.rstrip("."), codes, f"{result.get('slowest', 0):.1f}"]
        lines.append(f"| {' | '.join(row)} | {result.get('MiB', '')} | {len(result['wrong'])} |")
        found += [f"- {part.__name__}: {what}" for what in result["wrong"][:20]]
        print(lines[-1], *found[-5:], sep="\n")
    text = "\n".join([*lines, *["", "Wrong:", ""][: 3 * bool(found)], *found])
    (ROOT / "benchmarks" / "ATTACK.md").write_text(text + "\n", encoding="utf-8", errors="replace")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()

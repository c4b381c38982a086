"""Are the figures the same on other machines? All notebooks and all tests, as if run elsewhere.

Run by `make anywhere`. Six environments cover each pair of four settings: the kernels of OpenBLAS,
the vector instructions that NumPy and the C library use, one thread or two, and the newest or the
oldest dependencies that pyproject.toml allows. Each environment first proves that its settings took
effect. Then every text that a notebook prints is held against the first environment's, to the last
digit shown. The table is written to ANYWHERE.md beside this file.
"""

import csv
import difflib
import json
import os
import re
import subprocess
import sys
import tempfile
from datetime import date
from pathlib import Path
from typing import NamedTuple

import click

ROOT = Path(__file__).parent.parent
BIN = {name: ROOT / f".venv-{name}" / "bin" for name in ("newest", "oldest")}
TESTING = ["-m", "", *"-q --disable-warnings -p no:cacheprovider".split()]
TESTING += "--numprocesses 2 --dist worksteal --max-worker-restart 0".split()
#: Some versions of OpenBLAS call their kernels for Prescott by the first name that stands for them.
ALIAS = {"Prescott": "Katmai"}
#: The C library's variants of exp, log and pow that need these instructions.
LIBM = "glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4"


class Environment(NamedTuple):
    """OpenBLAS' kernels, whether vector instructions are on, threads, and dependencies."""

    blas: str
    vectors: bool
    threads: int
    dependencies: str


#: Each pair of two settings occurs at least once.
ENVIRONMENTS = [
    Environment("SkylakeX", True, 2, "newest"),
    Environment("SkylakeX", False, 1, "oldest"),
    Environment("Haswell", True, 1, "oldest"),
    Environment("Haswell", False, 2, "newest"),
    Environment("Prescott", True, 1, "newest"),
    Environment("Prescott", False, 2, "oldest"),
]

#: Fitted by the command line.
TABLES = ("cisco", "raytracer", "specsdm91", "zvm-scaling")

PROBE = """
import hashlib, json, math, random
import numpy, pandas, scipy.linalg, sympy
from threadpoolctl import threadpool_info
try:
    from numpy._core import _multiarray_umath as core
except ImportError:
    from numpy.core import _multiarray_umath as core
draw, digits = random.Random(1), hashlib.sha256()
for _ in range(100_000):
    x = draw.uniform(0.1, 20)
    digits.update(f"{math.exp(x)!r}{math.log(x)!r}{x**1.37!r}".encode())
numpy.eye(2) @ numpy.eye(2)
blas = [pool for pool in threadpool_info() if pool["internal_api"] == "openblas"]
print(json.dumps({
    "dispatched": [n for n in core.__cpu_dispatch__ if core.__cpu_features__[n]],
    "blas": sorted({pool["architecture"] for pool in blas}),
    "threads": sorted({pool["num_threads"] for pool in blas}),
    "digits": digits.hexdigest()[:6],
    "versions": {m.__name__: m.__version__ for m in (numpy, scipy, sympy, pandas)},
}))
"""


def main() -> None:
    """Run all environments, write the table, and fail if one differs or did not take effect."""
    rows, texts, failed = [], {}, False
    for environment in environments():
        write(rows)
        click.echo(f"anywhere: {said(environment)}", err=True)
        settings = variables(environment)
        effect = probe(environment, settings)
        wrong = missed(environment, effect)
        with tempfile.TemporaryDirectory() as folder:
            report = run(environment, settings, "-m", "nummodel", "report", "--output", folder)
            printed = texts_of(Path(folder))
        for table in TABLES:
            printed[table] = [run(environment, settings, "-m", "nummodel", "fit", table).stdout]
        texts = texts or printed
        different = differences(texts, printed)
        tests = run(environment, settings, "-m", "pytest", *TESTING)
        passed = "all passed" if tests.returncode == 0 else "FAILED"
        rows.append(row(environment, effect, wrong, printed, different, passed))
        click.echo(rows[-1], err=True)
        failed |= bool(wrong or different or report.returncode or tests.returncode)
        if report.returncode or tests.returncode:
            click.echo(report.stderr[-2000:] + tests.stdout[-8000:], err=True)
    write(rows)
    sys.exit(failed)


def environments() -> list[Environment]:
    """Those that this processor can be: kernels for SkylakeX need AVX-512."""
    dispatched = probe(ENVIRONMENTS[0], {})["dispatched"]
    if any("AVX512" in name or name == "X86_V4" for name in dispatched):
        return ENVIRONMENTS
    click.echo("anywhere: no AVX-512 here, Haswell instead of SkylakeX", err=True)
    known = [e._replace(blas="Haswell") if e.blas == "SkylakeX" else e for e in ENVIRONMENTS]
    return list(dict.fromkeys(known))


def said(environment: Environment) -> str:
    blas, vectors, threads, dependencies = environment
    return f"{blas}, vectors {'on' if vectors else 'off'}, {threads} thread(s), {dependencies}"


def variables(environment: Environment) -> dict[str, str]:
    """What to set. NumPy ignores names that it does not know, so it is asked for those it has."""
    settings = {
        "OPENBLAS_CORETYPE": environment.blas,
        "OPENBLAS_NUM_THREADS": str(environment.threads),
        "OMP_NUM_THREADS": str(environment.threads),
    }
    if not environment.vectors:
        names = probe(environment, {})["dispatched"]
        settings |= {"NPY_DISABLE_CPU_FEATURES": " ".join(names), "GLIBC_TUNABLES": LIBM}
    return settings


def probe(environment: Environment, settings: dict[str, str]) -> dict:
    """What took effect."""
    done = run(environment, settings, "-c", PROBE)
    if done.returncode:
        sys.exit(f"anywhere: {said(environment)}: {done.stderr}")
    return json.loads(done.stdout)


def missed(environment: Environment, effect: dict) -> list[str]:
    """The settings that did not take effect."""
    plain = probe(environment, {})
    checks = {
        "blas": set(effect["blas"]) <= {environment.blas, ALIAS.get(environment.blas)},
        "threads": effect["threads"] == [environment.threads],
        "vectors of NumPy": bool(effect["dispatched"]) == environment.vectors,
        "vectors of the C library": (effect["digits"] == plain["digits"]) == environment.vectors,
    }
    return [name for name, took in checks.items() if not took]


def run(environment: Environment, settings: dict[str, str], *command: str):
    """A command of the interpreter that has the dependencies."""
    cleared = ("OPENBLAS", "OMP_", "NPY_", "GLIBC_", "PYTHON")
    inherited = {n: v for n, v in os.environ.items() if not n.startswith(cleared)}
    path = f"{BIN[environment.dependencies]}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        [BIN[environment.dependencies] / "python", *command],
        cwd=ROOT,
        env=inherited | settings | {"PATH": path},
        capture_output=True,
        text=True,
    )


def texts_of(folder: Path) -> dict[str, list[str]]:
    """Whatever the cells of each executed notebook print, without pictures."""
    found = {}
    for path in sorted(folder.glob("*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        outputs = [output for cell in cells for output in cell.get("outputs", [])]
        found[path.stem] = [text for output in outputs for text in texts(output)]
    with open(folder / "results.csv", newline="", encoding="utf-8") as file:
        rows = [row[:3] + row[4:] for row in csv.reader(file)]  # without the seconds
    return found | {"results.csv": ["\n".join(map(str, rows))]}


def texts(output: dict):
    data = output.get("data", {}) | {"stream": output.get("text", "")}
    for kind in ("stream", "text/plain", "text/html", "text/markdown", "text/latex"):
        text = data.get(kind, "")
        text = text if isinstance(text, str) else "".join(text)
        yield RANDOM.sub("", text)


def differences(one: dict[str, list[str]], other: dict[str, list[str]]) -> list[str]:
    """The lines in which two sets of notebooks differ, with the notebook's name."""
    found = []
    for name in sorted(one.keys() | other.keys()):
        before, after = ("\n".join(texts.get(name, ["none"])) for texts in (one, other))
        lines = difflib.unified_diff(before.splitlines(), after.splitlines(), n=0, lineterm="")
        found += [f"{name} {line}" for line in lines if line[:1] in "+-" and line[:3] not in MARKS]
    return found


MARKS = ("---", "+++")
#: Pixels, and what pandas and Python number anew each time.
RANDOM = re.compile(r"src=\"data:[^\"]*\"|<style.*?</style>|T_[0-9a-f]{5}|0x[0-9a-f]+", re.S)


def row(environment, effect, wrong, printed, different, passed) -> str:
    vectors = ", ".join(effect["dispatched"]) or "none"
    versions = ", ".join(f"{name} {version}" for name, version in effect["versions"].items())
    for line in different:
        click.echo(line, err=True)
    cells = [
        said(environment),
        f"{', '.join(effect['blas'])}; {effect['threads'][0]} thread(s); NumPy: {vectors}; "
        f"libm {effect['digits']}" + f"; NOT: {', '.join(wrong)}" * bool(wrong),
        versions,
        f"{len(printed) - len(TABLES) - 1} notebooks, fits of {len(TABLES)} tables",
        passed,
        str(len(different)) if different else "none",
    ]
    return f"| {' | '.join(cells)} |"


def write(rows: list[str]) -> None:
    head = [
        f"# The same figures anywhere: {date.today()}",
        "",
        "Made by `make anywhere`. `libm` is a hash of the last digits of the C library's exp, log",
        "and pow. OpenBLAS may call its kernels for Prescott by another name of the same kernels,",
        "Katmai. Texts that notebooks print are compared with the first row's, line by line.",
        "",
        "| environment | took effect | versions | ran | tests | figures that differ |",
        "|---|---|---|---|---|---|",
    ]
    Path(__file__).with_name("ANYWHERE.md").write_text("\n".join([*head, *rows]) + "\n")


if __name__ == "__main__":
    main()

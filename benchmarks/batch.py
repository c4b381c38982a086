"""Forty runs, two at a time, beside forty kernels that import the same modules and do nothing.

Run by `make batch`. Prints the wall time of both, measured in turn, their ratio, the same of their
processor time, which other programs disturb less, and how long the same command takes when there is
nothing left to do, and writes them to BATCH.md beside this file. The kernels of the floor start as
any kernel does; those of the runs are forked where that is safe.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path
from statistics import median
from time import perf_counter

from nummodel.reports import notebook, runs

SWEEPS = {
    "01": "sigma=0.01,0.02,0.03,0.04,0.05,0.06,0.07,0.08,0.09,0.1",
    "02": "rho=0.5,0.55,0.6,0.65,0.7,0.75,0.8,0.85,0.9,0.95",
    "03": "D_lock=0.03,0.032,0.034,0.036,0.038,0.04,0.042,0.044,0.046,0.048",
    "11": "level=0.9,0.91,0.92,0.93,0.94,0.95,0.96,0.97,0.98,0.99",
}
JOBS = 2
NOTES = """## What was tried

- **Kernels that are forked** from a server, which has imported the libraries once: part of all
  figures above.
- **Pages made beside the next notebook.** Until 2026-11-25 each of two threads waited until the
  page of its notebook was made, before it began the next one. In two runs, one after the other,
  that took 53.4 s and was 1.28 times as long as the kernels (1.20 by processor time); with pages
  made beside, it took 50.6 s, 1.19 times as long (1.09 by processor time).
"""


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=1)
    rounds = options.parse_args().rounds
    planned = [run for name, sweep in SWEEPS.items() for run in runs.plan([name], sweep=[sweep])]
    modules = {name: modules_of(name) for name in SWEEPS}
    walls, processors, load = [], [], os.getloadavg()[0]
    lines = [f"# Time of {len(planned)} runs, {JOBS} at a time", ""]
    lines += [f"Measured on {date.today()}; the load of the machine was {load:.1f} before.", ""]
    lines += ["| runs [s] | same again [s] | kernels that only import [s] | runs / kernels "]
    lines[-1] += "| processor time of the runs [s] | of the kernels [s] | runs / kernels |"
    lines += ["|---|---|---|---|---|---|---|"]
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            took, used = report(planned, Path(folder))
            again, _ = report(planned, Path(folder))
        floor, least = kernels([modules[run.notebook.stem[:2]] for run in planned])
        walls.append(took / floor)
        processors.append(used / least)
        lines += [f"| {took:.1f} | {again:.2f} | {floor:.1f} | {walls[-1]:.2f} "]
        lines[-1] += f"| {used:.1f} | {least:.1f} | {processors[-1]:.2f} |"
    lines += [
        "",
        f"The median of runs / kernels is {median(walls):.2f} (goal: 1.25), and "
        f"{median(processors):.2f} by processor time, which is that of all processes. The same "
        "command, given again, should take at most 2 s.",
        "",
        NOTES.strip(),
    ]
    text = "\n".join(lines)
    print(text)
    (Path(__file__).parent / "BATCH.md").write_text(text + "\n")


def report(planned: list[runs.Run], folder: Path) -> tuple[float, float]:
    """Seconds that the command takes for all of them, and of processor time."""
    listing = folder / "runs.yaml"
    with open(listing, "w") as file:
        for run in planned:
            given = ", ".join(f"{name}: {value}" for name, value in run.parameters.items())
            file.write(f"- {{notebook: {run.notebook.stem}, parameters: {{{given}}}}}\n")
    start, before = perf_counter(), processor()
    command = [sys.executable, "-m", "nummodel", "report", "--params", listing]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run([*command, "--jobs", str(JOBS), "--output", folder / "out"], check=True, **quiet)
    return perf_counter() - start, processor() - before


def processor() -> float:
    """Seconds of processor time of this process and of all that it, or they, have waited for. That
    may lack the last kernels of the runs, whose server is killed with them: as many as JOBS.
    """
    both = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(used.ru_utime + used.ru_stime for used in both)


def modules_of(name: str) -> str:
    """A statement that imports what is loaded when the notebook has run."""
    code = [
        cell.source for cell in notebook.read(runs.find(name)).cells if cell.cell_type == "code"
    ]
    wanted = "print('MODULES', *sorted({*__import__('sys').modules} - _begin))"
    source = "\n".join(["_begin = {*__import__('sys').modules}", *code, wanted])
    loaded = in_kernel(source).rpartition("MODULES ")[2].split()
    statement = f"import importlib, contextlib\nfor name in {loaded!r}:\n"
    return statement + "    with contextlib.suppress(Exception): importlib.import_module(name)"


def kernels(statements: list[str]) -> tuple[float, float]:
    """Seconds for as many kernels, so many at a time, that execute these and end, and of processor
    time.
    """
    start, before = perf_counter(), processor()
    with ThreadPoolExecutor(JOBS) as pool:
        list(pool.map(in_kernel, statements))
    return perf_counter() - start, processor() - before


def in_kernel(source: str) -> str:
    """What a kernel of its own prints when it executes this."""
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel(kernel_name=notebook.KERNEL, stderr=subprocess.DEVNULL)
    printed = []

    def note(message: dict) -> None:
        if message["msg_type"] == "stream":
            printed.append(message["content"]["text"])

    try:
        reply = client.execute_interactive(source, output_hook=note, timeout=300)
        assert reply["content"]["status"] == "ok", reply["content"]
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
    return "".join(printed)


if __name__ == "__main__":
    main()

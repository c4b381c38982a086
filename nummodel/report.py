"""Notebooks become executed notebooks and pages, in parallel.

Every step is a plain function: `plan` turns what was asked for into runs and refuses what cannot
run, `execute` carries out one run, `report` does all of them and writes the index.
"""

import json
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from errno import EISDIR
from functools import cached_property
from pathlib import Path
from time import perf_counter
from typing import Any

from nummodel import claims, data
from nummodel.errors import InputError
from nummodel.notebook import KERNEL, papermill, parameters, read, summary, value_of

STAMP = "nummodel_run"  # an executed notebook's metadata that tell how its run went
MARKER = "papermill-error-cell-tag"


@dataclass(frozen=True)
class Run:
    """One notebook with one set of parameters."""

    notebook: Path
    parameters: dict[str, Any] = field(default_factory=dict, hash=False)

    @property
    def name(self) -> str:
        return self.notebook.stem


@dataclass(frozen=True)
class Outcome:
    """What came of a run: the executed notebook; `error` is empty if it ran to its end."""

    run: Run
    notebook: Any
    seconds: float
    error: str

    @cached_property
    def claims(self) -> list[dict]:
        return list(claims.collected(self.notebook))

    @property
    def title(self) -> str:
        """The question that is the notebook's title."""
        return summary(self.notebook)[0]

    @property
    def answer(self) -> str:
        """The paragraph that answers it, as markdown."""
        return summary(self.notebook)[1]

    @property
    def found(self) -> str:
        """What a run with parameters of its own recorded as its answer, or nothing."""
        recorded = (claim["model"] for claim in self.claims if claim["what"] == "answer")
        return next(recorded, "") if self.run.parameters else ""


def notebooks() -> list[Path]:
    """The collection, in order."""
    return sorted((data.HOME / "notebooks").glob("[0-9]*.ipynb"))


def find(name: str) -> Path:
    """The notebook with this number ("11"), name or path. Raises InputError."""
    for path in notebooks():
        if name in (path.stem, path.name) or name.zfill(2) == path.stem.partition("-")[0]:
            return path
    path = Path(name)
    if path.suffix == ".ipynb" and path.is_file():
        return path
    names = ", ".join(p.stem for p in notebooks())
    raise InputError(f"{name}: no such notebook, expected a path or one of: {names}")


def plan(names: list[str], given: list[str]) -> list[Run]:
    """Runs of the named notebooks (all, if none is named) with the parameters "name=value".

    A parameter goes to every notebook that has it. Raises InputError for a notebook that is not
    there, two of the same name, a parameter that none of them has, and a value of another type
    than the default's or outside the range of the quantity that it is named after.
    """
    paths = list(dict.fromkeys(find(name) for name in names)) or notebooks()
    for path in paths:
        if path.stem == "index" or [other.stem for other in paths].count(path.stem) > 1:
            raise InputError(f"{path}: expected a notebook with a name of its own, and not 'index'")
    known = {path: parameters(path) for path in paths}
    values: dict[Path, dict] = {path: {} for path in paths}
    for item in given:
        name, equals, text = item.partition("=")
        if not equals:
            raise InputError(f"parameter {item!r}, expected name=value")
        takers = [path for path in paths if name in known[path]]
        if not takers:
            names_ = sorted({n for path in paths for n in known[path]})
            raise InputError(f"unknown parameter {name!r}, expected one of: {', '.join(names_)}")
        for path in takers:
            values[path][name] = value_of(known[path][name], text)
    return [Run(path, values[path]) for path in paths]


def report(runs: list[Run], folder: Path, jobs: int, execute: bool = True) -> list[Outcome]:
    """Carry out `runs`, `jobs` at a time, and write pages, index and claims.json to `folder`.

    With `execute=False`, the notebooks that an earlier report left in `folder` are made into pages
    again. Raises InputError if `folder` cannot be written.
    """
    from tqdm import tqdm

    from nummodel import pages

    _refuse_unwritable(folder)
    for run in runs:
        if (folder / f"{run.name}.ipynb").resolve() == run.notebook.resolve():
            raise InputError(f"{folder}: holds the notebook {run.name}, expected another folder")
    job, done = execute_run if execute else reuse_run, {}
    with ThreadPoolExecutor(jobs) as pool, tqdm(total=len(runs), unit="notebook") as bar:
        futures = {pool.submit(job, run, folder): run for run in runs}
        try:
            for future in as_completed(futures):
                run = futures[future]
                done[run] = _outcome(future, run)
                bar.set_postfix_str(run.name)
                bar.update()
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            _end_kernels()
            raise
    outcomes = [done[run] for run in runs]
    found = [{"run": o.run.name, **claim} for o in outcomes for claim in o.claims]
    write(folder / "claims.json", json.dumps(found, indent=1) + "\n")
    write(folder / "index.html", pages.index(outcomes))
    return outcomes


def execute_run(run: Run, folder: Path) -> Outcome:
    """Execute one notebook into `folder` and make its page; a failure is part of the outcome."""
    from traitlets.config import Config

    library = papermill()
    part = folder / f".{run.name}.part.ipynb"
    # Loopback needs no encryption; unasked, ipykernel warns of that in every notebook. A kernel
    # that has run its last cell has nothing to save: asked politely it takes another second.
    config = Config(
        KernelManager={"transport_encryption": "auto"},
        NotebookClient={"shutdown_kernel": "immediate"},
    )
    options = {"progress_bar": False, "kernel_name": KERNEL, "language": "python"}
    options |= {"request_save_on_cell_execute": False, "autosave_cell_every": 0}
    start, error = perf_counter(), ""
    try:
        library.execute_notebook(run.notebook, part, run.parameters, config=config, **options)
    except library.PapermillExecutionError as failure:
        error = f"{failure.ename}: {failure.evalue}"
    except Exception as failure:  # a dead kernel, a full disk: this run fails, the others go on
        error = f"{type(failure).__name__}: {failure}"
    seconds = perf_counter() - start
    notebook = read(part if part.exists() else run.notebook)
    # The marker that papermill puts above a failed notebook; the page has its own.
    notebook.cells = [c for c in notebook.cells if MARKER not in c.metadata.get("tags", [])]
    notebook.metadata[STAMP] = {"seconds": seconds, "error": error, "parameters": run.parameters}
    write(folder / f"{run.name}.ipynb", json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")
    part.unlink(missing_ok=True)
    return _paged(Outcome(run, notebook, seconds, error), folder)


def reuse_run(run: Run, folder: Path) -> Outcome:
    """The outcome of a run that an earlier report left in `folder`."""
    executed = folder / f"{run.name}.ipynb"
    if not executed.exists():
        return _paged(Outcome(run, read(run.notebook), 0.0, "not executed"), folder)
    notebook = read(executed)
    stamp = notebook.metadata.get(STAMP, {})
    run = Run(run.notebook, stamp.get("parameters", {}))
    return _paged(Outcome(run, notebook, stamp.get("seconds", 0.0), stamp.get("error", "")), folder)


def write(path: Path, text: str) -> None:
    """Write a file whole or not at all."""
    part = path.with_name(f".{path.name}.part")
    part.write_text(text, encoding="utf-8")
    part.replace(path)


def _paged(outcome: Outcome, folder: Path) -> Outcome:
    from nummodel import pages

    write(folder / f"{outcome.run.name}.html", pages.page(outcome))
    return outcome


def _outcome(future: Future, run: Run) -> Outcome:
    """What a worker returned; a run whose files could not be written is a failed one."""
    try:
        return future.result()
    except Exception as failure:  # whatever it is, the other runs go on
        return Outcome(run, read(run.notebook), 0.0, f"{type(failure).__name__}: {failure}")


def _end_kernels() -> None:
    import psutil

    for child in psutil.Process().children(recursive=True):
        child.kill()


def _refuse_unwritable(folder: Path) -> None:
    probe = folder / ".part"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
        for name in ("index.html", "claims.json"):
            if (folder / name).is_dir():
                raise IsADirectoryError(EISDIR, f"{name} is a folder")
    except OSError as error:
        raise InputError(f"{folder}: {error.strerror}, expected a writable folder") from None

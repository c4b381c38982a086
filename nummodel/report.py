"""Notebooks become executed notebooks and pages, in parallel.

Every step is a plain function: `plan` turns what was asked for into runs and refuses what cannot
run, `execute` carries out one run, `report` does all of them and writes the index.
"""

import ast
import json
import sys
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from errno import EISDIR
from functools import cached_property
from math import inf, isfinite
from pathlib import Path
from time import perf_counter
from typing import Any

from nummodel import claims, data
from nummodel.errors import InputError
from nummodel.nomenclature import QUANTITIES

# jsonschema, which reads notebooks, tries this optional checker of web addresses, whose grammar
# takes two seconds to build and which no notebook needs.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]

KERNEL = "python3"
STAMP = "nummodel_run"  # an executed notebook's metadata that tell how its run went
MARKER = "papermill-error-cell-tag"


@dataclass(frozen=True)
class Parameter:
    """A line of a notebook's parameters cell."""

    name: str
    type: str
    default: str
    help: str


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


def read(path: Path) -> Any:
    """A notebook file. Raises InputError if it is none."""
    import nbformat

    try:
        return nbformat.read(path, as_version=4)
    except Exception as error:  # nbformat has no common ancestor for what it raises
        reason = str(error).splitlines()[0][:80]
        raise InputError(
            f"{path}: not a notebook ({reason}), expected JSON of nbformat 4"
        ) from None


def parameters(path: Path) -> dict[str, Parameter]:
    """What a notebook can be told, from its cell tagged `parameters`."""
    notebook = read(path)
    notebook.metadata.setdefault("kernelspec", {"name": KERNEL, "display_name": "Python 3"})
    notebook.metadata.setdefault("language_info", {"name": "python"})
    return {
        name: Parameter(name, p["inferred_type_name"], p["default"], p["help"])
        for name, p in _papermill().inspect_notebook(notebook).items()
    }


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
            values[path][name] = _value(known[path][name], text)
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

    papermill = _papermill()
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
        papermill.execute_notebook(run.notebook, part, run.parameters, config=config, **options)
    except papermill.PapermillExecutionError as failure:
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


def summary(notebook: Any) -> tuple[str, str]:
    """The question that is a notebook's title, and the paragraph that answers it."""
    text = next((c.source for c in notebook.cells if c.cell_type == "markdown"), "")
    title, _, rest = text.partition("\n")
    return title.lstrip("# ").strip(), rest.strip().partition("\n\n")[0].replace("\n", " ")


def _papermill():
    """papermill, without a fault of what it stands on."""
    import papermill
    from nbclient.output_widget import OutputWidget

    # A slider's cell sometimes never ends: nbclient sends on the channel that it listens on, and
    # misses the reply (nbclient #312). What it sends is a copy that only a browser needs.
    OutputWidget.sync_state = lambda self: None  # type: ignore[method-assign]
    return papermill


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


def _value(parameter: Parameter, text: str) -> Any:
    """A parameter's value from the command line, of the type that the notebook declares."""
    kind = parameter.type if parameter.type in TYPES else _type_of(parameter.default)
    read_as = TYPES[kind]
    try:
        value = read_as(text)
        low, high = QUANTITIES[parameter.name][3:] if parameter.name in QUANTITIES else (-inf, inf)
        if kind in ("int", "float") and not (isfinite(value) and low <= value <= high):
            raise ValueError
    except ValueError:
        example = parameter.default.replace('"', "").replace(" ", "")
        raise InputError(
            f"parameter {parameter.name} is {text!r}, expected {kind}"
            f"{_range_of(parameter.name)}, as in {parameter.name}={example}"
        ) from None
    return value


def _range_of(name: str) -> str:
    if name not in QUANTITIES:
        return ""
    low, high = QUANTITIES[name][3:]
    return f" of at least {low:g}" + (f" and at most {high:g}" if isfinite(high) else "")


def _type_of(default: str) -> str:
    """The type of a parameter that declares none: that of its default."""
    try:
        name = type(ast.literal_eval(default)).__name__
    except (ValueError, SyntaxError):
        name = "str"
    return name if name in TYPES else "str"


def _truth(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError
    return text.lower() == "true"


def _list(text: str) -> list:
    """Numbers or words between commas, with or without brackets."""
    inner = text.strip().removeprefix("[").removesuffix("]")
    if any(c in inner for c in "[]{}"):
        raise ValueError
    return [_item(item.strip().strip("'\"")) for item in inner.split(",") if item.strip()]


def _item(text: str) -> int | float | str:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


#: How a parameter of each type that a notebook may declare is read.
TYPES: dict[str, Any] = {"int": int, "float": float, "str": str, "bool": _truth, "list": _list}

"""What is to be run: notebooks, each with one set of parameters, and by what a run is known.

`plan` turns what was asked for on the command line into runs, `listed` what a file asks for; both
refuse what cannot run before anything does.
"""

import json
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache, cached_property
from hashlib import file_digest, sha256
from itertools import product
from pathlib import Path
from typing import Any

from nummodel import __version__
from nummodel.errors import InputError
from nummodel.records import data
from nummodel.reports.notebook import parameters, value_of

# Values that can stand in a file's name, also where names do not tell capitals apart.
PLAIN = re.compile(r"[a-z0-9._+-]*")
LONGEST = 120
LARGEST = 1_000_000  # characters of a list of runs


@dataclass(frozen=True)
class Run:
    """One notebook with one set of parameters."""

    notebook: Path
    parameters: dict[str, Any] = field(default_factory=dict, hash=False)

    @cached_property
    def name(self) -> str:
        """What its files are called: readable, and the same for the same run only.

        >>> Run(Path("03-closed-systems.ipynb"), {"N": 32, "Z": 1.5}).name
        '03-closed-systems,N=32,Z=1.5'
        >>> Run(Path("11-zvm.ipynb"), {"train": [6, 12], "law": "usl"}).name
        '11-zvm,train=6+12,law=usl'
        >>> Run(Path("21-yours.ipynb"), {"file": "../Mine.csv"}).name
        '21-yours,file=..-mine.csv,5206c2'
        """
        words = {name: _word(value) for name, value in self.parameters.items()}
        name = ",".join([self.notebook.stem, *(f"{n}={word}" for n, word in words.items())])
        if all(map(PLAIN.fullmatch, words.values())) and len(name) <= LONGEST:
            return name
        plain = {n: re.sub(r"[^a-z0-9._+-]", "-", word.lower()) for n, word in words.items()}
        name = ",".join([self.notebook.stem, *(f"{n}={word}" for n, word in plain.items())])
        return f"{name[:LONGEST]},{sha256(_json(self.parameters)).hexdigest()[:6]}"

    @property
    def key(self) -> str:
        """What the outcome follows from, hashed: notebook, parameters, package, data.

        A parameter that names a file stands for what is in it. Other files that a notebook may
        read are not seen.
        """
        known = sha256(_package())
        known.update(self.notebook.read_bytes())
        known.update(_json(self.parameters))
        defaults = {p.name: p.default.strip("\"'") for p in parameters(self.notebook).values()}
        for value in (defaults | self.parameters).values():
            if isinstance(value, str) and os.path.isfile(value):
                with open(value, "rb") as file:
                    known.update(file_digest(file, "sha256").digest())
        return known.hexdigest()


def notebooks() -> list[Path]:
    """The collection, in order."""
    return sorted((data.HOME / "notebooks").glob("[0-9]*.ipynb"))


def find(name: str) -> Path:
    """The notebook with this number ("11"), name or path. Raises InputError."""
    for path in notebooks():
        if name in (path.stem, path.name) or name.zfill(2) == path.stem.partition("-")[0]:
            return path
    path = Path(name)
    if path.suffix == ".ipynb" and os.path.isfile(path):
        return path
    names = [p.stem for p in notebooks()]
    close = get_close_matches(name, names, 1, 0.5)
    meant = f" (did you mean {close[0]}? Its number is enough)" if close else ""
    if "=" in name:
        meant = f" (a parameter is set by -p {name})"
    known = ", ".join(names)
    raise InputError(f"{name}: no such notebook{meant}, expected a path or one of: {known}")


def plan(names: list[str], given: Iterable[str] = (), sweep: Iterable[str] = ()) -> list[Run]:
    """Runs of the named notebooks (all, if none is named) with the parameters "name=value".

    Of several values in `sweep`, "name=v1,v2", each makes a run, and of several such parameters
    each combination. A list is one value in its brackets. A parameter goes to every notebook that
    has it. Raises InputError for a notebook that is not there, two of the same name, a parameter
    that none of them has or that comes twice, and a value of another type than the default's or
    outside the range of the quantity that it is named after.
    """
    paths = list(dict.fromkeys(find(name) for name in names)) or notebooks()
    known = {path: parameters(path) for path in paths}
    choices: dict[str, list[str]] = {}
    for item, swept in [*((i, False) for i in given), *((i, True) for i in sweep)]:
        name, equals, text = item.partition("=")
        if not equals:
            raise InputError(f"parameter {item!r}, expected name=value")
        if name in choices:
            raise InputError(f"parameter {name!r} is given twice, expected once")
        if not any(name in known[path] for path in paths):
            names_ = sorted({n for path in paths for n in known[path]})
            raise InputError(f"unknown parameter {name!r}, expected one of: {', '.join(names_)}")
        choices[name] = re.split(r",(?![^\[]*\])", text) if swept else [text]
    runs = []
    for path in paths:
        taken = [name for name in known[path] if name in choices]
        values = [[value_of(known[path][name], t) for t in choices[name]] for name in taken]
        runs += [Run(path, dict(zip(taken, v, strict=True))) for v in product(*values)]
    return _apart(runs)


def listed(path: Path) -> list[Run]:
    """The runs that a YAML file lists: `- {notebook: 11, parameters: {train: [6, 12]}}`.

    Raises InputError, as `plan` does, with the line of the run that it is about.
    """
    import yaml

    try:
        with open(path, encoding="utf-8") as file:
            text = file.read(LARGEST + 1)
        if len(text) > LARGEST:
            raise InputError(f"{path}: more than {LARGEST:,} characters, expected a list of runs")
        # Everything as it is written, since the notebook says of what type it is.
        items = yaml.load(text, yaml.BaseLoader)
        nodes = yaml.compose(text).value if isinstance(items, list) else []
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", "not text in UTF-8")
        raise InputError(f"{path}: {reason}, expected a YAML file") from None
    except RecursionError:
        raise InputError(f"{path}: nested too deeply, expected a list of runs") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{path}:{mark.line + 1}" if mark else f"{path}"
        raise InputError(f"{where}: not YAML, expected a list of runs") from None
    if not nodes:
        raise InputError(f"{path}: no list, expected runs with a notebook and parameters each")
    runs = []
    for item, node in zip(items, nodes, strict=True):
        try:
            runs += _one(item)
        except InputError as error:
            raise InputError(f"{path}:{node.start_mark.line + 1}: {error}") from None
    return _apart(runs)


def _one(item: Any) -> list[Run]:
    fields = set(item) if isinstance(item, dict) else set()
    name = item["notebook"] if {"notebook"} <= fields <= {"notebook", "parameters"} else None
    if not isinstance(name, str):
        raise InputError("no run, expected a notebook and, where it has any, parameters")
    given = item.get("parameters") or {}
    if not isinstance(given, dict):
        raise InputError("parameters without names, expected name: value")
    return plan([name], [f"{n}={_value(n, v)}" for n, v in given.items()])


def _value(name: str, value: Any) -> str:
    """A value as the command line would have it: a word, or words in brackets."""
    words = value if isinstance(value, list) else [value]
    if not all(isinstance(word, str) for word in words):  # an alias may stand for ever more of them
        raise InputError(f"parameter {name}: expected a value, or a list of values")
    return f"[{', '.join(value)}]" if isinstance(value, list) else value


def _apart(runs: list[Run]) -> list[Run]:
    """Each run once. Raises InputError if the files of two would have the same name."""
    runs = list(dict.fromkeys(runs))
    names: dict[str, Run] = {}
    for run in runs:
        name = run.name.lower()
        if name == "index" or name in names:
            raise InputError(
                f"{run.notebook}: expected a notebook with a name of its own, and not 'index'"
            )
        names[name] = run
    return runs


def _word(value: Any) -> str:
    """A value as it stands in a name."""
    if isinstance(value, list):
        return "+".join(map(_word, value))
    text = str(value)
    if isinstance(value, bool):
        return text.lower()
    return text.removesuffix(".0") if isinstance(value, float) else text


def _json(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True).encode()


@cache
def _package() -> bytes:
    """Version, sources and tables, hashed."""
    root = Path(__file__).parent.parent
    known = sha256(__version__.encode())
    sources = [*root.rglob("*.py"), *root.rglob("*.j2")]
    tables = (data.HOME / "data").glob("[!.]*.*")  # not the folders that JupyterLab makes there
    for path in sorted([*sources, *tables]):
        known.update(path.name.encode() + path.read_bytes())
    return known.digest()

"""Runs: notebooks, each with one set of parameters, and what tells one run from another.

`plan` makes runs of what the command line asks for, `listed` of what a file asks for. Both refuse
what cannot run before anything runs.
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

from nummodel.cluster import package
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

        def joined(words: list[str]) -> str:
            return ",".join([self.notebook.stem, *map("{}={}".format, self.parameters, words)])

        words = [_word(value) for value in self.parameters.values()]
        name = joined(words)
        if all(map(PLAIN.fullmatch, words)) and len(name) <= LONGEST:
            return name
        name = joined([re.sub(r"[^a-z0-9._+-]", "-", word.lower()) for word in words])
        return f"{name[:LONGEST]},{sha256(_json(self.parameters)).hexdigest()[:6]}"

    @property
    def key(self) -> str:
        """A hash of all that the outcome follows from: notebook, parameters, package, data, and the
        versions of the libraries.

        A parameter that names a file stands for what is in the file, and one that names a folder
        for all files in it. Other files that a notebook may read are not seen.
        """
        everything = sha256(package())
        everything.update(self.notebook.read_bytes())
        everything.update(_json(self.parameters))
        defaults = {p.name: p.plain for p in parameters(self.notebook).values()}
        for value in (defaults | self.parameters).values():
            for path in _files(value) if isinstance(value, str) else ():
                everything.update(str(path).encode())
                with path.open("rb") as file:
                    everything.update(file_digest(file, "sha256").digest())
        return everything.hexdigest()


def _files(name: str) -> list[Path]:
    """The file of this name, or those in the folder of this name; none if there is neither."""
    path = Path(name)
    inside = sorted(path.rglob("*")) if name and path.is_dir() else [path]
    return [one for one in inside if one.is_file()]


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
    raise InputError(
        f"{name}: no such notebook{meant}, expected a path or one of: {', '.join(names)}"
    )


def plan(names: list[str], given: Iterable[str] = (), sweep: Iterable[str] = ()) -> list[Run]:
    """Runs of the named notebooks (all, if none is named) with the parameters "name=value".

    In `sweep`, "name=v1,v2" makes a run with each value, and several such parameters make a run
    with each combination of their values. A list in brackets is one value. A parameter is set in
    every notebook that has it. Raises InputError for a notebook that does not exist, for two of the
    same name, for a parameter that no notebook has or that is given twice, and for a value of
    another type than the default or outside the range of the quantity that the parameter is named
    after.
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
        if not any(name in of_notebook for of_notebook in known.values()):
            others = ", ".join(sorted(set().union(*known.values())))
            expected = f"one of: {others}" if others else "none: the notebooks have no parameters"
            raise InputError(f"unknown parameter {name!r}, expected {expected}")
        choices[name] = re.split(r",(?![^\[]*\])", text) if swept else [text]
    runs = []
    for path, of_notebook in known.items():
        taken = [name for name in of_notebook if name in choices]
        values = [[value_of(of_notebook[name], text) for text in choices[name]] for name in taken]
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


def refuse_missing_files(runs: Iterable[Run]) -> None:
    """Raise InputError if a run shall read a table that is neither published nor a file.

    The parameter of a table is called `file`, or has a published table as its default.
    """
    declared = cache(parameters)  # many runs may be of one notebook
    for run in runs:
        tables = {p.name for p in declared(run.notebook).values() if p.plain in data.tables()}
        for name in run.parameters.keys() & (tables | {"file"}):
            value = str(run.parameters[name])
            if value not in data.tables() and not _files(value):
                expected = (
                    "an existing file or folder, or a table that `nummodel list tables` names"
                )
                raise InputError(f"parameter {name} is {value!r}, expected {expected}")


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
    names = {"index"}
    for run in runs:
        if run.name.lower() in names:
            expected = "a notebook with a name of its own, and not 'index'"
            raise InputError(f"{run.notebook}: expected {expected}")
        names.add(run.name.lower())
    return runs


def _word(value: Any) -> str:
    """A value as it stands in a name."""
    if isinstance(value, list):
        return "+".join(map(_word, value))
    if isinstance(value, bool):
        return str(value).lower()
    return str(value).removesuffix(".0" if isinstance(value, float) else "")


def _json(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True).encode()

"""Notebook files: the title, its answer, and the parameters that a notebook declares."""

import ast
import sys
import warnings
from contextlib import suppress
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

from nummodel.errors import InputError
from nummodel.nomenclature import in_range, known, range_of

# nbformat imports jsonschema, which tries this optional checker of web addresses. Its grammar takes
# a second to build, three times as long as `nummodel list` takes, and no notebook needs it.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]

KERNEL = "python3"


@dataclass(frozen=True)
class Parameter:
    """A line of a notebook's parameters cell, with its default as the cell has it."""

    name: str
    type: str
    default: str
    help: str

    @property
    def plain(self) -> str:
        """The default without the quotes of a text."""
        return self.default.strip("\"'")


def read(path: Path) -> Any:
    """A notebook file. Raises InputError if it is none."""
    import nbformat
    from nbformat.warnings import DuplicateCellId, MissingIDFieldWarning

    for kind in (DuplicateCellId, MissingIDFieldWarning):  # which nbformat mends
        warnings.simplefilter("ignore", kind)
    try:
        notebook = nbformat.convert(nbformat.reader.reads(path.read_text(encoding="utf-8")), 4)
        nbformat.validate(notebook)
        return notebook
    except Exception as error:  # nbformat has no common ancestor for what it raises
        reason = (str(error) or type(error).__name__).splitlines()[0][:80]
        expected = "expected JSON of nbformat 4"
        raise InputError(f"{path}: not a notebook ({reason}), {expected}") from None


def summary(notebook: Any) -> tuple[str, str]:
    """The question that is a notebook's title, and the paragraph that answers it."""
    text = next((c["source"] for c in notebook["cells"] if c["cell_type"] == "markdown"), "")
    title, _, rest = text.partition("\n")
    return title.lstrip("# ").strip(), rest.strip().partition("\n\n")[0].replace("\n", " ")


def parameters(path: Path) -> dict[str, Parameter]:
    """The parameters of a notebook file, by name."""
    return declared(read(path))


def declared(notebook: Any) -> dict[str, Parameter]:
    """The parameters of a notebook, from its cell tagged `parameters`.

    Not by papermill: `nummodel list` works without it, and it cuts a text at a "#" inside.
    """
    cells = notebook["cells"]
    tagged = (c["source"] for c in cells if "parameters" in c["metadata"].get("tags", []))
    source = next(tagged, "")
    try:
        lines = source.encode().splitlines()
        statements = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    parameters = {}
    for line in statements:
        if not isinstance(line, (ast.Assign, ast.AnnAssign)) or not line.value:
            continue
        target = line.targets[0] if isinstance(line, ast.Assign) else line.target
        if isinstance(target, ast.Name):
            default = ast.get_source_segment(source, line.value) or ""
            kind = ast.unparse(line.annotation) if isinstance(line, ast.AnnAssign) else ""
            comment = lines[(line.end_lineno or 0) - 1][line.end_col_offset :].decode()
            parameters[target.id] = Parameter(target.id, kind, default, comment.strip(" ;#"))
    return parameters


def value_of(parameter: Parameter, text: str) -> Any:
    """A parameter's value from the command line, of the type that the notebook declares."""
    kind = parameter.type if parameter.type in TYPES else _type_of(parameter.default)
    what = known(parameter.name)
    try:
        value = TYPES[kind](text)
        if kind in ("int", "float") and not (
            isfinite(value) and (not what or in_range(what, value))
        ):
            raise ValueError
    except (ValueError, OverflowError, KeyError):
        within = range_of(what) if what else ""
        example = parameter.default.replace('"', "").replace(" ", "")
        raise InputError(
            f"parameter {parameter.name} is {text!r}, expected {kind}"
            f"{within}, as in {parameter.name}={example}"
        ) from None
    return value


def _type_of(default: str) -> str:
    """The type of a parameter that declares none: that of its default."""
    try:
        name = type(ast.literal_eval(default)).__name__
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        name = "str"
    return name if name in TYPES else "str"


def _truth(text: str) -> bool:
    return {"true": True, "false": False}[text.lower()]


def _list(text: str) -> list:
    """Numbers or words between commas, with or without brackets."""
    inner = text.strip().removeprefix("[").removesuffix("]")
    if any(c in inner for c in "[]{}"):
        raise ValueError
    return [_item(item.strip().strip("'\"")) for item in inner.split(",") if item.strip()]


def _item(text: str) -> int | float | str:
    for kind in (int, float):
        with suppress(ValueError):
            return kind(text)
    return text


#: How a parameter of each type that a notebook may declare is read.
TYPES: dict[str, Any] = {"int": int, "float": float, "str": str, "bool": _truth, "list": _list}

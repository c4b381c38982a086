"""A hash of a value, functions and classes too, that is the same in each process.

The bytes of cloudpickle are not: classes have random numbers there, and sets are in any order.
"""

import sys
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any


def content(value: Any) -> str:
    """The hash of a value that cloudpickle can send. What is sent by its name has the content of
    the file of its module.
    """
    return _text(value, {})


def _text(thing: Any, known: dict[int, tuple[Any, str]]) -> str:
    """The hash of a value. `known` are values that were met before, and their hashes."""
    if isinstance(thing, (bool, int, float, complex, str, type(None))):
        return f"{type(thing).__name__} {thing!r}"
    if id(thing) not in known:
        known[id(thing)] = thing, ""  # for what contains itself
        texts = [_text(part, known) for part in _parts(thing)]
        texts = sorted(texts) if isinstance(thing, (dict, set, frozenset)) else texts
        text = f"{type(thing).__name__} {texts}".encode()
        known[id(thing)] = thing, sha256(thing if isinstance(thing, bytes) else text).hexdigest()
    return known[id(thing)][1]


def _parts(thing: Any) -> list[Any]:
    """What makes up a value, as far as results follow from it."""
    import cloudpickle

    if isinstance(thing, bytes):
        return []
    if isinstance(thing, dict):  # a script may have another name
        return [(name, part) for name, part in thing.items() if name != "__file__"]
    if isinstance(thing, (list, tuple, set, frozenset)):
        return list(thing)
    if isinstance(thing, CodeType):  # without its lines, and the name of a notebook's process
        return [thing.co_code, thing.co_consts, thing.co_names, thing.co_varnames]
    if isinstance(thing, ModuleType):
        file = Path(getattr(thing, "__file__", None) or "")  # some compiled ones have none
        return [thing.__name__, file.read_bytes() if file.is_file() else ""]
    pickler = cloudpickle.Pickler(BytesIO())
    made = pickler.reducer_override(thing)
    if made is NotImplemented:
        reduce = pickler.dispatch_table.get(type(thing), lambda thing: thing.__reduce_ex__(4))
        by_name = isinstance(thing, (type, FunctionType))
        made = thing.__qualname__ if by_name else reduce(thing)
    if isinstance(made, str):
        module = sys.modules.get(getattr(thing, "__module__", None) or "")
        return [made, module, getattr(thing, "__wrapped__", None)]
    arguments = made[1][:-2] if isinstance(thing, type) else made[1]  # without a class's number
    return [made[0], arguments, *made[2:3], *map(list, filter(None, made[3:5]))]

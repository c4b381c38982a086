"""What a package shows: its public modules alone, each imported at its first use."""

from collections.abc import Callable
from importlib import import_module
from types import ModuleType


def face(package: str, modules: str) -> tuple[Callable[[str], ModuleType], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package with these public modules, named in one text."""
    public = modules.split()

    def get(name: str) -> ModuleType:
        if name not in public:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return import_module(f"{package}.{name}")

    return get, lambda: public

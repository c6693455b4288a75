"""The example inventories: in a wheel beside the package's modules, in a checkout in ``inventories/``."""

from pathlib import Path

from lumctl.errors import UsageError
from lumctl.inventory.hints import nearest

EXAMPLES = ("prototype", "rack64", "switched", "ring4", "ring8", "mi300")

_PACKAGE = Path(__file__).resolve().parent.parent
_FOLDERS = (_PACKAGE / "examples", _PACKAGE.parent / "inventories")


def example(name: str) -> Path:
    """The file of an example inventory: ``prototype``, ``rack64``, ``switched``, ``ring4``, ``ring8`` or ``mi300``.

    Raises:
        UsageError: there is no such example, or this installation lacks it.
    """
    if name not in EXAMPLES:
        near = nearest(name, EXAMPLES)
        raise UsageError(
            f"there is no example inventory {name!r}",
            hint=f"did you mean {near}?" if near else f"one of: {', '.join(EXAMPLES)}",
        )
    for folder in _FOLDERS:
        path = folder / f"{name}.yaml"
        if path.is_file():
            return path
    raise UsageError(f"this installation of lumctl lacks the example inventory {name!r}", hint="install it again")


def example_paths() -> tuple[Path, ...]:
    """The files of all examples that this installation has."""
    return tuple(
        path
        for name in EXAMPLES
        if (path := next((f / f"{name}.yaml" for f in _FOLDERS if (f / f"{name}.yaml").is_file()), None))
    )

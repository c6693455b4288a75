"""The packages that a plug-in's sources import and how much it needs each; found by parsing, nothing is imported."""

import ast
from collections.abc import Iterator
from enum import IntEnum
from importlib.util import find_spec
from pathlib import Path

_CAUGHT = {"ImportError", "ModuleNotFoundError", "Exception", "BaseException"}


class Need(IntEnum):
    """How much a plug-in needs a package; a smaller value is a weaker need."""

    OPTIONAL = 0
    """The plug-in works without it: it catches the import error and uses something else."""
    LATER = 1
    """Some of its calls import it when they run."""
    ALWAYS = 2
    """Importing the plug-in imports it."""


def imported(module: str) -> dict[str, Need]:
    """The top-level names of other packages that a module imports, directly or through modules of its own package.

    Imports for type checkers only are left out.
    """
    own = module.partition(".")[0]
    found: dict[str, Need] = {}
    seen: dict[str, Need] = {}
    waiting = [(module, Need.ALWAYS)]
    while waiting:
        name, need = waiting.pop()
        if seen.get(name, -1) >= need:
            continue
        seen[name] = need
        package, file = _file(name, own)
        if file is None:
            continue
        if "." in name:
            waiting.append((name.rpartition(".")[0], need))
        for target, how in _imports(file, package):
            least = min(need, how)
            if target.partition(".")[0] == own:
                waiting.append((target, least))
            else:
                outer = target.partition(".")[0]
                found[outer] = max(found.get(outer, least), least)
    return found


def _file(name: str, own: str) -> tuple[str, Path | None]:
    """The package that a module's relative imports start from, and the module's file; found without importing it."""
    try:
        spec = find_spec(own)
    except (ImportError, ValueError):
        return "", None
    if spec is None or spec.origin is None:
        return "", None
    origin = Path(spec.origin)
    if name == own:
        return own, origin
    if origin.name != "__init__.py":
        return "", None
    inner = origin.parent.joinpath(*name.split(".")[1:])
    if (inner / "__init__.py").exists():
        return name, inner / "__init__.py"
    return name.rpartition(".")[0], inner.with_suffix(".py") if inner.with_suffix(".py").exists() else None


def _imports(file: Path, package: str) -> Iterator[tuple[str, Need]]:
    try:
        tree = ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError):
        return  # another check reports that it does not import
    yield from _walk(tree.body, Need.ALWAYS, package)


def _walk(body: list[ast.stmt], need: Need, package: str) -> Iterator[tuple[str, Need]]:
    for node in body:
        if isinstance(node, ast.Import):
            yield from ((alias.name, need) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _base(node, package)
            yield base, need
            yield from ((f"{base}.{alias.name}", need) for alias in node.names if base.startswith(package or "\0"))
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _walk(node.body, min(need, Need.LATER), package)
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from _walk(node.orelse, need, package)
        elif isinstance(node, ast.Try):
            fallback = any(_goes_on(handler) for handler in node.handlers)
            yield from _walk(node.body, Need.OPTIONAL if fallback else need, package)
            for handler in node.handlers:
                # A replacement for the missing package: needed only if that is missing.
                yield from _walk(handler.body, Need.OPTIONAL if fallback else need, package)
            yield from _walk([*node.orelse, *node.finalbody], need, package)
        else:
            for inner in ("body", "orelse"):
                held = getattr(node, inner, None)
                if isinstance(held, list):
                    yield from _walk(held, need, package)


def _base(node: ast.ImportFrom, package: str) -> str:
    """The module that names are imported from, as an absolute name."""
    if node.level == 0:
        return node.module or ""
    parts = package.split(".")
    above = parts[: len(parts) - node.level + 1]
    return ".".join([*above, *([node.module] if node.module else [])])


def _goes_on(handler: ast.ExceptHandler) -> bool:
    """Whether a handler catches a failed import and goes another way; if it raises, the package stays required."""
    named = {"ImportError"} if handler.type is None else {
        each.id for each in ast.walk(handler.type) if isinstance(each, ast.Name)
    }  # fmt: skip
    raises = any(isinstance(each, ast.Raise) for statement in handler.body for each in ast.walk(statement))
    return bool(named & _CAUGHT) and not raises

"""Where the code refuses something: each place at which such an error is made, with its constant words."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from console import PACKAGE, Origin

ROOMS = ("change", "swap", "runbook", "daemon", "store", "context", "cli")
ERRORS = frozenset(
    {"RefusedError", "HalfDoneError", "RolledBackError", "LeaseHeldError", "TooWeak", "NoSpareError", "SilenceError"}
)


@dataclass(frozen=True)
class Refusal:
    """A place at which a refusal is made; what it says, with ``{}`` for what depends on the state."""

    file: str
    first: int
    last: int
    says: str

    def made(self, origin: Origin) -> bool:
        """Whether an error was made here."""
        return origin.file == self.file and self.first <= origin.line <= self.last

    def __str__(self) -> str:
        return f"{self.file}: {self.says}"


@cache
def refusals() -> tuple[Refusal, ...]:
    """All of them, as the code is now."""
    return tuple(found for room in ROOMS for path in sorted((PACKAGE / room).rglob("*.py")) for found in _in(path))


def _in(path: Path) -> Iterator[Refusal]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ERRORS:
            says = _constant(node.args[0]) if node.args else ""
            yield Refusal(str(path.relative_to(PACKAGE)), node.lineno, node.end_lineno or node.lineno, says)


def _constant(node: ast.expr) -> str:
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in parts)
        case ast.BinOp(left=left, right=right):
            return _constant(left) + _constant(right)
        case ast.Name(id=name):
            return f"<{name}>"
        case ast.Call(func=ast.Name(id=name)):
            return f"<{name}>"
    return "{}"

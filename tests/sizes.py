"""Count what makes the program large or hard to know: lines, files, classes, names and imports.

    python tests/sizes.py [ROOT] [--list]

ROOT is a checkout (default: this one). --list names the files, classes and circles behind the counts.
Needs Python's standard library only.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import statistics
import tokenize
from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)
# Verb nouns that the field itself uses, and nouns that only look like verb forms.
FIELD_NOUNS = frozenset(
    [
        "building",
        "drawing",
        "fencing",
        "framing",
        "logging",
        "planning",
        "pricing",
        "ranking",
        "recording",
        "ring",
        "routing",
        "scheduling",
        "setting",
        "sharing",
        "sizing",
        "spacing",
        "spelling",
        "string",
        "testing",
        "thing",
        "timing",
        "tracing",
        "training",
        "warning",
        "wiring",
        "bed",
        "feed",
        "need",
        "seed",
        "speed",
    ]
)
IRREGULAR_PARTICIPLES = frozenset(
    [
        "asked",
        "begun",
        "broken",
        "built",
        "chosen",
        "done",
        "drawn",
        "driven",
        "dropped",
        "felt",
        "found",
        "frozen",
        "given",
        "gone",
        "heard",
        "held",
        "kept",
        "known",
        "learnt",
        "lost",
        "made",
        "meant",
        "met",
        "overtaken",
        "said",
        "seen",
        "sent",
        "shown",
        "sold",
        "sought",
        "spent",
        "spoken",
        "stood",
        "taken",
        "taught",
        "thought",
        "told",
        "understood",
        "untouched",
        "woken",
        "written",
    ]
)
PARTICLES = frozenset(
    [
        "about",
        "again",
        "ahead",
        "apart",
        "aside",
        "away",
        "back",
        "behind",
        "down",
        "off",
        "on",
        "out",
        "over",
        "through",
        "up",
    ]
)
LONG_FUNCTION = 25  # lines from which a public function without a docstring is counted


@dataclass(frozen=True)
class Module:
    """One Python file of the product."""

    name: str  # dotted; a package's face has the package's name
    path: Path
    text: str
    tree: ast.Module

    @property
    def is_face(self) -> bool:
        return self.path.name == "__init__.py"

    @property
    def lines(self) -> int:
        return self.text.count("\n")

    @cached_property
    def classes(self) -> list[ast.ClassDef]:
        return [node for node in ast.walk(self.tree) if isinstance(node, ast.ClassDef)]

    @cached_property
    def public_classes(self) -> list[str]:
        return [n.name for n in self.tree.body if isinstance(n, ast.ClassDef) and not n.name.startswith("_")]

    @cached_property
    def comment_lines(self) -> int:
        """Lines that are a comment for people: not those behind code, and no marks for tools (noqa, type: ignore)."""
        tokens = tokenize.generate_tokens(io.StringIO(self.text).readline)
        marks = re.compile(r"#\s*(noqa|type:|pragma|fmt:|ruff:|!)")
        return sum(
            token.type == tokenize.COMMENT and token.line.lstrip().startswith("#") and not marks.match(token.string)
            for token in tokens
        )


class Product:
    """The files of lumctl and its plug-ins (without the templates), and who imports whom."""

    def __init__(self, root: Path) -> None:
        self.modules = {module.name: module for module in _modules(root)}
        self.imports = {name: set(_imports(module, self.modules)) for name, module in self.modules.items()}

    @cached_property
    def one_importer(self) -> list[str]:
        importers: Counter[str] = Counter()
        for name, imported in self.imports.items():
            importers.update(imported - {name})
        return sorted(n for n, count in importers.items() if count == 1 and not self.modules[n].is_face)

    @cached_property
    def several_meanings(self) -> dict[str, list[str]]:
        """Public class names that several files define, with those files."""
        found: dict[str, list[str]] = defaultdict(list)
        for name, module in self.modules.items():
            for public in set(module.public_classes):
                found[public].append(name)
        return {public: names for public, names in sorted(found.items()) if len(names) > 1}

    @cached_property
    def circles(self) -> list[list[str]]:
        """Groups of files of which each reaches each by imports, those inside functions and for types included."""
        return sorted(sorted(group) for group in _components(self.imports) if len(group) > 1)

    @cached_property
    def inheritance(self) -> dict[str, list[str]]:
        """Classes whose ancestors stand in two or more further files (errors aside), with the chain of files."""
        bases = {}
        for name, module in self.modules.items():
            known = dict(_imported_names(module, self.modules)) | {c.name: (name, c.name) for c in module.classes}
            for defined in module.classes:
                named = [base.id for base in defined.bases if isinstance(base, ast.Name)]
                bases[name, defined.name] = [known[base] for base in named if base in known]
        found = {}
        for name, public in bases:
            chain = _files_up((name, public), bases)
            if len(chain) > 2 and chain[-1] != "lumctl.errors":
                found[f"{name}:{public}"] = chain
        return found

    @cached_property
    def gerunds(self) -> list[str]:
        return [name for name in sorted(self.modules) if _is_verb_form(name, _is_gerund)]

    @cached_property
    def participles(self) -> list[str]:
        return [name for name in sorted(self.modules) if _is_verb_form(name, _is_participle)]

    @cached_property
    def undescribed(self) -> dict[str, int]:
        """Public functions of LONG_FUNCTION lines and more without a docstring, with their lines."""
        found = {}
        for name, module in self.modules.items():
            for node in ast.walk(module.tree):
                if not isinstance(node, FUNCTION) or node.name.startswith("_") or ast.get_docstring(node):
                    continue
                length = (node.end_lineno or node.lineno) - node.lineno + 1
                if length >= LONG_FUNCTION:
                    found[f"{name}:{node.name}"] = length
        return dict(sorted(found.items(), key=lambda item: -item[1]))


def _modules(root: Path) -> Iterator[Module]:
    for top in (root, root / "plugins"):
        for path in sorted(top.glob("lumctl*/**/*.py")):
            parts = path.relative_to(top).with_suffix("").parts
            text = path.read_text(encoding="utf-8")
            name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
            yield Module(name, path.relative_to(root), text, ast.parse(text))


def _imports(module: Module, modules: Mapping[str, Module]) -> Iterator[str]:
    """Modules of the product that this one names in an import, wherever in the file."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom):
            source = _source(module, node)
            for alias in node.names:
                named = f"{source}.{alias.name}"
                if named in modules:
                    yield named
                elif source in modules:
                    yield source


def _imported_names(module: Module, modules: Mapping[str, Module]) -> Iterator[tuple[str, tuple[str, str]]]:
    """Each imported name with the module and name that it has there."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ImportFrom) and (source := _source(module, node)) in modules:
            for alias in node.names:
                yield alias.asname or alias.name, (source, alias.name)


def _source(module: Module, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    package = module.name if module.is_face else module.name.rpartition(".")[0]
    for _ in range(node.level - 1):
        package = package.rpartition(".")[0]
    return f"{package}.{node.module}" if node.module else package


def _files_up(
    start: tuple[str, str],
    bases: Mapping[tuple[str, str], list[tuple[str, str]]],
) -> list[str]:
    """Files in which a class and its ancestors stand, the class's own first; bases are walked depth first."""
    files: list[str] = []
    waiting = [start]
    while waiting:
        here = waiting.pop()
        if here[0] not in files:
            files.append(here[0])
        waiting.extend(bases.get(here, []))
    return files


def _components(graph: Mapping[str, Iterable[str]]) -> Iterator[list[str]]:
    """Strongly connected components, by Tarjan's algorithm without recursion."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    for start in graph:
        if start in index:
            continue
        index[start] = low[start] = len(index)
        stack.append(start)
        on_stack.add(start)
        work = [(start, iter(sorted(graph[start])))]
        while work:
            node, following = work[-1]
            for other in following:
                if other not in index:
                    index[other] = low[other] = len(index)
                    stack.append(other)
                    on_stack.add(other)
                    work.append((other, iter(sorted(graph[other]))))
                    break
                if other in on_stack:
                    low[node] = min(low[node], index[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    cut = stack.index(node)
                    group, stack[cut:] = stack[cut:], []
                    on_stack.difference_update(group)
                    yield group


def _is_verb_form(name: str, is_form: Callable[[str], bool]) -> bool:
    """Tell whether a module's own name is such a form, or ends in one, or is one with a particle (taking_back)."""
    words = [word for word in name.rpartition(".")[2].split("_") if word]
    return bool(words) and (is_form(words[-1]) or (is_form(words[0]) and words[-1] in PARTICLES))


def _is_gerund(word: str) -> bool:
    return word.endswith("ing") and word not in FIELD_NOUNS


def _is_participle(word: str) -> bool:
    return word in IRREGULAR_PARTICIPLES or (word.endswith("ed") and word not in FIELD_NOUNS)


def rows(product: Product) -> Iterator[tuple[str, str]]:
    """Yield what is counted and the figure, as text."""
    modules = list(product.modules.values())
    lines = [module.lines for module in modules]
    largest = max(modules, key=lambda module: module.lines)
    comments = sum(module.comment_lines for module in modules)
    core = [module.lines for module in modules if module.path.parts[0] == "lumctl"]
    yield "lines", f"{sum(lines)} (lumctl {sum(core)}, plug-ins {sum(lines) - sum(core)})"
    yield "files", f"{len(lines)} (lumctl {len(core)}, plug-ins {len(lines) - len(core)})"
    yield "classes", str(sum(len(module.classes) for module in modules))
    yield "median file", f"{statistics.median(lines):.0f} lines"
    yield "largest file", f"{largest.lines} lines ({largest.path})"
    yield "files of less than 60 lines", str(sum(n < 60 and not m.is_face for n, m in zip(lines, modules, strict=True)))
    yield "files with one importer", str(len(product.one_importer))
    yield "class names with several meanings", str(len(product.several_meanings))
    yield "modules named by a gerund", str(len(product.gerunds))
    yield "modules named by a participle", str(len(product.participles))
    yield "import circles", f"{len(product.circles)} (of {sum(map(len, product.circles))} files)"
    yield "classes inherited through three files", str(len(product.inheritance))
    yield "comment lines", f"{comments} ({comments / sum(lines):.1%})"
    yield f"public functions of {LONG_FUNCTION} lines without docstring", str(len(product.undescribed))


def details(product: Product) -> Iterator[str]:
    """Yield what stands behind each count, a heading before each list."""
    yield from ("", "Files with one importer:", *(f"  {name}" for name in product.one_importer))
    yield from ("", "Class names with several meanings:")
    yield from (f"  {public}: {', '.join(names)}" for public, names in product.several_meanings.items())
    yield from ("", "Modules named by a gerund:", *(f"  {name}" for name in product.gerunds))
    yield from ("", "Modules named by a participle:", *(f"  {name}" for name in product.participles))
    yield from ("", "Import circles:", *(f"  {' '.join(circle)}" for circle in product.circles))
    yield from ("", "Classes inherited through three files:")
    yield from (f"  {name}: {' > '.join(chain)}" for name, chain in product.inheritance.items())
    yield from ("", "Long public functions without docstring:")
    yield from (f"  {name}: {length} lines" for name, length in product.undescribed.items())


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).resolve().parent.parent)
    parser.add_argument("--list", action="store_true", help="name what stands behind the counts")
    arguments = parser.parse_args()
    product = Product(arguments.root)
    if not product.modules:
        parser.error(f"no lumctl folder in {arguments.root}")
    for what, figure in rows(product):
        print(f"{what:<46} {figure}")
    if arguments.list:
        print("\n".join(details(product)))


if __name__ == "__main__":
    main()

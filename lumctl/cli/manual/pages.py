"""From commands to pages: one for the program, one for each noun with all its verbs.

A page does not depend on when and where it is made, so the pages are committed, and a test compares them with
the code.
"""

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import typer

from lumctl import __version__
from lumctl.cli.examples import EXAMPLES
from lumctl.cli.main import app
from lumctl.cli.manual import command_tree, fixed_text
from lumctl.cli.manual.roff import Lines, bold_code, entries, escape, page, prose, section, subsection, with_examples
from lumctl.cli.nouns import NOUNS

BEGIN, END = r".\" reference: written by make man", r".\" end of the reference"

_ROLE = re.compile(r":\w+:`(~?)([\w.]+)`")

_FACES = {
    "lumctl.devices.http": ("client", "failures", "texts"),
    "lumctl.devices.testing": ("under_test",),
    "lumctl.jobs.testing": ("contract",),
}
_PUBLIC = ("__init__", "__call__")

REFERENCES: dict[str, dict[str, tuple[str, ...]]] = {
    "lumctl-driver.7": {
        "lumctl.devices.protocols": (
            *("Driver", "Changing", "MeshDriver", "SwitchDriver", "TransponderDriver", "PowerDriver"),
            *("DriverContext", "HostShell", "CommandResult"),
        ),
        "lumctl.devices.types": (
            *("Capability", "PucState", "PucChange", "JoinChange", "Staged", "Receipt", "PortReading", "Alarm"),
            *("PowerReading", "OpticsReading", "Neighbour"),
        ),
        "lumctl.devices.errors": (
            *("DeviceError", "DeviceUnreachableError", "DeviceLoginError", "DeviceRefusedError", "DeviceBusyError"),
            *("StaleFenceError", "OutcomeUnknownError", "InconsistentError", "UnsupportedError", "after_sending"),
        ),
        "lumctl.devices.ways": ("Way", "Stream"),
        "lumctl.devices.logins": ("Login",),
        "lumctl.devices.permission": ("require_permission",),
        "lumctl.devices.joins": ("Ports", "ports_of", "JoinPlan", "plan", "difference", "judge"),
        "lumctl.devices.http.client": ("HttpClient", "HttpAnswer", "LostAnswerError", "login_headers"),
        "lumctl.devices.http.failures": ("Failures",),
        "lumctl.devices.http.texts": ("error_text", "one_line", "same_origin_path"),
        "lumctl.devices.testing.under_test": (
            *("MeshUnderTest", "SwitchUnderTest", "TransponderUnderTest", "PowerUnderTest"),
        ),
        "lumctl.devices.testing.campaign": ("run_sequence", "Rig"),
        "lumctl.devices.testing.troubles": ("TroubleCount",),
        "lumctl.devices.testing.campaign_settings": ("SettingsRig", "Knob", "run_settings"),
        "lumctl.devices.testing.faults": ("FaultyWay", "Trouble", "WayFault"),
        "lumctl.devices.testing.shell_faults": ("FaultyShell", "ShellFault"),
    },
    "lumctl-job-plugin.7": {
        "lumctl.jobs.control": ("JobControl", "JobContext", "Run", "Facts", "Rank"),
        "lumctl.inventory.entry": ("JobKindEntry",),
        "lumctl.errors": ("LumctlError", "RefusedError", "UnreachableError"),
        "lumctl.programs": ("Ended", "plain", "through"),
        "lumctl.jobs.testing.contract": ("JobUnderTest", "bench_context", "ranks"),
    },
}
"""The names that each page documents, by module. A package (``lumctl.devices.http``) re-exports names of its files."""


def with_reference(name: str, text: str) -> str:
    """The page with its reference section regenerated from the source.

    Raises:
        ValueError: the page lacks the two comments that mark the section.
    """
    before, begin, rest = text.partition(f"{BEGIN}\n")
    _, end, after = rest.partition(f"{END}\n")
    if not begin or not end:
        raise ValueError(f"{name} lacks the lines {BEGIN!r} and {END!r}")
    lines: Lines = []
    faces = [_face(module) for module in REFERENCES[name]]
    for number, (module, names) in enumerate(REFERENCES[name].items()):
        if number == 0 or faces[number - 1] != faces[number]:
            lines.append(f'.SS "{escape(faces[number])}"')
        lines += _of_module(module, names)
    return f"{before}{begin}" + "\n".join(lines) + f"\n{end}{after}"


def _of_module(module: str, names: Iterable[str]) -> Iterator[str]:
    spec = find_spec(module)
    tree = ast.parse(Path(str(spec and spec.origin)).read_text(encoding="utf-8"))
    defined = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)}
    for name in names:
        node = defined[name]
        yield from _class(node) if isinstance(node, ast.ClassDef) else _function(node)


def _face(module: str) -> str:
    """The public module that re-exports names of this one."""
    for face, files in _FACES.items():
        if module.startswith(f"{face}.") and module.removeprefix(f"{face}.") in files:
            return face
    campaign = ("lumctl.devices.testing.campaign", "lumctl.devices.testing.troubles")
    return "lumctl.devices.testing.campaign" if module in campaign else module


def _class(node: ast.ClassDef) -> Lines:
    bases = ", ".join(ast.unparse(base) for base in node.bases)
    head = f"class {node.name}({bases})" if bases else f"class {node.name}"
    lines = [".PP", rf"\fB{escape(head)}\fR"]
    lines += [".RS 4", *_text(node)]
    # A field's description is the string that follows it, so each statement is paired with the next.
    following = [*node.body[1:], ast.Pass()]
    fields = [line for each, after in zip(node.body, following, strict=True) if (line := _field(each, after))]
    if fields:
        lines += [".PP", ".nf", *map(escape, fields), ".fi"]
    for each in node.body:
        if isinstance(each, ast.FunctionDef) and (each.name in _PUBLIC or not each.name.startswith("_")):
            lines += _function(each, owner=node.name)
    return [*lines, ".RE"]


def _field(node: ast.stmt, after: ast.stmt) -> str:
    """A field of a class or a member of an enumeration, with its description."""
    line = ast.unparse(node) if isinstance(node, ast.AnnAssign | ast.Assign) else ""
    if not line or line.startswith(("_", "exit_code", "model_config")):
        return ""
    said = after.value.value if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) else None
    return f"{line}  # {' '.join(said.split())}" if isinstance(said, str) else line


def _function(node: ast.FunctionDef, owner: str = "") -> Lines:
    marks = {ast.unparse(each) for each in node.decorator_list}
    arguments = ast.unparse(node.args)
    if owner and "staticmethod" not in marks:
        # Without ``self`` or ``cls``.
        arguments = arguments.partition(",")[2].strip()
        arguments = arguments.removeprefix("/, ") if arguments != "/" else ""
    if node.name == "__init__":
        head = f"{owner}({arguments})"
    elif "property" in marks:
        head = f"{node.name}: {ast.unparse(node.returns) if node.returns else 'Any'}"
    else:
        returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
        prefix = "with " if any("contextmanager" in mark for mark in marks) else ""
        prefix = "classmethod " if "classmethod" in marks else prefix
        head = f"{prefix}{node.name}({arguments}){returns}"
    return [".TP", rf"\fB{escape(head)}\fR", *(_text(node) or [r"\&"])]


def _text(node: ast.ClassDef | ast.FunctionDef) -> Lines:
    """A docstring as paragraphs; each ``Raises`` entry gets its own line."""
    text = ast.get_docstring(node) or ""
    text = _ROLE.sub(lambda found: f"``{found[2].rpartition('.')[2] if found[1] else found[2]}``", text)
    lines: Lines = []
    for paragraph in re.split(r"\n\s*\n", text):
        if not paragraph.strip():
            continue
        if lines:
            lines += [".sp 0.5"]
        first, *more = paragraph.split("\n")
        if first.strip() == "Raises:":
            lines += [bold_code("Raises:"), *(line for each in _entries(more) for line in (".br", bold_code(each)))]
        else:
            lines += [bold_code(paragraph)]
    return lines


def _entries(lines: list[str]) -> list[str]:
    """``Name: text`` entries, each joined to one line."""
    least = min((len(line) - len(line.lstrip()) for line in lines), default=0)
    joined: list[str] = []
    for line in lines:
        if len(line) - len(line.lstrip()) == least or not joined:
            joined.append(line.strip())
        else:
            joined[-1] += f" {line.strip()}"
    return joined


SOURCE = f"lumctl {__version__}"
NOT_COMMON = {"version"}
"""Options of the program itself, which no noun repeats."""
Common = Mapping[str | None, str | None]
"""The help of the options that every command has, by their names."""


def pages() -> dict[str, str]:
    """Every page by its file name."""
    root = typer.main.get_command(app)
    return {"lumctl.1": _root_page(root)} | {f"lumctl-{noun}.1": _noun_page(noun, root) for noun in NOUNS}


def write(folder: Path) -> None:
    """Write every command page, the references in hand-written pages, and the data of completion.

    Pages of commands that were removed are deleted.
    """
    made = pages()
    for path in folder.glob("*.1"):
        if path.name not in made:
            path.unlink()
    for name in REFERENCES:
        if (path := folder / name).exists():
            made[name] = with_reference(name, path.read_text(encoding="ascii"))
    for name, text in made.items():
        # Strict: a character that was not escaped for groff must fail here and not on a reader's terminal.
        (folder / name).write_text(text, encoding="ascii")
    command_tree.PATH.write_text(command_tree.command_tree(), encoding="utf-8")


def _root_page(root: Any) -> str:
    summary = str(root.help).rstrip(".")
    nouns = {f"lumctl-{name}(1)": noun.help for name, noun in NOUNS.items()}
    body = [
        *section("synopsis", [r"\fBlumctl\fR [OPTION...] COMMAND [ARGUMENT...]"]),
        *section("description", prose(fixed_text.ABOUT)),
        *section("commands", entries(nouns.items())),
        *section("options", ["Options after the command override options before it.", *_options(root)]),
        *section("exit status", entries(fixed_text.EXIT_STATUS)),
        *section("environment", entries(fixed_text.ENVIRONMENT)),
        *section("files", entries(fixed_text.FILES)),
    ]
    return page("lumctl", summary[0].lower() + summary[1:], SOURCE, body, [*nouns, *fixed_text.BY_HAND])


def _noun_page(noun: str, root: Any) -> str:
    command = root.get_command(_context(root), noun)
    common = {param.name: param.help for param in root.params if param.name not in NOT_COMMON}
    verbs = dict(_verbs(command, f"lumctl {noun}"))
    status = fixed_text.CHECK_STATUS if noun == "check" else fixed_text.EXIT_STATUS
    body = [
        *section("synopsis", ["\n.br\n".join(_synopsis(words, verb, common) for words, verb in verbs.items())]),
        *section("description", _description(NOUNS[noun].help, verbs, common)),
        *section("common options", _options(root, only=common)),
        *section("examples", [".nf", *(escape(EXAMPLES[words.removeprefix("lumctl ")]) for words in verbs), ".fi"]),
        *(line for title, text in fixed_text.MORE.get(noun, ()) for line in section(title, with_examples(text))),
        *section("exit status", entries(status)),
        *section("environment", [r"As in \fBlumctl\fR(1)."]),
        *section("files", [r"As in \fBlumctl\fR(1)."]),
    ]
    return page(f"lumctl-{noun}", NOUNS[noun].help.rstrip("."), SOURCE, body, ["lumctl(1)", *fixed_text.BY_HAND])


def _verbs(command: Any, words: str) -> Iterator[tuple[str, Any]]:
    """Every command below another one, in the order of its help, with the words that are typed; no hidden ones."""
    below = getattr(command, "commands", {})
    if not below:
        yield words, command
        return
    for name in command.list_commands(None):
        if not below[name].hidden:
            yield from _verbs(below[name], f"{words} {name}")


def _description(summary: str, verbs: dict[str, Any], common: Common) -> Lines:
    if len(verbs) == 1:
        (verb,) = verbs.values()
        return [*prose(verb.help or summary), *_options(verb, without=common)]
    lines = [bold_code(summary)]
    for words, verb in verbs.items():
        lines += subsection(words, [*prose(verb.help or summary), *_options(verb, without=common)])
    return lines


def _synopsis(words: str, command: Any, common: Common) -> str:
    """The usage of a command: its required arguments, and whether it accepts more."""
    own = [param for param in command.params if not _is_common(param, common) and not getattr(param, "hidden", False)]
    needed = [_typed(param) for param in own if param.param_type_name == "argument" or param.required]
    return " ".join([rf"\fB{escape(words)}\fR", *map(escape, needed), "[OPTION...]"])


def _is_common(param: Any, common: Common) -> bool:
    """Whether an option is one that every command has; if it accepts more values here, it is the command's own."""
    return param.name in common and common[param.name] == getattr(param, "help", None)


def _typed(param: Any) -> str:
    if param.param_type_name == "option":
        return f"{param.opts[-1]} {param.metavar or param.name.upper()}"
    word = _argument(param) + ("..." if param.nargs == -1 else "")
    return word if param.required else f"[{word}]"


def _options(command: Any, *, only: Common | None = None, without: Common | None = None) -> Lines:
    """Arguments and options, each with its help as ``--help`` prints it."""
    context = _context(command)
    records = [
        (_argument(param) if param.param_type_name == "argument" else record[0], record[1])
        for param in command.params
        if (only is None or param.name in only) and not (without and _is_common(param, without))
        if (record := param.get_help_record(context)) is not None
    ]
    return entries(records)


def _argument(param: Any) -> str:
    """The word for an argument."""
    return str(param.metavar or param.name.upper())


def _context(command: Any) -> Any:
    return command.context_class(command)

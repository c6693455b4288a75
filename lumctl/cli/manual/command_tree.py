"""The commands and options as data, for completion: ``lumctl/cli/completion.json``."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import typer

from lumctl.cli.main import app
from lumctl.cli.nouns import NOUNS
from lumctl.cli.output import OutputFormat
from lumctl.cli.verbs import first_sentence
from lumctl.health.rulebook import rulebook
from lumctl.sim.world.faults import FaultKind

PATH = Path(__file__).parents[1] / "completion.json"


def command_tree() -> str:
    """Nouns, verbs, the values of each option and argument, the rules, and the kinds of simulated faults, as JSON."""
    root: Any = typer.main.get_command(app)
    common = _options(root)
    nouns = {name: _command(root.get_command(None, name), common) for name in NOUNS}
    tree = {
        "options": common,
        "nouns": nouns,
        "rules": sorted({line.rule for line in rulebook().lines()}),
        "faults": sorted(kind.value for kind in FaultKind),
        "formats": [each.value for each in OutputFormat],
    }
    return json.dumps(tree, indent=1, ensure_ascii=False) + "\n"


def _command(command: Any, common: Mapping[str, Any]) -> dict[str, Any]:
    if (verbs := getattr(command, "commands", None)) is not None:
        return {
            "verbs": {
                name: {"help": first_sentence(verbs[name].help or ""), **_command(verbs[name], common)}
                for name in command.list_commands(None)
            }
        }
    arguments = [_argument(each) for each in command.params if each.param_type_name == "argument"]
    own = {name: option for name, option in _options(command).items() if common.get(name) != option}
    return {"options": own, "arguments": arguments}


def _argument(argument: Any) -> str:
    """Its word in the help, with ``...`` if it may be repeated."""
    word = argument.metavar or str(argument.name).upper()
    return f"{word.removesuffix('...')}..." if argument.nargs == -1 else word


def _options(command: Any) -> dict[str, Any]:
    """Options that the help shows, by each of their spellings; ``takes`` is empty for an option without a value."""
    return {
        spelling: {"takes": "" if option.is_flag else option.metavar or "", "help": first_sentence(option.help or "")}
        for option in command.params
        if option.param_type_name == "option" and not option.hidden
        for spelling in (*option.opts, *option.secondary_opts)
    }

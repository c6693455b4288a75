"""The commands that ``lumctl`` knows, with the module that holds each: help is printed without importing them."""

from typing import NamedTuple


class Noun(NamedTuple):
    """A first word after ``lumctl``: the module of ``lumctl.cli`` that holds its ``app`` and its line of help."""

    module: str
    help: str


GROUPS: dict[str, dict[str, Noun]] = {
    "Look": {
        "status": Noun("status", "Health of every accelerator, link and circuit, read now."),
        "top": Noun("top.command", "The dashboard: live health, and swaps planned and applied from it."),
        "check": Noun("check", "One line and an exit code for cron and monitoring."),
        "health": Noun(
            "health", "Why a component is in its state; acknowledgements, maintenance windows and the rules."
        ),
    },
    "Act": {
        "swap": Noun("swap", "Replace a failed accelerator by a spare."),
        "fabric": Noun("fabric", "Light paths: show, route and measure them, and program them from the inventory."),
        "device": Noun("device", "Meshes, switches, transponders and host power: show readings, change settings."),
        "job": Noun("job", "Jobs, their ranks, and where each runs now."),
        "runbook": Noun("runbook", "Runs as files: read, edit, compare, replay and verify them."),
    },
    "Unattended": {
        "watch": Noun("watch", "The daemon: reads every second, keeps history, notifies, acts by policies."),
        "policy": Noun("policy", "What the daemon may do on its own: check, explain and test policies."),
        "autopilot": Noun("autopilot", "Stop and start automatic actions, and list what was decided."),
    },
    "Set up": {
        "inventory": Noun("inventory", "Check and show the inventory; trust the keys of its hosts."),
        "fleet": Noun("fleet", "Save what hosts print as files, to judge it elsewhere."),
        "store": Noun("store", "Where the journal, leases and health are kept; copy them to another database."),
        "gateway": Noun("gateway", "The process that alone writes to a rack's devices, under the newest lease only."),
        "plugin": Noun(
            "plugin", "Installed drivers, probes and kinds of job control; templates and checks for authors."
        ),
        "completion": Noun("completion_script", "Print the script that completes words in bash, zsh or fish."),
    },
    "Simulate": {
        "demo": Noun("demo", "The main job on the simulator: a GPU dies, a spare takes its place."),
        "sim": Noun("sim", "Simulate the rack of any inventory on loopback, with faults on request."),
    },
}
"""The nouns as the help shows them."""
NOUNS: dict[str, Noun] = {name: noun for group in GROUPS.values() for name, noun in group.items()}

VERB_ORDER = (
    *("up", "validate", "run", "plan", "apply", "approve", "rollback", "list", "show", "explain", "trust"),
    *("resume", "abort", "ack", "maintain", "clear", "rules", "start", "stop", "status", "export", "lint", "diff"),
)
"""The order of verbs in the help of a noun; others follow as they are declared."""

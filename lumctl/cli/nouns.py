"""The commands of ``lumctl``, with the module that contains each: help is printed without importing them."""

from typing import NamedTuple


class Noun(NamedTuple):
    """A first word after ``lumctl``: the module of ``lumctl.cli`` that contains its ``app``, and its line of help."""

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
        "slice": Noun("slice", "Place a job on free accelerators of a torus, join them by light, and release them."),
        "spare": Noun("spare", "Spares: which are free, who uses the others, and how many are enough."),
        "fabric": Noun("fabric", "Light paths: show, route and measure them, and program them from the inventory."),
        "device": Noun("device", "Meshes, switches, transponders and host power: show readings, change settings."),
        "job": Noun("job", "Jobs, their ranks, and where each runs now."),
        "collective": Noun("collective", "Schedules of an all-reduce when one rank is late: plan, check, advise."),
        "runbook": Noun("runbook", "Runs as files: read, edit, compare, replay and verify them."),
    },
    "Unattended": {
        "watch": Noun("watch", "The daemon: reads every second, keeps history, notifies, acts by policies."),
        "policy": Noun("policy", "What the daemon may do automatically: check, explain and test policies."),
        "autopilot": Noun("autopilot", "Stop and start automatic actions, and list the decisions."),
    },
    "Set up": {
        "inventory": Noun("inventory", "Write, check and show the inventory; trust the keys of its hosts."),
        "fleet": Noun("fleet", "Save the output of hosts' probes as files, to judge it elsewhere."),
        "store": Noun("store", "Where the journal, leases and health are kept; copy them to another database."),
        "gateway": Noun(
            "gateway", "The only process that writes to a rack's devices, and only under the newest lease."
        ),
        "plugin": Noun(
            "plugin", "Installed drivers, probes and kinds of job control; templates and checks for authors."
        ),
        "completion": Noun("completion_script", "Print a completion script for bash, zsh or fish."),
    },
    "Simulate": {
        "demo": Noun("demo", "A demonstration on the simulator: a GPU dies and a spare replaces it."),
        "sim": Noun("sim", "Simulate the rack of any inventory on loopback, with faults on request."),
        "study": Noun("study", "The published results, run again, with a verdict on each claim."),
    },
}
"""The nouns as the help shows them."""
NOUNS: dict[str, Noun] = {name: noun for group in GROUPS.values() for name, noun in group.items()}

VERB_ORDER = (
    *("init", "up", "validate", "run", "plan", "apply", "approve", "rollback", "list", "show", "explain", "trust"),
    *("resume", "abort", "ack", "maintain", "clear", "rules", "start", "stop", "status", "export", "lint", "diff"),
)
"""The order of verbs in the help of a noun; others follow in order of declaration."""

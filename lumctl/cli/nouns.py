"""The commands that ``lumctl`` knows, with the module that holds each: help is printed without importing them."""

from typing import NamedTuple


class Noun(NamedTuple):
    """A first word after ``lumctl``: the module of ``lumctl.cli`` that holds its ``app`` and its line of help."""

    module: str
    help: str


NOUNS: dict[str, Noun] = {
    "status": Noun("status", "Health of every accelerator, link and circuit, read now."),
    "top": Noun("top.command", "The dashboard: the same, live, with swaps planned and applied from it."),
    "check": Noun("check", "One line and an exit code for cron and monitoring."),
    "watch": Noun("watch", "The daemon: looks each second, keeps history, serves metrics, notifies."),
    "health": Noun("health", "Why a component is in its state; what is known, and what is in maintenance; the rules."),
    "swap": Noun("swap", "Put a spare in a failed accelerator's place."),
    "policy": Noun("policy", "What may be done unasked: check policies, explain them, try them on a history."),
    "autopilot": Noun("autopilot", "Stop and start what acts by policies, and see what it decided."),
    "runbook": Noun("runbook", "What was done, as a file that can be read, edited and replayed."),
    "job": Noun("job", "Jobs, their ranks, and where each runs now."),
    "device": Noun("device", "Meshes, switches, transponders and machines' power: what they show, and setting it."),
    "fabric": Noun("fabric", "Light paths: what the meshes carry, and programming them from the inventory."),
    "gateway": Noun("gateway", "The process that alone writes to a rack's devices, for the newest lease only."),
    "store": Noun("store", "Where journal, leases and health are kept, and moving them to another database."),
    "fleet": Noun("fleet", "What hosts print, saved as files to be judged elsewhere."),
    "inventory": Noun("inventory", "Check and show the inventory; enrol its hosts' keys."),
    "plugin": Noun("plugin", "Drivers of devices and kinds of job control that are installed."),
    "sim": Noun("sim", "A rack of any inventory on loopback, with faults on request."),
    "completion": Noun("completion_script", "The script that completes commands and ids in bash, zsh or fish."),
    "demo": Noun("demo", "The whole story on the embedded simulator: a GPU dies, a spare takes its place."),
}

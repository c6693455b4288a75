"""The parts of the manual that no command's own help contains."""

from lumctl.cli.manual import daemon, gateway

ABOUT = """
``lumctl`` reads the health of every accelerator and every light path of a rack, plans what should be done, carries
it out step by step, undoes it if a step fails, and records it as a runbook that can be replayed.

Data goes to standard output, narration to standard error. A command that moves light shows its steps first and asks for
confirmation; ``--yes`` confirms for unattended use, ``--dry-run`` only shows the steps. Every command has a target: the
rack, or the simulator of the same inventory.
"""

EXIT_STATUS = (
    ("0", "Done."),
    ("1", "Unexpected: a bug."),
    ("2", "The command, the inventory or the configuration is wrong."),
    ("3", "Something could not be reached."),
    ("4", "Unhealthy."),
    ("5", "Refused: a policy, a stale plan, a lock, an unreadable store or a precondition. Nothing was done."),
    ("6", "Failed and rolled back: the rack is as it was."),
    ("7", "Half done: an operator must decide what happens next."),
    ("130", "Interrupted."),
)

MORE = {"watch": daemon.SECTIONS, "gateway": gateway.SECTIONS}
"""Sections that only the page of one noun has: a title and its text."""

CHECK_STATUS = (
    ("0", "OK."),
    ("1", "WARNING."),
    ("2", "CRITICAL."),
    ("3", "UNKNOWN; also for errors of usage, inventory and collection."),
)
"""``check`` follows the convention of monitoring plug-ins instead."""

ENVIRONMENT = (
    ("LUMCTL_INVENTORY", "The inventory, where ``--inventory`` is not given."),
    ("LUMCTL_TARGET", "``rack`` or ``sim``, where ``--target`` is not given."),
    (
        "LUMCTL_STATE",
        "A folder or a database URL for the store; overrides the inventory. A simulator's is apart from it.",
    ),
    (
        "LUMCTL_GATEWAY",
        "The socket of a rack's gateway, or the folder with RACK.sock of each; before what the inventory names.",
    ),
    ("LUMCTL_WEBHOOK_URL", "Where ``lumctl watch`` posts notifications, where no file names it."),
    ("LUMCTL_WEBHOOK_TOKEN", "The bearer token for it, likewise."),
    ("LUMCTL_RECORD", "A folder that is there: what device drivers are asked and answer goes into it, a file each."),
    ("LUMCTL_RECORDINGS", "A folder of such files, from which the drivers ``replay-...`` answer."),
    (
        "LUMCTL_PLAIN_SSH",
        "If set and not 0, hosts are read over paramiko's public API alone: slower, with two threads for each host.",
    ),
    ("LUMCTL_TRACEBACK", "If set, an unexpected error shows where it came from."),
    ("NO_COLOR", "If set, nothing is coloured."),
    ("XDG_STATE_HOME", "Holds the stores that the inventory does not place; ``~/.local/state`` if unset."),
    (
        "XDG_RUNTIME_DIR",
        "Holds the sockets of the daemon and of a running simulator, and its keys; the temporary folder if unset.",
    ),
)

FILES = (
    ("./lumctl.yaml", "The inventory, where none is named."),
    ("~/.config/lumctl/inventory.yaml", "The inventory, where there is no ``./lumctl.yaml`` either."),
    ("~/.local/state/lumctl/RACK", "The store of a rack that the inventory does not place: who runs where, journal."),
    ("~/.ssh/config", "Honoured for what the inventory does not say about a host."),
)

BY_HAND = (
    "lumctl-driver(7)",
    "lumctl-health(7)",
    "lumctl-inventory(5)",
    "lumctl-job(7)",
    "lumctl-job-plugin(7)",
    "lumctl-mesh(7)",
    "lumctl-probe(7)",
    "lumctl-runbook(7)",
    "lumctl-tutorial(7)",
)
"""Pages that no command can tell: the file formats, and how a mesh is numbered."""

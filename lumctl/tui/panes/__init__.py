"""The panes of the main screen, in the order of their numbers; the tenth is 0."""

from lumctl.tui.panes.accelerators import ACCELERATORS
from lumctl.tui.panes.circuits import CIRCUITS
from lumctl.tui.panes.incidents import FINDINGS, INCIDENTS, LOG
from lumctl.tui.panes.jobs import JOBS
from lumctl.tui.panes.policies import POLICIES
from lumctl.tui.panes.racks import RACKS
from lumctl.tui.panes.rows import Pane
from lumctl.tui.panes.swaps import RUNBOOKS, SWAPS

PANES: tuple[Pane, ...] = (
    RACKS,
    ACCELERATORS,
    CIRCUITS,
    FINDINGS,
    INCIDENTS,
    SWAPS,
    RUNBOOKS,
    POLICIES,
    JOBS,
    LOG,
)

"""How a job ends: a word for each way, and the exit code of ``lumctl job run``."""

from enum import StrEnum

from lumctl.errors import ExitCode


class End(StrEnum):
    """How a job has ended. ``DONE``: the last line of the script has run on every rank."""

    DONE = "done"
    STOPPED = "stopped"
    UNFINISHED = "unfinished"
    SCRIPT_ERROR = "script-error"
    NO_PROGRESS = "no-progress"
    NOT_STARTED = "not-started"
    NO_SPARE = "no-spare"
    STATE_LOST = "state-lost"
    SIMULATOR_GONE = "simulator-gone"
    LEFT = "left"

    @property
    def exit_code(self) -> ExitCode:
        """What ``lumctl job run`` ends with."""
        return _EXIT_CODES.get(self, ExitCode.UNHEALTHY)


_EXIT_CODES = {
    End.DONE: ExitCode.DONE,
    End.STOPPED: ExitCode.DONE,
    End.UNFINISHED: ExitCode.HALF_DONE,
    End.NO_SPARE: ExitCode.REFUSED,
    End.SIMULATOR_GONE: ExitCode.UNREACHABLE,
    End.LEFT: ExitCode.REFUSED,
}

"""The agent of a job on one host: it starts the job's workers, watches them, and relays their messages.

It outlives its coordinator, and its workers outlive it: the next agent finds them again. It imports only the
standard library, so that it starts quickly.
"""

from lumctl.training.agent.folder import open_agent

__all__ = ["open_agent"]

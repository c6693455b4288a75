"""Accelerate's knowledge of the process group, which it keeps for the life of a process."""

import os

from accelerate.state import AcceleratorState, GradientState

from lumctl.training.torch.restart import RestartableJob


def forget_group(_job: RestartableJob) -> None:
    """Make Accelerate look for its process group again, and leave the group alone at the end."""
    AcceleratorState._reset_state(reset_partial_state=True)  # noqa: SLF001 - there is no public way
    GradientState._reset_state()  # noqa: SLF001 - as above
    os.environ["FORK_LAUNCHED"] = "1"  # otherwise `end_training` destroys the group, which lumctl still needs

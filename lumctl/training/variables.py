"""Environment variables that an agent sets for a worker; a script may read them."""

JOB = "LUMCTL_JOB"
WORKER = "LUMCTL_JOB_WORKER"
ACCELERATOR = "LUMCTL_JOB_ACCELERATOR"
SOCKET = "LUMCTL_JOB_SOCKET"
"""Where its agent listens: who has this one was started by an agent."""
FOLDER = "LUMCTL_JOB_FOLDER"
BEAT_S = "LUMCTL_JOB_BEAT_S"
LIFELINE = "LUMCTL_JOB_LIFELINE"
ADDRESS = "LUMCTL_JOB_ADDRESS"
"""Where its servers are to listen."""
TOKEN = "LUMCTL_JOB_TOKEN"  # noqa: S105 - what it is called, not what it says
"""What all workers of the job know, and nobody else."""

"""The only code that writes to devices: plans as data, the engine that applies them, and the proof of light."""

from lumctl.change.engine import Progress, RunResult, StepDuration, apply
from lumctl.change.plan import Plan, from_document, to_document

__all__ = ["Plan", "Progress", "RunResult", "StepDuration", "apply", "from_document", "to_document"]

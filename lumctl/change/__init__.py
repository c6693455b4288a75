"""The only code that writes to devices: plans as data, the engine that applies them, and the proof of light."""

from lumctl.change.engine import Phase, Progress, RunResult, apply
from lumctl.change.plan import Plan, from_document, to_document

__all__ = ["Phase", "Plan", "Progress", "RunResult", "apply", "from_document", "to_document"]

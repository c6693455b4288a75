"""Choose spares, plan replacements and their undo. lumctl.change applies the plans."""

from lumctl.swap.adoption import plan_adopt
from lumctl.swap.fabric import commission, plan_fabric, require_cuts_agreed
from lumctl.swap.planning import plan_swap
from lumctl.swap.reroute import plan_reroute
from lumctl.swap.restoration import plan_return
from lumctl.swap.rollback import plan_rollback
from lumctl.swap.settings import plan_settings

__all__ = [
    "commission",
    "plan_adopt",
    "plan_fabric",
    "plan_reroute",
    "plan_return",
    "plan_rollback",
    "plan_settings",
    "plan_swap",
    "require_cuts_agreed",
]

"""A rack, opened: its inventory aimed at the rack or the simulator, with sessions, drivers and store behind it."""

from lumctl.site.observation import Observation, current_role, place_of
from lumctl.site.site import Site

__all__ = ["Observation", "Site", "current_role", "place_of"]

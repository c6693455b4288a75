"""One network interface behind one transponder: its carrier, its light, and whom its host's lldpd has heard on it."""

from dataclasses import dataclass, field

from lumctl.inventory.model import Transponder
from lumctl.sim.light import Light

LLDP_INTERVAL_S = 30.0
LLDP_TTL_S = 120.0


@dataclass(slots=True)
class Heard:
    """One neighbour's entry: when a frame last said something new, when the last one came, and what it says."""

    changed_at: float
    last_at: float
    mark: str


@dataclass(slots=True)
class Link:
    """The state of one interface. ``faulty_down``: its link is held down by a fault, whatever light comes in.

    ``carried_s``: the seconds with carrier before the present one, which began at ``up_since``.
    """

    transponder: Transponder
    admin_up: bool = True
    faulty_down: bool = False
    carrier: bool = False
    carrier_changes: int = 0
    carried_s: float = 0.0
    up_since: float = 0.0
    light: Light | None = None
    heard: dict[str, Heard] = field(default_factory=dict)

    def settle(self, light: Light | None, now: float, mark: str) -> None:
        """Take the light that comes in now; ``mark`` is what its transmitter's lldpd says besides its name.

        Both ends of a link see it come up together, and lldpd announces itself on every interface that comes up:
        so a frame arrives with the carrier. A lost carrier empties the neighbour table. Light that is switched from
        one transmitter to another without a gap does neither: the old neighbour stays until its time to live is over.
        """
        self.heard = self.neighbours(now)
        self.light = light
        lit = light is not None and light.power_dbm >= self.transponder.rx_sensitivity_dbm
        carrier = lit and self.admin_up and not self.faulty_down
        if carrier == self.carrier:
            return
        self.carrier = carrier
        self.carrier_changes += 1
        if carrier:
            self.up_since = now
            self.frame(now, mark)
        else:
            self.carried_s += now - self.up_since
            self.heard.clear()

    def frame(self, at: float, mark: str) -> None:
        """A frame of whoever lights this receiver comes in, if the link is up.

        As in lldpd, the age of an entry counts from the last frame that differed from the one before it.
        """
        if not self.carrier or self.light is None:
            return
        entry = self.heard.get(self.light.source)
        if entry is None:
            self.heard[self.light.source] = Heard(at, at, mark)
            return
        entry.last_at = max(entry.last_at, at)
        if mark != entry.mark:
            entry.mark, entry.changed_at = mark, entry.last_at

    def carried_until(self, now: float) -> float:
        """Seconds with carrier in all."""
        return self.carried_s + (now - self.up_since if self.carrier else 0.0)

    def neighbours(self, now: float) -> dict[str, Heard]:
        """Transponders in the neighbour table: those whose time to live is not over."""
        return {source: entry for source, entry in self.heard.items() if now - entry.last_at <= LLDP_TTL_S}

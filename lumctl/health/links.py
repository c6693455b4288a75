"""The verdict on a link: a transponder with its module and interface."""

from lumctl.health.judging import judge, state_of
from lumctl.health.look import Look
from lumctl.health.rules.link import RULES, LinkCase
from lumctl.health.states import ComponentHealth, State
from lumctl.inventory.model import Transponder


def judge_link(look: Look, transponder: Transponder) -> ComponentHealth:
    """Judge one transponder; those of an accelerator out of service are ``disabled``, for a swap darkens them."""
    disabled = transponder.accelerator in look.disabled
    here = look.readable(transponder.host)
    if here is None:
        # The host's own finding tells why.
        return ComponentHealth(transponder.id, "link", State.DISABLED if disabled else State.UNKNOWN)
    interface = here.seen.interfaces.get(transponder.interface)
    optics = here.seen.optics.get(transponder.interface)
    ports = tuple(port for port in here.seen.infiniband if port.device == transponder.interface)
    read_at = min((r.taken_at for r in (interface, optics, *ports) if r is not None), default=None)
    stale = read_at is not None and look.stale(read_at)
    case = LinkCase(
        id=transponder.id,
        name=transponder.interface,
        in_use=transponder.id in look.in_use and not disabled,
        listed=here.probe_ended_well("net") and not stale,
        stale=look.stale_evidence(read_at) if read_at is not None and stale else None,
        interface=None if stale else interface,
        optics=None if stale else optics,
        infiniband=() if stale else ports,
        rx_sensitivity_dbm=transponder.rx_sensitivity_dbm,
        read_at=read_at if read_at is not None else here.seen.taken_at,
    )
    findings = judge(RULES, case)
    read = case.interface is not None or case.infiniband
    state = state_of(findings, otherwise=State.OK if read else State.UNKNOWN)
    return ComponentHealth(transponder.id, "link", State.DISABLED if disabled else state, findings, read_at)

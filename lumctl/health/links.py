"""The verdict on a link: a transponder with its module and interface."""

from lumctl.fleet.readings import ProbeStatus
from lumctl.health.judging import judge, state_of
from lumctl.health.look import HostLook, Look
from lumctl.health.rules.expected import LINK_RULES
from lumctl.health.rules.link import RULES
from lumctl.health.rules.link_case import LinkCase
from lumctl.health.states import ComponentHealth, State
from lumctl.inventory.model import Transponder

_RULES = (*RULES, *LINK_RULES)


def judge_link(look: Look, transponder: Transponder) -> ComponentHealth:
    """Judge one transponder; those of an accelerator out of service are ``disabled``, for a swap darkens them."""
    disabled = transponder.accelerator in look.disabled
    here = look.readable(transponder.host)
    if here is None:
        # The host's own finding tells why.
        state = State.DISABLED if disabled else State.UNKNOWN
        return ComponentHealth(transponder.id, "link", state, disabled=disabled)
    interface = here.seen.interfaces.get(transponder.interface)
    optics = here.seen.optics.get(transponder.interface)
    ports = tuple(port for port in here.seen.infiniband if port.device == transponder.interface)
    read_at = min((r.taken_at for r in (interface, optics, *ports) if r is not None), default=None)
    stale = read_at is not None and look.stale(read_at)
    place = ("link", transponder.id)
    # What was read before a run moved its light was right then: of the circuit that it carries now it says nothing.
    if interface is not None and look.outdated(interface.taken_at, place):
        interface = None
    if optics is not None and look.outdated(optics.taken_at, place):
        optics = None
    ports = tuple(port for port in ports if not look.outdated(port.taken_at, place))
    net = here.seen.probes.get("net")
    case = LinkCase(
        id=transponder.id,
        name=transponder.interface,
        in_use=transponder.id in look.in_use and not disabled,
        listed=here.probe_ended_well("net")
        and not stale
        and net is not None
        and not look.outdated(net.taken_at, place),
        stale=look.stale_evidence(read_at) if read_at is not None and stale else None,
        interface=None if stale else interface,
        optics=None if stale else optics,
        infiniband=() if stale else ports,
        rx_sensitivity_dbm=transponder.rx_sensitivity_dbm,
        read_at=read_at if read_at is not None else here.seen.taken_at,
        now=look.now,
        nic_events=here.nic_events_of(transponder.interface),
        trend=look.trend("link", transponder.id),
        rates=() if stale else look.expectations.rates.get(transponder.id, ()),
        expected_rate=look.expectations.rate(transponder),
        expected_lanes=transponder.rate_lanes,
        expected_part=transponder.module_part,
        unread=optics is None and _is_not_asked(here, transponder.interface),
    )
    findings = judge(_RULES, case)
    otherwise = State.OK if case.interface is not None or case.infiniband else State.UNKNOWN
    state = State.DISABLED if disabled else state_of(findings, otherwise=otherwise)
    return ComponentHealth(
        transponder.id,
        "link",
        state,
        findings,
        read_at,
        otherwise=otherwise,
        disabled=disabled,
        seen=_seen(look, case, here),
    )


def _is_not_asked(here: HostLook, interface: str) -> bool:
    outcome = here.seen.probes.get(f"optics:{interface}")
    return outcome is not None and outcome.status is ProbeStatus.NOT_ASKED


def _seen(look: Look, case: LinkCase, here: HostLook) -> frozenset[str]:
    """The probes that told of this link."""
    told = {"host"}
    if case.interface is not None or case.listed:
        told.add("net")
    if case.optics is not None or (here.probe_ended_well(f"optics:{case.name}") and not case.stale):
        # A probe that ended well without a reading has found that there is no module.
        told.add("optics")
    if case.infiniband:
        told |= {"infiniband"} if case.interface is not None else {"infiniband", "net"}
    if any(not look.stale(port.taken_at) for port in here.ports_of(case.name)):
        told.add("counters")
    if here.probe_ended_well("kernel"):
        told.add("kernel")
    return frozenset(told)

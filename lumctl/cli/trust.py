"""``lumctl inventory trust``: make the hosts' keys known, after a person has looked at them."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from lumctl.cli.invocation import Invocation, Target
from lumctl.cli.output import OutputColumn
from lumctl.cli.verbs import verb
from lumctl.errors import RefusedError, UnreachableError, UsageError
from lumctl.inventory.problems import nearest

if TYPE_CHECKING:
    from lumctl.devices.endpoints import HostEndpoint
    from lumctl.fleet.enrol import HostKeyOffer

_COLUMNS = (
    OutputColumn("HOST", "host"),
    OutputColumn("KEY", "result"),
    OutputColumn("TYPE", "type"),
    OutputColumn("FINGERPRINT", "fingerprint"),
    OutputColumn("NAME", "name", wide=True),
    OutputColumn("PROBLEM", "problem", wide=True),
)
_TIMEOUT_S = 5.0


def register(app: typer.Typer) -> None:
    """Add ``trust`` to the commands of ``inventory``."""
    verb(app, "trust")(trust)


def trust(
    cx: Invocation,
    hosts: Annotated[list[str] | None, typer.Argument(metavar="[HOST...]", help="All hosts, unless named.")] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Fetch the hosts' SSH keys, show their fingerprints, and write the new ones to the known-hosts file."""
    from lumctl.fleet.enrol import HostKeyState, append_keys, fetch_offers, routes_by_distance

    rows: list[dict[str, Any]] = []
    unreachable = []
    try:
        for routes in routes_by_distance(_endpoints(cx, hosts or [])):
            offers = fetch_offers(routes, timeout_s=_TIMEOUT_S)
            _refuse_changed(offers)
            new = [offer for offer in offers if offer.standing is HostKeyState.NEW]
            if new:
                _ask(cx, new, yes=yes)
                for path in append_keys(new):
                    cx.out.narrate(f"wrote {path}")
            rows += [_row(offer) for offer in offers]
            unreachable += [offer for offer in offers if offer.problem]
    finally:
        _show(cx, rows)
    if unreachable:
        problems = [offer.problem.message for offer in unreachable if offer.problem]
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise UnreachableError(f"{problems[0]}{more}", hint="the others are enrolled; run it again for the rest")


def _endpoints(cx: Invocation, names: list[str]) -> "list[HostEndpoint]":
    from lumctl.devices.endpoints import rack_endpoints, sim_endpoints

    at = sim_endpoints(cx.inventory) if cx.target is Target.SIM else rack_endpoints(cx.inventory)
    for name in names:
        if name not in at.hosts:
            near = nearest(name, at.hosts)
            raise UsageError(f"no host {name!r} in the inventory", hint=f"did you mean {near}?" if near else None)
    return [at.hosts[name] for name in names or at.hosts]


def _refuse_changed(offers: "list[HostKeyOffer]") -> None:
    from lumctl.fleet.ssh.host_keys import changed_hint, changed_message

    for offer in offers:
        if offer.known and offer.key:
            name = offer.route.key_name
            raise RefusedError(
                changed_message(offer.route.label, name, offer.key, offer.known), hint=changed_hint(name, offer.known)
            )


def _ask(cx: Invocation, new: "list[HostKeyOffer]", *, yes: bool) -> None:
    for offer in new:
        cx.out.narrate(f"{offer.route.label} ({offer.route.key_name}): {offer.key}")
    what = "this key" if len(new) == 1 else f"these {len(new)} keys"
    cx.confirm(f"enrol {what}?", yes=yes)


def _row(offer: "HostKeyOffer") -> dict[str, Any]:
    return {
        "host": offer.route.label,
        "result": "enrolled" if offer.standing == "new" else str(offer.standing),
        "type": offer.key.kind if offer.key else None,
        "fingerprint": offer.key.fingerprint if offer.key else None,
        "name": offer.route.key_name,
        "problem": offer.problem.message if offer.problem else None,
    }


def _show(cx: Invocation, rows: list[dict[str, Any]]) -> None:
    if cx.out.structured:
        cx.out.document("trust", {"hosts": rows})
    elif rows:
        cx.out.table(_COLUMNS, rows)

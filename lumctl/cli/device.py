"""``lumctl device``: meshes, switches, transponders and machines' power: what they show, and setting it."""

from typing import Annotated

import typer

from lumctl.cli import device_show
from lumctl.cli.change_options import DryRunOption, YesOption
from lumctl.cli.invocation import Invocation
from lumctl.cli.nouns import NOUNS
from lumctl.cli.verbs import noun_app, verb

app = noun_app(NOUNS["device"].help)
device_show.register(app)


@verb(app, "set")
def set_component(
    cx: Invocation,
    component: Annotated[str, typer.Argument(metavar="COMPONENT", help="As with device show.")],
    settings: Annotated[list[str], typer.Argument(metavar="SETTING=VALUE", help="What to set, each once.")],
    even_if_used: Annotated[
        bool, typer.Option("--even-if-used", help="Also where a job loses light or its machine by it.")
    ] = False,
    yes: YesOption = False,
    dry_run: DryRunOption = False,
) -> None:
    """Change a setting of one component: planned, journalled and read back like any change, and undone if it fails.

    MESH/puc/N takes ``state=bar|cross``. SWITCH/port/N takes ``enabled=true|false``, ``label=TEXT`` and
    ``joined=PORT|none``. A transponder takes ``transmit=on|off``, ``frequency_mhz=MHZ`` and ``output_power_dbm=DBM``.
    HOST/power (or HOST) takes ``power=on|off|force-off|reset``.

    A device that lumctl never wrote can be set if it can be read: its present states become the record, and the plan
    lists each light path that it cuts. Otherwise run ``lumctl fabric apply`` first. On a switch without lanes of the
    inventory every port can be joined; on one with lanes, only the lanes' ports.

    Circuits of jobs are protected: cells that carry one are refused, and any other change that takes light or a machine
    from a job needs ``--even-if-used``. ``lumctl swap list`` shows the run; ``lumctl swap rollback RUN`` undoes it,
    except a reset, which cannot be undone.
    """
    from lumctl.cli.changes import carry_out
    from lumctl.cli.output import OutputFormat
    from lumctl.context import Context
    from lumctl.swap import plan_settings

    with Context(cx.inventory, cx.target) as context:
        plan = plan_settings(context, component, settings, even_if_used=even_if_used)
        if plan.steps:
            carry_out(cx, context, plan, yes=yes, dry_run=dry_run)
            return
        if cx.out.structured:
            cx.out.document("run", {"run": None, "outcome": "nothing to do", "target": str(cx.target)})
        if cx.out.format is not OutputFormat.NAME:
            cx.out.narrate("; ".join(plan.warnings) or f"{component} shows {' '.join(settings)} already")
            cx.out.narrate("nothing was done")

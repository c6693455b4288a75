"""``lumctl spare``: the spares of each rack, and how many it needs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from lumctl.cli import spare_list, spare_queue
from lumctl.cli.invocation import Invocation
from lumctl.cli.nouns import NOUNS
from lumctl.cli.option_errors import OptionErrors
from lumctl.cli.output import OutputColumn, OutputFormat
from lumctl.cli.verbs import noun_app, verb
from lumctl.errors import UsageError
from lumctl.inventory.problems import require_known
from lumctl.spares.assumptions import Assumptions, read_availability, read_change, read_count, read_length
from lumctl.spares.documents import alike_parts, answer, percent, pool_row, size_document, size_rows, waits_text
from lumctl.spares.pools import Pool, SizedPool, assumed_pool, changed, estimated_pools, pools_of, sized
from lumctl.spares.rates import failure_history, read_rates

if TYPE_CHECKING:
    from lumctl.spares.rates import FailureHistory
    from lumctl.spares.sizing import PoolSize

T = TypeVar("T")
app = noun_app(NOUNS["spare"].help)
spare_list.register(app)
spare_queue.register(app)

_TABLE = (
    OutputColumn("ON", "devices"),
    OutputColumn("SPARES", "spares", right=True),
    OutputColumn("MORE DOWN", "more_down", right=True),
    OutputColumn("WAITS/YEAR", "waits", right=True),
    OutputColumn("", "note"),
)
_CHANGES = (
    OutputColumn("WHAT IF", "what_if"),
    OutputColumn("RACK", "rack", gives_way=2),
    OutputColumn("CLASS", "class", gives_way=1),
    OutputColumn("SPARES", "exact", right=True),
    OutputColumn("MORE DOWN", "more_down", right=True),
    OutputColumn("WAITS/YEAR", "waits", right=True),
    OutputColumn("PUBLISHED", "published", right=True),
    OutputColumn("WHOLE SERVERS", "server_eviction", right=True),
)
_ROWS_BEFORE, _ROWS_AFTER = 4, 2
"""The rows of a table for people around the answer; documents have all of them."""


@verb(app, "size", pages=True)
def size(
    cx: Invocation,
    availability: Annotated[
        str, typer.Option("--availability", metavar="A", help="Share of the time in which spares are to be enough.")
    ] = "0.999",
    horizon: Annotated[
        str | None,
        typer.Option("--horizon", metavar="TIME", help="Start with everything up, for so long; default: the long run."),
    ] = None,
    accelerators: Annotated[
        str | None,
        typer.Option(
            "--accelerators", metavar="N", help="Without an inventory: so many accelerators, spares included."
        ),
    ] = None,
    failure_rate: Annotated[
        str | None,
        typer.Option("--failure-rate", metavar="P", help="Probability that one is down; a range such as 0.01-0.03."),
    ] = None,
    repair: Annotated[
        str | None, typer.Option("--repair", metavar="TIME", help="How long an accelerator is down on average, as 5d.")
    ] = None,
    per_host: Annotated[
        str | None, typer.Option("--per-host", metavar="N", help="With --accelerators: how many are in one server.")
    ] = None,
    host_failure_rate: Annotated[
        str | None,
        typer.Option("--host-failure-rate", metavar="P", help="Probability that a whole host is down; or a range."),
    ] = None,
    class_: Annotated[
        str | None,
        typer.Option("--class", metavar="CLASS", help="Only accelerators of this model; a part of it is enough."),
    ] = None,
    rack: Annotated[str | None, typer.Option("--rack", metavar="RACK", help="Only this rack.")] = None,
    what_if: Annotated[
        list[str] | None,
        typer.Option("--what-if", metavar="NAME=VALUE[,...]", help="The answer under other assumptions; repeatable."),
    ] = None,
) -> None:
    """Say how many spares are enough: so many that more are down at once only in the allowed share of the time.

    A rack has a pool for each class (model and memory) of its accelerators, spares included. Those out of service are
    left out. Where light cannot lead from every accelerator to every spare, as with a mesh for each rail, the pool has
    parts that share no spare: each part needs enough of its own, and the answer is their sum. The rates come from the
    history of failures in the rack's store, or from --failure-rate. With --accelerators and --failure-rate no inventory
    is read.

    P is the probability that an accelerator is down: repair time / (time between failures + repair time). For a range,
    the accelerators have rates spread evenly over it. The answer is exact for unequal rates, for accelerators that are
    tied and for hosts that fail as a whole: the smallest K with P(more than K down) at most 1 - A. Failures of
    different hosts are taken as independent.

    From the history, a failure is a change to failed, and lasts until the accelerator is ok or degraded again. Hosts
    that failed more often count with higher rates. A history of less than a day is not used, and without a repair in it
    the command needs --repair. The store has at most 90 days; the answer also has a range, for the
    ends of the 95 % interval of the rates. A host that cannot be reached counts as down. Failures that nothing saw are
    missing, so keep ``lumctl watch`` running.

    Beside it stand the published rule (P(K or more down), always one more) and what it takes if the whole server of
    each failed accelerator is replaced, or its whole rack. WAITS/YEAR are the accelerators a year that fail and find no
    free spare; it needs the repair time.

    --what-if shows other assumptions beside the answer, such as ``--what-if repair=10d``. NAME is accelerators,
    availability, failure-rate, host-failure-rate, horizon or repair. Another repair time leaves failures as frequent.

    ``-o name`` prints the number of spares only, a line for each pool.
    """
    errors = OptionErrors()

    def given(read: Callable[[str, str], T], text: str | None, option: str) -> T | None:
        return None if text is None else errors.checked(lambda: read(text, option))

    basis = Assumptions(
        availability=given(read_availability, availability, "--availability"),
        horizon_s=given(read_length, horizon, "--horizon"),
        accelerators=given(read_count, accelerators, "--accelerators"),
        failure_rate=given(read_rates, failure_rate, "--failure-rate"),
        host_failure_rate=given(read_rates, host_failure_rate, "--host-failure-rate"),
        repair_s=given(read_length, repair, "--repair"),
    )
    per_host_count = given(read_count, per_host, "--per-host")
    changes = {text: errors.checked(partial(read_change, text)) for text in what_if or []}
    for misfit in _misfits(accelerators, failure_rate, per_host, {"--class": class_, "--rack": rack}):
        errors.note(misfit)
    errors.require_none()
    pools = _pools(cx, basis, per_host_count, class_, rack)
    sizes = [_sized(pool, basis, Assumptions()) for pool in pools]
    otherwise = {
        text: [_sized(pool, basis, change) for pool in pools] for text, change in changes.items() if change is not None
    }
    _print(cx, basis, sizes, otherwise)


def _misfits(
    accelerators: str | None, failure_rate: str | None, per_host: str | None, of_inventory: Mapping[str, str | None]
) -> Iterator[UsageError]:
    """The errors of options that do not go together."""
    if accelerators is None and per_host is not None:
        yield UsageError("--per-host needs --accelerators", hint="with an inventory, hosts come from there")
    if accelerators is not None and failure_rate is None:
        hint = "give both, or --what-if accelerators=N for the rack of the inventory"
        yield UsageError("--accelerators needs --failure-rate", hint=hint)
    for option, value in of_inventory.items():
        if accelerators is not None and value is not None:
            yield UsageError(f"{option} needs an inventory, and with --accelerators none is read")


def _pools(
    cx: Invocation, basis: Assumptions, per_host: int | None, class_: str | None, rack: str | None
) -> list[Pool]:
    if basis.accelerators is not None:
        return [changed(assumed_pool(basis.accelerators, per_host), basis)]
    require_known("rack", [] if rack is None else [rack], cx.inventory.racks)
    if basis.failure_rate is None:
        return _estimated(cx, basis, class_, rack)
    return [changed(pool, basis) for pool in pools_of(cx.inventory, class_, rack)]


def _estimated(cx: Invocation, basis: Assumptions, class_: str | None, rack: str | None) -> list[Pool]:
    from lumctl.context import Context

    with Context(cx.inventory, cx.target) as context:

        def history(of: str) -> "FailureHistory":
            return failure_history(context.store(of), of)

        pools = estimated_pools(cx.inventory, class_, history, basis.repair_s, rack)
    given = Assumptions(host_failure_rate=basis.host_failure_rate)
    return [changed(pool, given) for pool in pools]


def _sized(pool: Pool, basis: Assumptions, change: Assumptions) -> SizedPool:
    availability = change.availability or basis.availability
    if availability is None:
        raise TypeError("an availability is always given")
    return sized(changed(pool, change), availability, change.horizon_s or basis.horizon_s)


def _print(
    cx: Invocation, basis: Assumptions, sizes: Sequence[SizedPool], otherwise: dict[str, list[SizedPool]]
) -> None:
    if cx.out.structured:
        document = {"availability": basis.availability, "horizon_s": basis.horizon_s, **size_document(sizes)}
        changes = [{"what_if": text, **size_document(each)} for text, each in otherwise.items()]
        cx.out.document("spare-size", {**document, "what_if": changes})
        return
    if cx.out.format is OutputFormat.NAME:
        cx.out.names([str(each.exact) for each in sizes])
        return
    for number, each in enumerate(sizes):
        if number:
            cx.out.text()
        for line in answer(each, basis.horizon_s):
            cx.out.text(cx.out.wrapped(line, "  "))
        cx.out.text()
        rows = _rows(each, whole=cx.out.format is OutputFormat.WIDE)
        cx.out.table(_shown(_TABLE, rows), rows)
    if otherwise:
        cx.out.text()
        rows = [_in_words(pool_row(each)) | {"what_if": text} for text, found in otherwise.items() for each in found]
        cx.out.table(_shown(_CHANGES, rows), rows)


def _shown(columns: Sequence[OutputColumn], rows: Sequence[dict[str, Any]]) -> list[OutputColumn]:
    """The columns in which something is known."""
    return [column for column in columns if any(row[column.key] is not None for row in rows)]


def _rows(sized_pool: SizedPool, *, whole: bool) -> list[dict[str, Any]]:
    """The rows around the answer and what the pool has, with a word on each of them; with ``whole``, all rows.

    So for each part that needs spares of its own; parts that are alike have one set of rows.
    """
    found: list[dict[str, Any]] = []
    parts: list[tuple[str | None, PoolSize, int | None]] = [
        (devices, each.size, each.part.spares) for each, devices in alike_parts(sized_pool.parts)
    ] or [(None, sized_pool.size, sized_pool.pool.spares)]
    for devices, size, present in parts:
        notes = {size.exact: "enough", size.published: "published rule"}
        if present is not None:
            notes[present] = ", ".join(filter(None, (notes.get(present), "now")))
        around = range(size.exact - _ROWS_BEFORE, size.published + _ROWS_AFTER)
        rows = [row for row in size_rows(size, present) if whole or row["spares"] in around or row["spares"] in notes]
        found += [_in_words(row) | {"devices": devices, "note": notes.get(row["spares"], " ")} for row in rows]
    return found


def _in_words(row: dict[str, Any]) -> dict[str, Any]:
    return row | {"more_down": percent(row["probability_more_down"]), "waits": waits_text(row["waits_per_year"])}

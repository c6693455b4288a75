"""``lumctl policy test --year``: how long jobs wait for spares under each sharing policy, in simulated years."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lumctl.cli.invocation import Invocation
from lumctl.cli.output import OutputColumn, OutputFormat
from lumctl.cli.progress import progress
from lumctl.errors import UsageError

if TYPE_CHECKING:
    from lumctl.spares.sharing import Answer, SharingPolicy, SharingQuestion
    from lumctl.spares.simulated_year import SpareClass, WaitSummary, YearModel

BASE, FIT, SCARCE = "fifo", "best-fit", "scarce"
YEARS = (
    OutputColumn("POLICY", "policy"),
    OutputColumn("RESERVE", "held", right=True),
    OutputColumn("CLASS", "class"),
    OutputColumn("DEMANDS", "demands_text", right=True, gives_way=1),
    OutputColumn("NEVER", "never_text", right=True, gives_way=2),
    OutputColumn("WAITED", "waited_text", right=True),
    OutputColumn("MEAN WAIT", "mean_text", right=True),
    OutputColumn("BESIDE FIFO", "beside_fifo", right=True),
    OutputColumn("BESIDE BEST-FIT", "beside_fit", right=True),
)
_HOUR_S = 3600.0
_DIGITS = 5
_MOST_RESERVED = 4
"""How far the curve over the reserve goes."""


@dataclass(frozen=True, slots=True)
class YearOptions:
    """The options of ``--year`` as they were given; empty texts if they were not."""

    accelerators: int | None
    spares: str
    needs: str
    mtbf: str
    repair: str
    largest_group: int
    years: int
    policy: str


def print_year(cx: Invocation, given: YearOptions) -> None:
    """Simulate the years and print how the demands of each class fared under each policy."""
    from lumctl.spares.decision import load
    from lumctl.spares.policies import POLICIES
    from lumctl.spares.sharing import Reserve
    from lumctl.spares.simulated_year import compare_years, year

    model = _model(cx, given)
    rarest = model.classes[-1]
    ways = [(name, 0) for name in dict.fromkeys([*POLICIES, *filter(None, [given.policy])])]
    load(ways[-1][0])
    # The curve over the reserve: only with two classes is there anything to hold back.
    if len(model.classes) > 1:
        ways += [(SCARCE, held) for held in range(1, min(rarest.spares, _MOST_RESERVED) + 1)]
    found, faults = {}, list[str]()
    with progress("simulating years", quiet=cx.out.quiet) as tell:
        for name, held in ways:
            tell(f"simulating years under {name}{f' with a reserve of {held}' if held else ''}")
            reserve = Reserve({rarest.name: held})
            found[name, held] = [year(model, _policy(name, faults), seed, reserve) for seed in range(given.years)]
    for fault in dict.fromkeys(faults):
        cx.out.narrate(f"warning: best-fit decided some questions instead: {fault}")
    rows = []
    for (name, held), years in found.items():
        beside = zip(compare_years(years, found[BASE, 0]), compare_years(years, found[FIT, 0]), strict=True)
        rows += [_row(name, held, rarest.name, *pair) for pair in beside]
    if cx.out.structured:
        cx.out.document("policy-year", {"years": given.years, "model": _model_document(model), "policies": rows})
        return
    if cx.out.format is OutputFormat.NAME:
        cx.out.names(list(POLICIES))
        return
    cx.out.text(cx.out.wrapped(_in_words(model, given.years), "  "))
    cx.out.text()
    cx.out.table(YEARS, [_shown(row) for row in rows])
    for line in _alike(rows):
        cx.out.text()
        cx.out.text(cx.out.wrapped(line, "  "))


def _policy(name: str, faults: list[str]) -> "SharingPolicy":
    """The policy as lumctl asks it, with its limits; why best-fit decided instead is added to ``faults``."""
    from lumctl.spares.decision import decide

    def asked(question: "SharingQuestion") -> "Answer":
        decision = decide(name, question)
        faults.extend(filter(None, [decision.fault]))
        return decision.given

    return asked


def _model(cx: Invocation, given: YearOptions) -> "YearModel":
    """The pool that is simulated: of the options, or of the inventory.

    Raises:
        UsageError: an option has a wrong value, or the inventory has no spares.
    """
    from lumctl.spares.assumptions import read_length
    from lumctl.spares.simulated_year import SpareClass, YearModel

    if given.spares:
        spares = _numbers(given.spares, "--spares")
        needs = _numbers(given.needs, "--needs") if given.needs else dict.fromkeys(spares, 1)
        for name in needs.keys() - spares.keys():
            raise UsageError(f"--needs: --spares names no class {name!r}", hint=f"classes: {', '.join(spares)}")
        classes = tuple(SpareClass(name, count, needs.get(name, 0)) for name, count in spares.items())
        accelerators = given.accelerators
        if accelerators is None:
            raise UsageError("--spares needs the number of accelerators", hint="add --accelerators, such as 1024")
    else:
        if given.needs:
            raise UsageError("--needs is only for classes that --spares names")
        classes, accelerators = _of_inventory(cx)
        accelerators = given.accelerators or accelerators
    total = sum(each.share for each in classes)
    if not total:
        raise UsageError("--needs: no class is needed by anybody")
    first, _, last = given.repair.partition("-")
    repair_s = (read_length(first, "--repair"), read_length(last or first, "--repair"))
    if repair_s[0] > repair_s[1]:
        raise UsageError(f"--repair: {given.repair!r} ends before it begins", hint="example: 1d-10d")
    classes = tuple(SpareClass(each.name, each.spares, each.share / total) for each in classes)
    return YearModel(accelerators, classes, read_length(given.mtbf, "--mtbf"), repair_s, given.largest_group)


def _of_inventory(cx: Invocation) -> "tuple[tuple[SpareClass, ...], int]":
    """The classes of the first pool with spares, common ones first, and the number of its accelerators.

    Spares serve their own model only, and those with more memory also ranks that need less.
    """
    from lumctl.inventory.model import Role
    from lumctl.spares.pools import members_by_pool
    from lumctl.spares.simulated_year import SpareClass

    families: dict[tuple[str, str], list[tuple[float, SpareClass]]] = {}
    counts: dict[tuple[str, str], int] = {}
    for (rack, name), members in members_by_pool(cx.inventory, None).items():
        spares = sum(each.role is Role.SPARE for each in members)
        key = (rack, members[0].model)
        families.setdefault(key, []).append(
            (members[0].memory_gib, SpareClass(name, spares, float(len(members) - spares)))
        )
        counts[key] = counts.get(key, 0) + len(members)
    for key, found in families.items():
        if any(each.spares for _, each in found):
            return tuple(each for _, each in sorted(found, key=lambda pair: pair[0])), counts[key]
    raise UsageError(
        f"{cx.inventory.path} has no spares", hint="name a pool: --accelerators 1024 --spares common=8,rare=4"
    )


def _numbers(text: str, option: str) -> dict[str, int]:
    """Parse ``common=8,rare=4``.

    Raises:
        UsageError: a word is not NAME=NUMBER with a whole number, or a name is given twice.
    """
    found: dict[str, int] = {}
    for word in text.split(","):
        name, _, number = word.strip().partition("=")
        if not name or name in found or not (number.isascii() and number.isdecimal() and len(number) <= _DIGITS):
            hint = "example: common=8,rare=4"
            raise UsageError(
                f"{option}: {word.strip()!r} is not CLASS=N with a whole number, once for a class", hint=hint
            )
        found[name] = int(number)
    return found


def _row(policy: str, held: int, rarest: str, beside_fifo: "WaitSummary", beside_fit: "WaitSummary") -> dict[str, Any]:
    fared = beside_fifo
    return {
        "policy": policy,
        "reserve": {rarest: held} if held else {},
        "class": fared.name,
        "demands": fared.demands,
        "never": fared.never,
        "waited": fared.waited,
        "mean_wait_s": fared.mean_s,
        "beside_fifo": fared.ratio,
        "beside_best_fit": beside_fit.ratio,
    }


def _shown(row: Mapping[str, Any]) -> dict[str, Any]:
    ratios = {"beside_fifo": row["beside_fifo"], "beside_fit": row["beside_best_fit"]}
    return {
        **row,
        "held": next(iter(row["reserve"].values()), None),
        "demands_text": f"{row['demands']:.0f}",
        "never_text": f"{row['never']:.1f}",
        "waited_text": f"{row['waited']:.0%}",
        "mean_text": f"{row['mean_wait_s'] / _HOUR_S:.1f} h",
        **{key: "alike" if ratio is None else f"{ratio:.2f}" for key, ratio in ratios.items()},
    }


def _alike(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Which policies did not differ from the default, and what a number beside another policy means."""
    same = [
        policy
        for policy in dict.fromkeys(row["policy"] for row in rows)
        if policy != FIT
        and all(row["beside_best_fit"] is None for row in rows if row["policy"] == policy and not row["reserve"])
    ]
    if same:
        yield f"without a reserve, not significantly different from {FIT}: {', '.join(same)}"
    yield (
        "BESIDE: mean wait divided by that under the other policy in the same years; alike: the difference is within "
        "two standard errors. NEVER: demands a year for which the whole pool is too small; they are refused at once."
    )


def _model_document(model: "YearModel") -> dict[str, Any]:
    return {
        "accelerators": model.accelerators,
        "classes": [{"class": e.name, "spares": e.spares, "share": e.share} for e in model.classes],
        "mtbf_s": model.mtbf_s,
        "repair_s": list(model.repair_s),
        "largest_group": model.largest_group,
    }


def _in_words(model: "YearModel", years: int) -> str:
    spares = ", ".join(f"{e.spares} {e.name} ({e.share:.0%} of demands need it)" for e in model.classes)
    low, high = (seconds / (24 * _HOUR_S) for seconds in model.repair_s)
    repairs = f"{low:g} to {high:g} days" if high > low else f"of {low:g} days"
    return (
        f"{years} simulated years: {model.accelerators} accelerators, mean time between failures "
        f"{model.mtbf_s / _HOUR_S:.0f} h, repairs {repairs}, groups of 1 to {model.largest_group}; "
        f"spares: {spares}"
    )

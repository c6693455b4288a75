"""A recorded run as Markdown for an incident report: who, when, why, what, and how to undo it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lumctl.store import Head

_ENDS = {
    "done": "Every step was done, and its changes are in effect.",
    "rolled-back": "It failed, and all its changes were undone: the rack is as it was before.",
    "half-done": "It is left half done and needs an operator.",
    "refused": "It was refused before anything was written.",
    "superseded": "It was interrupted, and closed after later runs had changed the same settings; those were kept.",
    "running": "It has not ended: it is running, or it was interrupted.",
}
_NOT_STANDING = frozenset({"rolled-back", "refused", "superseded"})
_PLACE = {"rack": "rack itself", "sim": "simulator"}
_COUNTED = (("remove", "removed"), ("add", "added"), ("keep", "left unchanged"))
_PROOF = ("circuit", "transmitter", "receiver", "evidence", "seconds")


@dataclass(frozen=True, slots=True)
class LaterRuns:
    """The runs, newest first, that changed the same devices or jobs after a run, and how to undo that run now."""

    runs: tuple[str, ...]
    undo: str


def report(document: Mapping[str, Any], head: Head | None = None, later: LaterRuns | None = None) -> str:
    """A runbook as Markdown text; ``head`` is the last entry of the journal from which the runbook was made."""
    if "intents" in document:
        return "\n".join(_intended(document)) + "\n"
    return "\n".join(_recorded(document, head, later)) + "\n"


def _recorded(document: Mapping[str, Any], head: Head | None, later: LaterRuns | None) -> Iterator[str]:
    recorded = document["recorded"]
    yield from (f"# {document['id']}: {_plain(document['title'])}", "")
    yield from _table(
        ("", ""),
        [
            ("Outcome", recorded["outcome"] + (f" by {recorded['undone_by']}" if recorded.get("undone_by") else "")),
            ("Rack, target", f"{recorded['rack']}, {recorded['target']}"),
            ("Begun", recorded["at"]),
            ("Ended", recorded.get("ended") or "-"),
            ("Seconds", _seconds(recorded.get("seconds"))),
            ("By", recorded["by"]),
            ("Program", f"lumctl {recorded['lumctl']}"),
            ("Inventory", f"{recorded['inventory']['path']}, SHA-256 {recorded['inventory']['digest'][:16]}"),
            ("Plan", f"SHA-256 {recorded['plan'][:16]}"),
        ],
    )
    yield from _in_short(document, later)
    yield from _why(document)
    yield from _circuits(document["circuits"], stands=recorded["outcome"] not in _NOT_STANDING)
    yield from _steps(document["steps"])
    yield from _taken_back(document)
    yield from _powers(document["steps"])
    yield from _proofs(document["steps"])
    yield from _undo(document, later)
    if head is not None:
        yield from ("", "## Journal", "")
        yield f"Entry {head.seq} of rack {head.rack} was the last one: `{head.hash}`."
        yield f"Check it with `lumctl runbook verify{_aimed(recorded)}`."


def _in_short(document: Mapping[str, Any], later: LaterRuns | None) -> Iterator[str]:
    """A summary that answers an operator's first questions."""
    recorded, steps = document["recorded"], document["steps"]
    yield from ("", "## In short", "")
    title, by = _plain(document["title"]), _plain(recorded["by"])
    yield f"- What: {title}, by {by} at {recorded['at']}, on the {_PLACE.get(recorded['target'], recorded['target'])}."
    if recorded["outcome"] == "undone":
        yield f"- It was completed, and later undone by {recorded.get('undone_by')}."
    elif later is not None:
        yield f"- Every step was done. Later runs have changed the same devices or jobs: {', '.join(later.runs)}."
    else:
        yield f"- {_ENDS.get(recorded['outcome'], _plain(recorded['outcome']))}"
    failed = [step for step in steps if "failed" in (step.get("outcome") or {})]
    for step in failed:
        waited = "" if step.get("required", True) else ", without waiting for its result"
        yield f"- Step {step['id']} ({_plain(step['title'])}{waited}) failed: {_plain(step['outcome']['failed'])}"
    circuits, moved = document["circuits"], [job for job in document["end"]["assignment"] if _moved(document, job)]
    if any(circuits.get(key) for key in ("add", "remove", "keep")):
        counts = ", ".join(f"{len(circuits.get(key, ()))} {word}" for key, word in _COUNTED)
        yield f"- Circuits planned: {counts}."
    if moved:
        then = "now run elsewhere" if later is None else "ran elsewhere after it"
        then = "ran elsewhere until it was undone" if recorded["outcome"] == "undone" else then
        yield f"- Jobs that {then}: {_plain(', '.join(moved))}."


def _moved(document: Mapping[str, Any], job: str) -> bool:
    before, after = (document[key]["assignment"].get(job) for key in ("start", "end"))
    return before is not None and before != after


def _taken_back(document: Mapping[str, Any]) -> Iterator[str]:
    """The steps that the run itself undid when it failed."""
    undone = document.get("taken_back") or ()
    if undone:
        yield from ("", "## What was undone at once", "")
        titles = {str(step["id"]): step["title"] for step in document["steps"]}
        rows = [
            (str(each["step"]), titles.get(str(each["step"]), "-"), each["at"], _undone(each["outcome"]))
            for each in undone
        ]
        yield from _table(("", "Step", "At", "Outcome"), rows)


def _undone(outcome: Mapping[str, Any]) -> str:
    return f"failed: {outcome['failed']}" if "failed" in outcome else "as before it"


def _powers(steps: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The optical powers that were read before anything moved."""
    seen = [step["outcome"] for step in steps if step["do"] == "check" and step.get("outcome")]
    sound = {receiver: heard for outcome in seen for receiver, heard in (outcome.get("sound") or {}).items()}
    powers = {receiver: power for outcome in seen for receiver, power in (outcome.get("powers") or {}).items()}
    if sound or powers:
        yield from ("", "## Light before", "")
        names = dict.fromkeys((*sound, *powers))
        columns = 3 if powers else 2  # with evidence such as LLDP no power is read
        rows = [(name, sound.get(name, "-"), _dbm(powers.get(name)))[:columns] for name in names]
        yield from _table(("Receiver", "Heard", "Power")[:columns], rows)


def _why(document: Mapping[str, Any]) -> Iterator[str]:
    replaced = document.get("replacements") or ()
    if replaced:
        came = document["recorded"]["outcome"] not in _NOT_STANDING
        yield from ("", "## What replaced what" if came else "## What was to replace what", "")
        rows = [(r["job"], str(r["rank"]), r["failed"], r["spare"]) for r in replaced]
        yield from _table(("Job", "Rank", "Failed", "In its place"), rows)
    considered = document.get("candidates") or ()
    if considered or document.get("why"):
        yield from ("", "## Why", "")
        yield from (f"- {_plain(line)}" for line in document.get("why") or ())
        for candidate in considered:
            taken, reasons = "chosen" if candidate["chosen"] else "not chosen", "; ".join(candidate["reasons"])
            yield f"- {candidate['spare']} for {candidate['failed']}: {taken}; {_plain(reasons)}"


def _circuits(circuits: Mapping[str, Any], *, stands: bool) -> Iterator[str]:
    rows = [
        (what, circuit["id"], " to ".join(f"{end['lane']} (port {end['port']})" for end in circuit["ends"]),
         ", ".join(dict.fromkeys(end["device"] for end in circuit["ends"])),
         str(sum(len(part["pucs"]) for part in circuit["segments"]) or "-"), _db(circuit.get("loss_db")),
         _dbm(circuit.get("expected_rx_dbm")))
        for what, key in (("removed" if stands else "to remove", "remove"), ("added" if stands else "to add", "add"))
        for circuit in circuits.get(key, ())
    ]  # fmt: skip
    if rows or circuits.get("keep"):
        yield from ("", "## Circuits", "")
        yield from _table(("", "Circuit", "Ends", "Device", "PUCs", "Loss", "Expected power"), rows)
        yield from ("", f"{len(circuits.get('keep', ()))} others on the same devices were left unchanged.")


def _steps(steps: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield from ("", "## Steps", "")
    rows = [
        (str(s["id"]), s["title"], s.get("at", "-"), _seconds(s.get("seconds")), _outcome(s.get("outcome")))
        for s in steps
    ]
    yield from _table(("", "Step", "Begun", "Seconds", "Outcome"), rows)


def _proofs(steps: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    proofs = [proof for s in steps for proof in (s.get("outcome") or {}).get("proofs", ())]
    if proofs:
        told = dict.fromkeys(key for proof in proofs for key in proof)
        keys = sorted(told, key=lambda key: _PROOF.index(key) if key in _PROOF else len(_PROOF))
        yield from ("", "## Light that was proved", "")
        yield from _table(
            [key.replace("_", " ") for key in keys], [[str(p.get(key, "-")) for key in keys] for p in proofs]
        )


def _aimed(recorded: Mapping[str, Any]) -> str:
    return f" --target {recorded['target']}"


def _undo(document: Mapping[str, Any], later: LaterRuns | None) -> Iterator[str]:
    recorded = document["recorded"]
    yield from ("", "## How to undo it", "")
    aimed = _aimed(recorded)
    if recorded["outcome"] in _NOT_STANDING:
        yield "None of its changes is in effect: there is nothing to undo."
    elif recorded.get("undone_by"):
        yield f"{recorded['undone_by']} rolled it back."
    elif later is not None:
        yield f"Later runs have changed the same devices or jobs: {later.undo}"
    elif recorded.get("kind") == "ack":
        yield f"`lumctl health ack COMPONENT --clear{aimed}`"
    elif recorded.get("kind") == "policy":
        yield "It recorded a change made elsewhere: edit `policies:` in the inventory, or see `lumctl autopilot`."
    elif recorded.get("kind") == "maintain":
        yield f"`lumctl health maintain COMPONENT --end{aimed}`"
    elif any(change[1] is None for s in document["steps"] for change in s["data"].get("changes", ())):
        yield "The earlier states of its cells were unknown: it cannot be undone."
        yield f"`lumctl fabric apply{aimed}` programs them again."
    else:
        yield f"`lumctl swap rollback {document['id']}{aimed}`"


def _intended(document: Mapping[str, Any]) -> Iterator[str]:
    yield from (f"# {_plain(document['title'])}", "", "Every step is planned again when it is executed.", "")
    parameters = document.get("parameters") or {}
    if parameters:
        rows = [(name, p.get("what", ""), str(p.get("default", "must be given"))) for name, p in parameters.items()]
        yield from _table(("Parameter", "What", "Default"), rows)
        yield ""
    for number, intent in enumerate(document["intents"], start=1):
        said = ", ".join(f"{key} {value}" for key, value in intent.items() if key != "do")
        yield f"{number}. {intent['do']}: {_plain(said)}"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield f"|{'|'.join(' --- ' for _ in heads)}|"
    yield from (f"| {' | '.join(_plain(cell) for cell in row)} |" for row in rows)


def _plain(text: Any) -> str:
    """Text that stays one cell of a table, whatever it contains."""
    return str(text).replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")


def _outcome(outcome: Mapping[str, Any] | None) -> str:
    if outcome is None:
        return "not reached"
    if "failed" in outcome:
        return f"failed: {outcome['failed']}"
    return "done"


def _db(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f} dB"


def _dbm(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f} dBm"


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"

"""What a plan starts from: who runs where, and what the devices hold that it writes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lumctl.devices.types import PucState

PUC_MARKS = frozenset(str(state) for state in PucState)


@dataclass(frozen=True, slots=True)
class Start:
    """What the rack was when the plan was made: assignment by job, and what the devices held that it writes.

    Of a mesh the PUCs in cross (the rest are bar), of a switch the egress port of each ingress port. A device whose
    states were not known is left out: the plan then writes every one of its cells.
    """

    assignment: Mapping[str, tuple[str, ...]]
    crosses: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    joins: Mapping[str, Mapping[int, str]] = field(default_factory=dict)

    def cells(self, device: str, own: Iterable[int]) -> dict[int, str] | None:
        """What a device held, by the number of each of its own cells; ``None`` where the plan does not say."""
        if device in self.joins:
            return dict(self.joins[device])
        if device not in self.crosses:
            return None
        crosses = set(self.crosses[device])
        return {puc: str(PucState.CROSS if puc in crosses else PucState.BAR) for puc in own}

    @classmethod
    def of(cls, assignment: Mapping[str, tuple[str, ...]], cells: Mapping[str, Mapping[int, str]]) -> "Start":
        """From what each device holds, by the numbers of its cells."""
        meshes = {device for device, held in cells.items() if set(held.values()) <= PUC_MARKS}
        return cls(
            assignment,
            {d: tuple(p for p, mark in sorted(cells[d].items()) if mark == PucState.CROSS) for d in meshes},
            {device: dict(sorted(held.items())) for device, held in cells.items() if device not in meshes},
        )

    def to_document(self) -> dict[str, Any]:
        """As plans and runbooks write it."""
        document: dict[str, Any] = {
            "assignment": {job: list(ranks) for job, ranks in self.assignment.items()},
            "crosses": {device: list(pucs) for device, pucs in self.crosses.items()},
        }
        if self.joins:
            document["joins"] = {device: [list(join) for join in joins.items()] for device, joins in self.joins.items()}
        return document

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> "Start":
        """Read it back."""
        joins = document.get("joins", {})
        return cls(
            {str(job): tuple(ranks) for job, ranks in document["assignment"].items()},
            {str(device): tuple(sorted(int(puc) for puc in pucs)) for device, pucs in document["crosses"].items()},
            {str(device): {int(port): str(to) for port, to in pairs} for device, pairs in joins.items()},
        )

"""The known state of a rack's fabric: where each job runs, and the last proved states of each device."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, Row, bindparam, delete, insert, select

from lumctl.devices.types import PucState
from lumctl.store.rack_rows import RackRows
from lumctl.store.schema import assignment, device_states, devices

_SAME = (devices.c.rack == device_states.c.rack) & (devices.c.device == device_states.c.device)
_CELLS = (
    select(device_states.c.puc, device_states.c.state)
    .join(devices, _SAME)
    .where(device_states.c.device == bindparam("of_device"), devices.c.certain == 1)
)
_CELLS_OF_RACK = _CELLS.where(device_states.c.rack == bindparam("of_rack"))
_RANKS = select(assignment).order_by(assignment.c.job, assignment.c.rank)
_RANKS_OF_RACK = _RANKS.where(assignment.c.rack == bindparam("of_rack"))
_DEVICE = select(devices).where(devices.c.device == bindparam("of_device"))
_DEVICE_OF_RACK = _DEVICE.where(devices.c.rack == bindparam("of_rack"))
_FORGET_STATES = delete(device_states).where(
    device_states.c.rack == bindparam("of_rack"), device_states.c.device == bindparam("of_device")
)
_KEEP_STATES = insert(device_states)
_FORGET_RANKS = delete(assignment).where(
    assignment.c.rack == bindparam("of_rack"), assignment.c.job == bindparam("of_job")
)
_KEEP_RANKS = insert(assignment)
_FORGET_DEVICE = delete(devices).where(
    devices.c.rack == bindparam("of_rack"), devices.c.device == bindparam("of_device")
)
_KEEP_DEVICE = insert(devices)
"""Made once: to make a statement takes longer than to execute it."""


class KnownFabric:
    """The assignment and the device states that runs have proved. Reading never waits for a writer."""

    def __init__(self, rows: RackRows) -> None:
        self._rows = rows

    def assignment(self) -> dict[str, tuple[str, ...]]:
        """Accelerators of each job by rank, for jobs that a run has placed."""
        return dict(self._rows.known.get("assignment", self._placed))

    def _placed(self, connection: Connection) -> Mapping[str, tuple[str, ...]]:
        placed: dict[str, list[str]] = {}
        ranks = _RANKS_OF_RACK if self._rows.rack else _RANKS
        for row in connection.execute(ranks, {"of_rack": self._rows.rack}):
            placed.setdefault(row.job, []).append(row.accelerator)
        return {job: tuple(accelerators) for job, accelerators in placed.items()}

    def device_cells(self, device: str) -> dict[int, str]:
        """The last proved states of a device, by PUC or ingress port; empty if they are uncertain."""
        cells = _CELLS_OF_RACK if self._rows.rack else _CELLS
        which = {"of_device": device, "of_rack": self._rows.rack}
        return dict(self._rows.known.get(("cells", device), lambda c: dict(c.execute(cells, which).all())))

    def device_states(self, device: str) -> dict[int, PucState]:
        """The states that a mesh was last proved to hold; empty if they are uncertain."""
        return {puc: PucState(state) for puc, state in self.device_cells(device).items()}

    def uncertain_since(self, device: str) -> str | None:
        """The run that left a device uncertain, or ``None`` if it is certain or was never written."""
        row = self._written(device)
        return row.run if row is not None and not row.certain else None

    def last_written_by(self, device: str) -> str | None:
        """The run that last wrote a device, or ``None`` if none ever did."""
        row = self._written(device)
        return None if row is None else str(row.run)

    def _written(self, device: str) -> Row[Any] | None:
        def ask(connection: Connection) -> Row[Any] | None:
            written = _DEVICE_OF_RACK if self._rows.rack else _DEVICE
            return connection.execute(written, {"of_device": device, "of_rack": self._rows.rack}).first()

        return self._rows.known.get(("device", device), ask)


def make_certain(
    connection: Connection,
    rack: str,
    run: str,
    states: Mapping[str, Mapping[int, str]],
    placed: Mapping[str, tuple[str, ...]],
) -> None:
    """Store the results of a run's proof, inside the caller's transaction: states of devices, and the ranks of jobs."""
    for device, pucs in states.items():
        mark_device(connection, rack, device, run, certain=True)
        connection.execute(_FORGET_STATES, {"of_rack": rack, "of_device": device})
        one = {"rack": rack, "device": device}
        rows = [{**one, "puc": puc, "state": str(state)} for puc, state in sorted(pucs.items())]
        if rows:  # a switch that no lane of the inventory meets has no cells of its own
            connection.execute(_KEEP_STATES, rows)
    for job, accelerators in placed.items():
        connection.execute(_FORGET_RANKS, {"of_rack": rack, "of_job": job})
        ranks = [
            {"rack": rack, "job": job, "rank": rank, "accelerator": accelerator, "run": run}
            for rank, accelerator in enumerate(accelerators)
        ]
        if ranks:  # an order of lanes that is as written again has none
            connection.execute(_KEEP_RANKS, ranks)


def mark_device(connection: Connection, rack: str, device: str, run: str, *, certain: bool) -> None:
    """Store whether the states of a device are certain, and which run wrote it last."""
    connection.execute(_FORGET_DEVICE, {"of_rack": rack, "of_device": device})
    connection.execute(_KEEP_DEVICE, {"rack": rack, "device": device, "certain": int(certain), "run": run})

"""What is known of a rack's fabric: who runs where, and what each device was last proved to hold."""

from collections.abc import Mapping

from sqlalchemy import Connection, bindparam, delete, insert, select

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
"""Made once: a run asks for them again and again, and to make them takes longer than to answer them."""


class KnownFabric:
    """Answers from what runs have proved. Reading never waits for a writer."""

    def __init__(self, rows: RackRows) -> None:
        self._rows = rows

    def assignment(self) -> dict[str, tuple[str, ...]]:
        """Accelerators of each job by rank, for jobs that a run has placed."""
        with self._rows.engine.connect() as connection:
            placed: dict[str, list[str]] = {}
            mine = select(assignment).where(self._rows.of(assignment))
            for row in connection.execute(mine.order_by(assignment.c.job, assignment.c.rank)):
                placed.setdefault(row.job, []).append(row.accelerator)
        return {job: tuple(accelerators) for job, accelerators in placed.items()}

    def device_cells(self, device: str) -> dict[int, str]:
        """What a device was last proved to hold, by PUC or ingress port; empty when that is not certain."""
        with self._rows.engine.connect() as connection:
            cells = _CELLS_OF_RACK if self._rows.rack else _CELLS
            return dict(connection.execute(cells, {"of_device": device, "of_rack": self._rows.rack}).all())

    def device_states(self, device: str) -> dict[int, PucState]:
        """What a mesh was last proved to hold; empty when that is not certain."""
        return {puc: PucState(state) for puc, state in self.device_cells(device).items()}

    def uncertain_since(self, device: str) -> str | None:
        """The run that left a device uncertain, or ``None`` if it is certain or was never written."""
        with self._rows.engine.connect() as connection:
            row = connection.execute(select(devices).where(devices.c.device == device, self._rows.of(devices))).first()
        return row.run if row is not None and not row.certain else None

    def last_written_by(self, device: str) -> str | None:
        """The run that last wrote a device, or ``None`` if none ever did."""
        with self._rows.engine.connect() as connection:
            mine = (devices.c.device == device, self._rows.of(devices))
            return connection.execute(select(devices.c.run).where(*mine)).scalar()


def make_certain(
    connection: Connection,
    rack: str,
    run: str,
    states: Mapping[str, Mapping[int, str]],
    placed: Mapping[str, tuple[str, ...]],
) -> None:
    """Keep what a run has proved, inside the caller's transaction: states of devices, and the ranks of jobs."""
    for device, pucs in states.items():
        mark_device(connection, rack, device, run, certain=True)
        of_it = (device_states.c.rack == rack, device_states.c.device == device)
        connection.execute(delete(device_states).where(*of_it))
        one = {"rack": rack, "device": device}
        rows = [{**one, "puc": puc, "state": str(state)} for puc, state in sorted(pucs.items())]
        if rows:  # a switch that no lane of the inventory meets has no cells of its own
            connection.execute(insert(device_states), rows)
    for job, accelerators in placed.items():
        of_it = (assignment.c.rack == rack, assignment.c.job == job)
        connection.execute(delete(assignment).where(*of_it))
        ranks = [
            {"rack": rack, "job": job, "rank": rank, "accelerator": accelerator, "run": run}
            for rank, accelerator in enumerate(accelerators)
        ]
        if ranks:  # an order of lanes that is as written again has none
            connection.execute(insert(assignment), ranks)


def mark_device(connection: Connection, rack: str, device: str, run: str, *, certain: bool) -> None:
    """Keep whether it is certain what a device holds, and which run wrote it last."""
    connection.execute(delete(devices).where(devices.c.rack == rack, devices.c.device == device))
    connection.execute(insert(devices).values(rack=rack, device=device, certain=int(certain), run=run))

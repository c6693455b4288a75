"""One rack's store: leases, runs, journal, approvals, demands, health, readings, and the known state of its fabric."""

from pathlib import Path

from sqlalchemy import Connection, Engine, select

from lumctl.store import verification
from lumctl.store.actions import Actions
from lumctl.store.approvals import Approvals
from lumctl.store.demands import Demands
from lumctl.store.fabric import KnownFabric
from lumctl.store.health import HealthRecord
from lumctl.store.journal import Break, Head, Journal
from lumctl.store.leases import Leases
from lumctl.store.rack_rows import CommitCounter, RackRows
from lumctl.store.readings import Readings
from lumctl.store.runs import Runs
from lumctl.store.schema import journal as entries
from lumctl.store.schema import runs
from lumctl.store.verification import Digest


class Store:
    """The store of one rack, or of all racks in its database if ``rack`` is empty.

    Reading never waits for a writer; every write is one synced transaction.
    """

    def __init__(self, engine: Engine, files: Path, rack: str = "", place: str = "") -> None:
        # postgres.hold takes the lock of one rack, and knows only the engine's options.
        self._engine = engine.execution_options(rack=rack)
        self._rack = rack
        self.files = files
        """The folder for files that belong to the store, such as exported runbooks."""
        self.place = place
        """The folder or database URL of the store, so that another process can open it; may hold a password."""
        self._commits = CommitCounter(self._engine)
        rows = RackRows(self._engine, rack, self._commits)
        self.leases = Leases(rows, files)
        self.runs = Runs(rows, files)
        self.journal = Journal(rows)
        self.fabric = KnownFabric(rows)
        self.actions = Actions(rows)
        self.approvals = Approvals(rows)
        self.demands = Demands(rows)
        self.health = HealthRecord(rows)
        self.readings = Readings(rows)

    @property
    def unwritable(self) -> str | None:
        """Why nothing can be written, if that was known when the store was opened; the store can still be read."""
        reason: str | None = self._engine.get_execution_options().get("unwritable")
        return reason

    def other_racks(self) -> set[str]:
        """The other racks whose runs the store contains; empty if it has a run of its own rack."""
        with self._engine.connect() as connection:
            if connection.execute(select(runs.c.id).where(runs.c.rack == self._rack).limit(1)).first() is not None:
                return set()
            return set(connection.execute(select(runs.c.rack).distinct()).scalars()) - {"", self._rack}

    def mark(self) -> int | None:
        """A value that changes with every write to the store; ``None`` if only reading the store shows changes."""
        return self._commits.mark()

    def first_break(self) -> Break | None:
        """Where the journal's chain is broken, if anywhere."""
        with self._engine.connect() as connection:
            for rack in self._racks(connection):
                if (found := verification.first_break(connection, rack)) is not None:
                    return found
        return None

    def verify(self, digest: Digest, head: Head | None = None) -> tuple[Break, ...]:
        """Every place at which the journal, a run, a plan or the lease differs from what was written.

        ``digest`` computes the digest of a plan's document; ``head`` is an earlier exported head of the journal.
        """
        with self._engine.connect() as connection:
            racks = self._racks(connection) if head is None else [head.rack]
            return tuple(found for rack in racks for found in verification.verify(connection, rack, digest, head))

    def _racks(self, connection: Connection) -> list[str]:
        """The racks whose journals this store covers."""
        if self._rack:
            return [self._rack]
        return sorted(connection.execute(select(entries.c.rack).distinct()).scalars())

    def close(self) -> None:
        """Close the database connections."""
        self._commits.close()
        self._engine.dispose()

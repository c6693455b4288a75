"""The rows of one rack: racks may share a database."""

from sqlalchemy import ColumnElement, Engine, Table, true


class RackRows:
    """A database, of which one rack's rows are meant; all rows where ``rack`` is empty."""

    def __init__(self, engine: Engine, rack: str) -> None:
        self.engine = engine
        self.rack = rack

    def of(self, table: Table) -> ColumnElement[bool]:
        """The condition that a row belongs to the rack."""
        return table.c.rack == self.rack if self.rack else true()

"""Columns that several panes have."""

from lumctl.tui.panes.rows import AGE, Column

# Texts without a bound stand last: whatever their length, the age is in sight.
STATE = Column("state", "STATE", 10)
AGE_OF_READING = Column(AGE, "AGE", 5, right=True)
FOR = Column(AGE, "FOR", 5, right=True)
AGO = Column(AGE, "AGO", 5, right=True)

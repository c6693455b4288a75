"""The rules of the contract as tests of a class."""

from typing import ClassVar

from lumctl.fleet.probe_api import AcceleratorProbe
from lumctl.fleet.testing.contract import RULES, broken_by


class ProbeContract:
    """Every rule that a probe must keep. A subclass names its ``probe``."""

    probe: ClassVar[type[AcceleratorProbe]]

    def test_declaration(self) -> None:
        """It declares what it is, and on what it was proven."""
        self._keeps("declaration")

    def test_times(self) -> None:
        """Readings do not grow too old."""
        self._keeps("times")

    def test_rules(self) -> None:
        """Its rules are right."""
        self._keeps("rules")

    def test_fixtures(self) -> None:
        """Its fixtures give what they state."""
        self._keeps("fixtures")

    def test_units(self) -> None:
        """Readings are in their units."""
        self._keeps("units")

    def test_purity(self) -> None:
        """The same outputs give the same readings."""
        self._keeps("purity")

    def test_nonsense(self) -> None:
        """What is not understood is never ok."""
        self._keeps("nonsense")

    def test_cut(self) -> None:
        """A cut answer is never ok for a bad accelerator."""
        self._keeps("cut")

    def test_dropped_lines(self) -> None:
        """Nor is an answer that lacks a line."""
        self._keeps("dropped-lines")

    def test_damage(self) -> None:
        """Nor is a damaged one."""
        self._keeps("damage")

    def _keeps(self, rule: str) -> None:
        broken = broken_by(self.probe, rule)
        assert not broken, f"{RULES[rule][0]}: {broken}"

"""The contract of probes as a test suite: subclass it, name your probe, and run it with pytest.

    class TestMyProbe(ProbeContract):
        probe = MyProbe

It needs no host. It reads the fixtures of the probe, compares readings and verdicts with the expected ones, and then
damages the fixtures in many ways. See lumctl-probe(7).
"""

from typing import ClassVar

from lumctl.fleet.probe_api import AcceleratorProbe
from lumctl.fleet.testing.contract import RULES, RuleResult, broken_by, check_probe

__all__ = ["RULES", "ProbeContract", "RuleResult", "check_probe"]


class ProbeContract:
    """Every rule that a probe must keep. A subclass names its ``probe``."""

    probe: ClassVar[type[AcceleratorProbe]]

    def test_declaration(self) -> None:
        """Its declarations are valid, and state what it was tested on."""
        self._keeps("declaration")

    def test_times(self) -> None:
        """Readings stay recent enough."""
        self._keeps("times")

    def test_rules(self) -> None:
        """Its rules are valid."""
        self._keeps("rules")

    def test_fixtures(self) -> None:
        """Its fixtures give the expected readings and verdicts."""
        self._keeps("fixtures")

    def test_units(self) -> None:
        """Readings are in their units."""
        self._keeps("units")

    def test_purity(self) -> None:
        """The same outputs give the same readings."""
        self._keeps("purity")

    def test_nonsense(self) -> None:
        """An answer that cannot be parsed is never ok."""
        self._keeps("nonsense")

    def test_cut(self) -> None:
        """A truncated answer never makes a bad accelerator ok."""
        self._keeps("cut")

    def test_dropped_lines(self) -> None:
        """An answer that lacks a line never makes a bad accelerator ok."""
        self._keeps("dropped-lines")

    def test_damage(self) -> None:
        """A damaged answer never makes a bad accelerator ok."""
        self._keeps("damage")

    def _keeps(self, rule: str) -> None:
        broken = broken_by(self.probe, rule)
        assert not broken, f"{RULES[rule][0]}: {broken}"

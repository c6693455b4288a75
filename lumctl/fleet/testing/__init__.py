"""The contract of probes as a test suite: subclass it, name your probe, and run it with pytest.

    class TestMyProbe(ProbeContract):
        probe = MyProbe

It needs no host: it reads the fixtures of the probe, compares readings and verdicts with what they state, and damages
them in many ways. See lumctl-probe(7).
"""

from lumctl.fleet.testing.contract import RULES, RuleResult, check_probe
from lumctl.fleet.testing.suite import ProbeContract

__all__ = ["RULES", "ProbeContract", "RuleResult", "check_probe"]

"""The contract of lumctl's probes on this one: subclass the suite and name the probe."""

from lumctl_example_probe import ExampleProbe

from lumctl.fleet.testing import ProbeContract


class TestExampleProbe(ProbeContract):
    """Every rule of the contract."""

    probe = ExampleProbe

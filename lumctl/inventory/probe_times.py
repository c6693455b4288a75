"""The default cadence and time limit of each kind of probe."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class ProbeTimes:
    """The seconds between two runs of a probe (0: every tick), and the seconds within which it must answer."""

    every_s: float
    deadline_s: float


READ_RARELY = frozenset(
    {"nvlink", "mounts", "disks", "clock", "crashes", "fabric_log", "services", "capacity", "adapters"}
)
"""Kinds of probes whose readings may be older than the usual limit, by the time between two runs."""
PROBE_TIMES: Mapping[str, ProbeTimes] = MappingProxyType(
    {
        "gpu": ProbeTimes(10.0, 5.0),
        "nvlink": ProbeTimes(30.0, 5.0),
        "kernel": ProbeTimes(0.0, 3.0),
        "net": ProbeTimes(0.0, 3.0),
        "infiniband": ProbeTimes(0.0, 3.0),
        "mounts": ProbeTimes(60.0, 5.0),
        "disks": ProbeTimes(60.0, 5.0),
        "clock": ProbeTimes(60.0, 3.0),
        "crashes": ProbeTimes(600.0, 5.0),
        "fabric_log": ProbeTimes(60.0, 5.0),
        "services": ProbeTimes(60.0, 5.0),
        "capacity": ProbeTimes(600.0, 3.0),
        "adapters": ProbeTimes(600.0, 3.0),
        "counters": ProbeTimes(5.0, 3.0),
        "lldp": ProbeTimes(5.0, 3.0),
        "optics": ProbeTimes(10.0, 3.0),
        "dcgm": ProbeTimes(10.0, 5.0),
        "node": ProbeTimes(10.0, 5.0),
        "amd": ProbeTimes(10.0, 5.0),
        "gpud": ProbeTimes(10.0, 5.0),
    }
)
"""The times of each kind of probe: the part of a probe's name before the colon.

Values that change rarely are read rarely. A full answer of nvidia-smi takes driver locks that jobs also need, and
reading an optical module occupies its slow bus.
"""

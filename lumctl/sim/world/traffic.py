"""``/sys/class/net/*/statistics`` of a simulated interface: counters that grow at a steady rate and count no error."""

import random
from functools import lru_cache

COUNTERS = (
    "collisions",
    "multicast",
    "rx_bytes",
    "rx_compressed",
    "rx_crc_errors",
    "rx_dropped",
    "rx_errors",
    "rx_fifo_errors",
    "rx_frame_errors",
    "rx_length_errors",
    "rx_missed_errors",
    "rx_nohandler",
    "rx_over_errors",
    "rx_packets",
    "tx_aborted_errors",
    "tx_bytes",
    "tx_carrier_errors",
    "tx_compressed",
    "tx_dropped",
    "tx_errors",
    "tx_fifo_errors",
    "tx_heartbeat_errors",
    "tx_packets",
    "tx_window_errors",
)
_LEAST_SHARE, _MOST_SHARE = 0.05, 0.45
_BYTES_PER_PACKET = 4096
_MULTICAST_EVERY_S = 30.0


def counted(counter: str, source: str, *, speed_mbps: int, carried_s: float) -> int:
    """One counter of an interface after ``carried_s`` seconds with carrier. ``source`` decides how busy it is."""
    if counter == "multicast":
        return int(carried_s / _MULTICAST_EVERY_S)
    way, _, unit = counter.partition("_")
    if unit not in {"bytes", "packets"}:
        return 0
    carried = int(speed_mbps * 1e6 / 8 * _share(f"{source}/{way}") * carried_s)
    return carried if unit == "bytes" else carried // _BYTES_PER_PACKET


@lru_cache(maxsize=8192)
def _share(source: str) -> float:
    # Not cryptography: a rate that repeats with its source is the point.
    return random.Random(source).uniform(_LEAST_SHARE, _MOST_SHARE)  # noqa: S311

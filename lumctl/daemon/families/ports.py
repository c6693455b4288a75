"""What the ports of links have counted: traffic, errors, and what tells of congestion."""

from collections.abc import Iterator

from prometheus_client.core import Metric

from lumctl.daemon.families.making import counter
from lumctl.daemon.families.readable import Readable

_WORD_BYTES = 4
"""InfiniBand counts its data in words."""
_TRAFFIC: tuple[tuple[str, str, tuple[tuple[str, int], ...]], ...] = (
    ("receive_bytes", "Bytes that a port of a link received.", (("rx_bytes", 1), ("port_rcv_data", _WORD_BYTES))),
    ("transmit_bytes", "Bytes that a port of a link sent.", (("tx_bytes", 1), ("port_xmit_data", _WORD_BYTES))),
)
_ERRORS = frozenset(
    {
        "rx_errors",
        "tx_errors",
        "rx_dropped",
        "tx_dropped",
        "rx_crc_errors",
        "link_downed",
        "link_error_recovery",
        "symbol_error",
        "local_link_integrity_errors",
        "excessive_buffer_overrun_errors",
        "port_rcv_errors",
        "port_rcv_remote_physical_errors",
        "port_xmit_discards",
        "out_of_sequence",
        "packet_seq_err",
        "local_ack_timeout_err",
        "rnr_nak_retry_err",
        "rx_icrc_encapsulated",
    }
)
_CONGESTION = frozenset(
    {
        "port_xmit_wait",
        "out_of_buffer",
        "roce_adp_retrans",
        "roce_slow_restart",
        "np_cnp_sent",
        "rp_cnp_handled",
    }
)
"""The other counters that are read are parts of these, or are told by ``link_carrier_changes``."""


def ports(readable: Readable) -> Iterator[Metric]:
    """Traffic in base units; the rest under the kernel's own names."""
    target = readable.target
    counted = list(readable.ports())
    for name, text, sources in _TRAFFIC:
        family = counter(f"link_{name}", text, ["id", "port"])
        for lane, port in counted:
            for source, unit in sources:
                if source in port.values:
                    family.add_metric([target, lane.id, port.name], port.values[source] * unit)
        yield family
    kinds = (
        ("errors", "Errors that a port of a link counted, by the kernel's name of the counter.", _ERRORS),
        ("congestion_events", "Signs of congestion that a port of a link counted, likewise.", _CONGESTION),
    )
    for name, text, names in kinds:
        family = counter(f"link_{name}", text, ["id", "port", "counter"])
        for lane, port in counted:
            for source, value in port.values.items():
                if source in names:
                    family.add_metric([target, lane.id, port.name, source], value)
        yield family

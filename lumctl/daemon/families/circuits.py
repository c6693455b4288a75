"""Circuits: the light that arrives, and what its way should take from it."""

from collections.abc import Iterator

from prometheus_client.core import Metric

from lumctl.daemon.families.making import gauge
from lumctl.site.observation import Observation


def circuits(look: Observation) -> Iterator[Metric]:
    """What health has read at the ends of each circuit."""
    text = "Light received at one end of a circuit; -Inf is no light."
    power = gauge("circuit_rx_power_dbm", text, ["circuit", "lane"])
    loss = gauge("circuit_expected_loss_db", "Loss that a circuit's route should have.", ["circuit"])
    for circuit in look.report.circuits.values():
        for end in circuit.ends:
            if end.rx_power_dbm is not None:
                power.add_metric([look.target, circuit.id, end.transponder], end.rx_power_dbm)
        if circuit.loss_db is not None:
            loss.add_metric([look.target, circuit.id], circuit.loss_db)
    yield power
    yield loss

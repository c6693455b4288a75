"""The driver: a REST controller that numbers ports from 1, changes joins in the background, and has no revert timer.

Its API, made up, JSON over HTTPS. Ports 1 to ``inputs`` are inputs, the others outputs:

    GET  /v1/system   {"model": "X16", "ports": 16, "inputs": 8}
    GET  /v1/joins    {"busy": false, "joins": [{"in": 1, "out": 9}]}
    POST /v1/changes  {"remove": [{"in": 1, "out": 9}], "add": []}, answered by 202 {"id": 7}: made later, or not at all
    GET  /v1/changes/7  {"failed": ""}: why it was not made
    GET  /v1/powers   {"milliwatts": [0.5, 0.0, ...]}: the power that enters or leaves at each port
"""

import math
import time
from collections.abc import Mapping
from typing import Any, ClassVar

from lumctl.devices.base import BaseSwitch
from lumctl.devices.errors import (
    DeviceBusyError,
    DeviceUnreachableError,
    InconsistentError,
    UnsupportedError,
    after_sending,
)
from lumctl.devices.http import HttpClient, one_line
from lumctl.devices.joins import JoinPlan, difference, judge, plan, ports_of
from lumctl.devices.protocols import DriverContext
from lumctl.devices.types import Capability, JoinChange, Receipt, Staged

POLL_S = 0.02
LEAST_DBM = -60.0
"""Less power than the controller's monitors can distinguish from darkness."""


class ExampleSwitch(BaseSwitch):
    """One switch of Example & Co. The base class refuses calls that are not declared here."""

    api_version: ClassVar[int] = 1
    capabilities: ClassVar[frozenset[Capability]] = frozenset({Capability.ATOMIC, Capability.READ_POWERS})
    proven: ClassVar[str] = "twin; not run on hardware"

    def __init__(self, context: DriverContext) -> None:
        """Remember the context; nothing is contacted before the first call."""
        super().__init__(context)
        self._ports = ports_of(context)
        self._http = HttpClient(context)

    def identify(self) -> str:
        """Say the model; the size must be the inventory's."""
        system = self._asked("/v1/system")
        size, wanted = (system.get("ports"), system.get("inputs")), (self._ports.port_count, self._ports.input_count)
        if size != wanted:
            raise InconsistentError(
                f"{self.context.device} has (ports, inputs) {size}, but the inventory states {wanted}"
            )
        return one_line(f"{system.get('model')}, {size[0]} ports")

    def read_circuits(self) -> dict[int, int]:
        """Every join; a switch that is at work on a change is waited for."""
        with self._http.call():
            return self._held()

    def stage(self, joins: Mapping[int, int | None]) -> Staged[JoinChange]:
        """Check a change against the joins of the switch."""
        return Staged(plan(self._ports, self.read_circuits(), joins).changes, "")

    def compare(self, staged: Staged[JoinChange]) -> tuple[JoinChange, ...]:
        """Read the switch: the difference that a commit would make now."""
        return difference(self.read_circuits(), staged.changes)

    def commit(self, staged: Staged[JoinChange], *, revert_after_s: float | None = None) -> Receipt[JoinChange]:
        """Write a change and wait until the switch has done it."""
        if revert_after_s is not None:
            raise UnsupportedError(f"{self.context.device} has no revert timer")
        self._write({change.ingress: change.after for change in staged.changes})
        return Receipt(staged, revert_armed=False)

    def confirm(self, receipt: Receipt[JoinChange]) -> None:
        """Do nothing: no timer is ever armed."""

    def roll_back(self, receipt: Receipt[JoinChange]) -> None:
        """Write the earlier joins."""
        self._write({change.ingress: change.before for change in receipt.staged.changes})

    def read_powers(self, ports: tuple[int, ...]) -> dict[int, float]:
        """The powers at the monitors, in dBm."""
        self._ports.require(ports)
        values = self._asked("/v1/powers").get("milliwatts")
        if not isinstance(values, list) or len(values) != self._ports.port_count:
            raise self._strange("/v1/powers")
        return {port: self._dbm(values[port]) for port in ports}

    def close(self) -> None:
        """Hang up."""
        self._http.close()

    def _write(self, wanted: Mapping[int, int | None]) -> None:
        with self._http.call():
            before = self._held()
            planned = plan(self._ports, before, wanted)
            if not planned.remove and not planned.add:
                return
            answer = self._http.send("POST", "/v1/changes", _document(planned))
            with after_sending():  # from here on, no error means that nothing changed
                after = self._held()
                failed = self._asked(f"/v1/changes/{_number(answer.json())}").get("failed")
                judge(self._ports, planned.changes, before, after, one_line(str(failed or "")))

    def _held(self) -> dict[int, int]:
        """Every join, once the switch has finished: its joins before that are provisional."""
        while (document := self._asked("/v1/joins")).get("busy") is not False:
            if self._http.left_s() < POLL_S:
                raise DeviceBusyError(f"{self.context.device} is working on a change")
            time.sleep(POLL_S)
        joins = document.get("joins")
        if not isinstance(joins, list):
            raise self._strange("/v1/joins")
        return {self._port(join, "in"): self._port(join, "out") for join in joins}

    def _asked(self, path: str) -> dict[str, Any]:
        document = self._http.get_json(path)
        if not isinstance(document, dict):
            raise self._strange(path)
        return document

    def _port(self, join: Any, key: str) -> int:
        """Our number, from 0, for the device's, from 1."""
        port = join.get(key) if isinstance(join, dict) else None
        if type(port) is not int or not 1 <= port <= self._ports.port_count:
            raise self._strange("/v1/joins")
        return port - 1

    def _dbm(self, milliwatts: Any) -> float:
        if isinstance(milliwatts, bool) or not isinstance(milliwatts, int | float) or not 0 <= milliwatts < math.inf:
            raise self._strange("/v1/powers")
        dbm = 10 * math.log10(milliwatts) if milliwatts > 0 else -math.inf
        return dbm if dbm >= LEAST_DBM else -math.inf

    def _strange(self, path: str) -> DeviceUnreachableError:
        return DeviceUnreachableError(f"{self.context.device}: the program at {path} does not have its API")


def _document(planned: JoinPlan) -> dict[str, list[dict[str, int]]]:
    pairs = {"remove": planned.remove, "add": planned.add}
    return {verb: [{"in": a + 1, "out": b + 1} for a, b in joins] for verb, joins in pairs.items()}


def _number(accepted: Any) -> int:
    found = accepted.get("id") if isinstance(accepted, dict) else None
    if type(found) is not int:
        raise DeviceUnreachableError("the change was accepted but has no number")
    return found

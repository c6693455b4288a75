"""lumctl itself, through what the rest of lumctl uses: a fleet whose hosts have one probe, and ``collect``.

This is the one place that knows lumctl; the harness asks it for the program of the loop as well.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from contender import Settings, serve

from lumctl.cli.main import search_seldom
from lumctl.devices.endpoints import Endpoints, HostEndpoint
from lumctl.fleet.fleet import Fleet
from lumctl.fleet.loop import program
from lumctl.fleet.probe_output import Gathered, ProbeAnswer, Verdict
from lumctl.fleet.probes import Probe
from lumctl.fleet.readings import ProbeStatus
from lumctl.inventory.model import Host, Inventory, Rack, SshSettings, Thresholds

_DEADLINE_S = 60.0
_CONNECT_S = 60.0


class Lumctl:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._hosts: tuple[str, ...] = tuple(settings["hosts"])
        self._patience_s: float | None = settings.get("patience_s")
        self._deadline_s: float = settings.get("deadline_s", _DEADLINE_S)
        self._started = 0.0
        self._answers: dict[str, str] = {}
        self._last: dict[str, str] = {}
        self.seconds: dict[str, float] = {}
        self._fleet = self._make(self._hosts)
        if not settings["variant"].startswith("cold"):
            self._fleet.collect()

    def tick(self) -> None:
        self._answers, self.seconds = {}, {}
        self._started = time.perf_counter()
        if self._patience_s is None:
            self._fleet.collect()
        else:
            self._fleet.tick(patience_s=self._patience_s)

    def cold(self, host: str) -> None:
        self._answers = {}
        self._fleet = self._make((host,))
        if self._settings["variant"] == "cold-loop":
            self._fleet.collect()
        else:
            ended = self._fleet.shell(host).run(self._settings["command"], timeout_s=_DEADLINE_S)
            self._answers[host] = ended.stdout

    def hang_up(self) -> None:
        self._fleet.close()

    def answers(self) -> Mapping[str, bytes]:
        return {host: text.encode() for host, text in self._answers.items()}

    def close(self) -> None:
        self._fleet.close()

    def _make(self, hosts: tuple[str, ...]) -> Fleet:
        said = self._settings
        ssh = {
            host: SshSettings(
                user=said["user"], port=said["ports"][host], key_file=Path(said["key"]), config_file=Path("/dev/null")
            )
            for host in hosts
        }
        known = Path(said["known_hosts"])
        inventory = Inventory(
            path=Path(said["folder"]) / "bench.yaml",
            digest="",
            racks={"bench": Rack("bench")},
            hosts={host: Host(host, "bench", host, ssh[host]) for host in hosts},
            accelerators={},
            transponders={},
            devices={},
            jobs={},
            thresholds=Thresholds(),
        )
        endpoints = Endpoints("rack", {host: HostEndpoint(host, host, ssh[host], known) for host in hosts}, {})
        return Fleet(
            inventory,
            endpoints,
            connect_timeout_s=said.get("connect_timeout_s", _CONNECT_S),
            probes_of=lambda host: (self._probe(host),),
        )

    def _probe(self, host: str) -> Probe:
        def take(answer: ProbeAnswer, _taken_at: float, _gathered: Gathered) -> Verdict:
            if answer.status != 0:
                return ProbeStatus.FAILED, f"exit status {answer.status}"
            self._last[host] = answer.text
            note()
            return ProbeStatus.OK, ""

        def again(_taken_at: float, _gathered: Gathered) -> None:
            note()

        def note() -> None:
            self.seconds[host] = time.perf_counter() - self._started
            self._answers[host] = self._last[host]

        return Probe("payload", "bench", _line(self._settings["command"]), self._deadline_s, 0.0, take, again)


@dataclass(frozen=True, slots=True)
class _Asked:
    lane: str
    command: str


def _line(command: str) -> str:
    return f"run {command}"


def loop_program(command: str) -> str:
    """What lumctl runs on a host for this probe, for those that run the very same."""
    return program((_Asked("bench", _line(command)),)).decode()


if __name__ == "__main__":
    # As the console script does.
    search_seldom()
    serve(Lumctl)

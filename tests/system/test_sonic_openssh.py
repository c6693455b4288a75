"""The SONiC driver over OpenSSH: a real sshd whose users find a scripted SONiC host, by the contract of transponders.

The host's tools are shell scripts that print recorded forms. As on SONiC, ``sfputil`` wants root, ``sudo`` gives it,
and lldpd's tools are wrappers that ask docker for those of the container.
"""

import dataclasses
import os
import socket
import subprocess
import time
from pathlib import Path

import pytest
from lumctl_sonic import SonicPort

from lumctl.devices.endpoints import Endpoints
from lumctl.devices.errors import DeviceRefusedError, DeviceUnreachableError
from lumctl.devices.protocols import DriverContext
from lumctl.devices.testing import TransponderContract, TransponderUnderTest
from lumctl.fleet.fleet import Fleet
from lumctl.inventory.load import example, load_inventory

ANSWERS = Path(__file__).parents[1] / "unit" / "sonic" / "answers"

TOOLS = {
    "sudo": """
[ "$1" = -n ] || { echo "sudo: a password is required" >&2; exit 1; }
shift
ROOT=yes exec "$@"
""",
    "sfputil": """
[ -n "$ROOT" ] || { echo "Root privileges are required for this operation"; exit 1; }
[ "$1 $2 $3 $4" = "show eeprom -d -p" ] || exit 2
[ -e "$STATE/modules/$5" ] || { printf "Error: invalid port '%s'\\n\\n" "$5"; exit 6; }
cat "$STATE/modules/$5"
""",
    "sonic-db-cli": """
[ "$1 $2" = "STATE_DB HGETALL" ] || { echo "Invalid database name input : '$1'" >&2; exit 1; }
if [ -f "$STATE/db/$3" ]; then cat "$STATE/db/$3"; else echo "{}"; fi
""",
    "docker": """
[ "$1 $2 $3" = "exec -i lldp" ] || exit 1
shift 3
PATH="$STATE/container:$PATH" exec "$@"
""",
    "lldpctl": 'docker exec -i lldp lldpctl "$@"\n',
    "lldpcli": 'docker exec -i lldp lldpcli "$@"\n',
}
IN_CONTAINER = {
    "lldpctl": '[ "$*" = "-f json" ] || exit 1\ncat "$STATE/lldp.json"\n',
    "lldpcli": 'echo "$*" >> "$STATE/announced"\n',
}


def install(folder, tools, header):
    folder.mkdir()
    for name, body in tools.items():
        (folder / name).write_text(f"#!/bin/sh\n{header}\n{body}")
        (folder / name).chmod(0o755)


@pytest.fixture(scope="module")
def state(tmp_path_factory):
    """What the scripted host answers from, and its tools."""
    folder = tmp_path_factory.mktemp("sonic")
    install(folder / "bin", TOOLS, f"STATE={folder}; export STATE")
    install(folder / "container", IN_CONTAINER, f"STATE={folder}")
    (folder / "lldp.json").write_text((ANSWERS / "lldp.json").read_text())
    for place, texts in (("modules", {"Ethernet0": "coherent.txt", "Ethernet8": "empty.txt"}), ("db", {})):
        (folder / place).mkdir()
        for name, answer in texts.items():
            text = (ANSWERS / answer).read_text().replace("Ethernet0", name)
            (folder / place / name).write_text(text)
    tables = ("TRANSCEIVER_INFO", "TRANSCEIVER_DOM_SENSOR", "TRANSCEIVER_DOM_THRESHOLD", "TRANSCEIVER_STATUS")
    for table, line in zip(tables, (ANSWERS / "tables.txt").read_text().splitlines(), strict=True):
        (folder / "db" / f"{table}|Ethernet0").write_text(f"{line}\n")
    return folder


@pytest.fixture(scope="module")
def sshd(serve_ssh, state, require_program, tmp_path_factory):
    key = tmp_path_factory.mktemp("client") / "key"
    subprocess.run([require_program("ssh-keygen"), "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    shell = state / "shell"
    shell.write_text(
        f'#!/bin/sh\nPATH={state}/bin:/usr/bin:/bin\nexport PATH\nexec /bin/sh -c "$SSH_ORIGINAL_COMMAND"\n'
    )
    shell.chmod(0o755)
    return serve_ssh(key, str(shell))


@pytest.fixture
def port(sshd):
    """Open the driver of a port, on the host or where no host answers."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        nobody = dataclasses.replace(sshd, ssh=dataclasses.replace(sshd.ssh, port=free.getsockname()[1]))
    hosts = {"s0": sshd, "s1": dataclasses.replace(nobody, host="s1")}
    inventory = load_inventory(example("prototype"))
    with Fleet(inventory, Endpoints("rack", hosts, {}), probes_of=lambda _host: ()) as fleet:
        yield lambda interface, *, host="s0", sudo=True: SonicPort(
            DriverContext(device="t1", shell=fleet.shell(host), interface=interface, sudo=sudo, now=time.time)
        )


class TestSonic(TransponderContract):
    @pytest.fixture
    def transponder(self, port, state) -> TransponderUnderTest:
        (state / "announced").write_text("")
        return TransponderUnderTest(
            driver=port("Ethernet0"),
            heard=("leaf2", "Ethernet4"),
            sent=lambda: len((state / "announced").read_text()),
            unreachable=port("Ethernet0", host="s1"),
        )


def test_the_module_itself_is_read_now(port):
    before = time.time()
    optics = port("Ethernet0").read_optics()
    assert before <= optics.taken_at <= time.time()
    assert (optics.rx_power_dbm, optics.frequency_mhz, optics.target_power_dbm) == (-8.729, 193_100_000, -8.5)


def test_without_root_the_database_is_read_with_its_own_time(port):
    driver = port("Ethernet0", sudo=False)
    assert [driver.read_optics().taken_at for _ in range(2)] == [1_795_299_307.0] * 2
    with pytest.raises(DeviceRefusedError, match="no module"):
        port("Ethernet8", sudo=False).read_optics()


def test_an_empty_port_and_one_that_is_not_there(port):
    with pytest.raises(DeviceRefusedError, match="no module is plugged into Ethernet8"):
        port("Ethernet8").read_optics()
    with pytest.raises(DeviceRefusedError, match="invalid port 'Ethernet99; reboot'"):
        port("Ethernet99; reboot").read_optics()


def test_the_mark_reaches_the_lldpd_of_the_container(port, state):
    (state / "announced").write_text("")
    port("Ethernet0").announce("0a0b")
    said = "configure lldp custom-tlv replace oui 02,6c,6d subtype 1 oui-info 0a,0b\n"
    assert (state / "announced").read_text() == said


def test_a_host_that_hangs_is_given_up(port, state):
    pipe = state / "modules" / "Ethernet16"
    os.mkfifo(pipe)
    driver = port("Ethernet16")
    driver.context = dataclasses.replace(driver.context, timeout_s=0.5)
    try:
        with pytest.raises(DeviceUnreachableError, match="could not be read"):
            driver.read_optics()
    finally:
        # Whoever still waits to read the pipe finds its end.
        os.close(os.open(pipe, os.O_RDWR))

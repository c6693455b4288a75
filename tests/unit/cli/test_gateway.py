"""``lumctl gateway``: what another user, or a gateway that is none, can do to it."""

import os
from pathlib import Path

import pytest

from lumctl.cli.gateway import _asked
from lumctl.daemon.gateway.service import gateway_server
from lumctl.devices.endpoints import GatewayEndpoint
from lumctl.inventory.files import folder_writable_by_others
from lumctl.json_lines import connect


def test_a_gateway_that_does_not_say_how_it_is_counts_as_failed(tmp_path: Path):
    place = tmp_path / "r.sock"
    greeting = {"rack": "r1", "target": "sim"}
    with gateway_server(place, greeting, lambda _request, _peer: {"answer": None}):
        row = _asked("r1", GatewayEndpoint(place), "sim", lambda _where, within_s: connect(place, within_s))
    assert (row["state"], row["problem"]) == ("failed", "it does not report what it has written")


@pytest.mark.parametrize(("mode", "named"), [(0o700, False), (0o777, True), (0o1777, False)])
def test_a_folder_in_which_others_may_replace_the_socket_is_named(tmp_path: Path, mode: int, named: bool):
    folder = tmp_path / "gw"
    folder.mkdir()
    folder.chmod(mode)
    assert folder_writable_by_others(folder) == (f"every user may write {folder}" if named else None)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
def test_nor_is_a_folder_of_another_user_passed_over(tmp_path: Path):
    folder = tmp_path / "gw"
    folder.mkdir()
    os.chown(folder, 65534, 65534)
    assert " is owned by " in (folder_writable_by_others(folder) or "")

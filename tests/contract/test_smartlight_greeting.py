"""What the line protocol's one greeting line can show, and all that it cannot."""

import socket
import threading

import pytest
from lumctl_smartlight import SmartlightMesh
from lumctl_smartlight.mesh import stated_puc_count

from lumctl.devices.errors import DeviceUnreachableError, InconsistentError, OutcomeUnknownError
from lumctl.devices.protocols import DriverContext
from lumctl.devices.types import PucChange, PucState
from lumctl.devices.ways import Direct

BAR, CROSS = PucState.BAR, PucState.CROSS


@pytest.fixture
def opened():
    """Open the driver of an eight-cell mesh that was all bar."""

    def open_at(address, timeout_s=5.0):
        return SmartlightMesh(
            DriverContext(
                device="m1",
                address=address,
                way=Direct(address),
                puc_count=8,
                timeout_s=timeout_s,
                known_states=dict.fromkeys(range(8), BAR),
            )
        )

    return open_at


@pytest.mark.parametrize(
    ("greeting", "count"),
    [
        ("m1 ready, 72 PUCs", 72),
        ("72 PUCs", 72),
        ("1 PUC", 1),
        ("mesh controller v2 (72 pucs)", 72),
        ("ready; PUCs: 72; up 3 days", 72),
        ("ready, PUCs=72.", 72),
        ("72 PUCs, 72 PUCs", 72),
        ("mesh controller ready", None),
        ("mesh controller 72 ready", None),
        ("SmartLight 7x3, firmware 2.72", None),
        ("10.0.0.72:65432 ready", None),
        ("PUC 72 ready", None),
        ("3 PUCs stuck, ready", None),
        ("failed PUCs: 3", None),
        ("ready, id-72 PUCs", None),
        ("ready, 2.72 PUCs", None),
        ("71 PUCs, 72 PUCs", None),
        ("-72 PUCs", None),
        ("99999999999999999999 PUCs", None),
        ("٧٢ PUCs", None),  # digits, and not ours
        ("", None),
    ],
)
def test_only_a_count_is_a_count(greeting, count):
    assert stated_puc_count(greeting) == count


@pytest.mark.parametrize("greeting", ["m1 ready, 72 PUCs", "PUCs: 7"])
def test_another_mesh_behind_the_address_is_told_and_never_written(opened, serve, make_twin, greeting):
    twin = make_twin(8, greeting=greeting)
    driver = opened(serve(twin))
    with pytest.raises(InconsistentError, match="the inventory 8; nothing was sent"):
        driver.identify()
    staged = driver.stage({3: CROSS})
    with pytest.raises(InconsistentError):
        driver.commit(staged)
    assert twin.lines == []
    assert driver.stage({3: CROSS}) == staged, "what is known of the mesh is known still"


@pytest.mark.parametrize("greeting", ["ready, 8 PUCs", "mesh controller 72 ready", "3 PUCs stuck", "PUC 72"])
def test_a_greeting_that_states_no_other_count_is_no_hindrance(opened, serve, make_twin, greeting):
    twin = make_twin(8, greeting=greeting)
    driver = opened(serve(twin))
    assert driver.identify() == greeting
    driver.commit(driver.stage({3: CROSS}))
    assert twin.states[3] is CROSS


def test_the_greeting_is_one_line_whatever_stands_in_it(opened, serve):
    driver = opened(serve(lambda connection: connection.sendall(b"ready\rwiped\tout\r\n")))
    assert driver.identify() == "ready wiped out"


def test_text_before_the_request_answers_nothing(opened, serve):
    def script(connection):
        connection.sendall(b"mesh ready\nok 1 cells set\n")
        connection.recv(4096)

    driver = opened(serve(script))
    staged = driver.stage({3: CROSS})
    with pytest.raises(OutcomeUnknownError, match="no answer came"):
        driver.commit(staged)


@pytest.mark.parametrize("piece", range(1, 24))
def test_text_may_be_split_anywhere(opened, serve, make_twin, piece):
    twin = make_twin(8, piece=piece, greeting="mesh ready, 8 PUCs")
    driver = opened(serve(twin))
    assert driver.commit(driver.stage({3: CROSS})).text == "ok 1 cells set"
    assert twin.states[3] is CROSS


def test_a_restart_is_not_seen_and_a_commit_of_known_states_mends_it(opened, serve, make_twin):
    """Nothing in the protocol tells of it: the record stands, and only the light shows that it is wrong."""
    twin = make_twin(8)
    driver = opened(serve(twin))
    receipt = driver.commit(driver.stage({3: CROSS}))
    twin.restart()
    assert driver.compare(receipt.staged) == ()
    assert driver.stage({3: CROSS}).changes == (PucChange(3, CROSS, CROSS),)
    assert twin.states[3] is BAR
    driver.commit(driver.stage({3: CROSS}))
    assert twin.states[3] is CROSS


def test_a_peer_that_takes_no_connection_is_given_up(opened):
    """Its backlog is full: the kernel answers nobody, as when a machine is gone and its address is not."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        address = "{}:{}".format(*listener.getsockname())
        waiting = [socket.socket() for _ in range(4)]
        for each in waiting:
            each.settimeout(0)
            each.connect_ex(listener.getsockname())
        driver = opened(address, timeout_s=0.3)
        with pytest.raises(DeviceUnreachableError, match="no answer in time; nothing was sent"):
            driver.commit(driver.stage({3: CROSS}))
        for each in waiting:
            each.close()


def test_writers_take_turns(opened, serve, make_twin):
    twin = make_twin(8)
    driver = opened(serve(twin))
    threads = [threading.Thread(target=lambda puc=puc: driver.commit(driver.stage({puc: CROSS}))) for puc in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(twin.states.values()) == {CROSS}
    assert driver.compare(driver.stage(dict.fromkeys(range(8), CROSS))) == ()


def test_an_address_without_a_port_means_the_published_one(make_twin, serve):
    asked = []

    class Spy(Direct):
        def tcp(self, default_port, timeout_s):
            asked.append(default_port)
            return super().tcp(default_port, timeout_s)

    address = serve(make_twin(8))
    SmartlightMesh(DriverContext(device="m1", address=address, way=Spy(address), puc_count=8)).identify()
    assert asked == [65432]

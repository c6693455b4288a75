"""A rack's gateway with all that belongs to it, put together and taken apart."""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from lumctl.daemon.claim import claimed
from lumctl.daemon.gateway.fencing import Fence
from lumctl.daemon.gateway.lease_numbers import FILE as HIGHEST
from lumctl.daemon.gateway.lease_numbers import HighestLease, NewestLease
from lumctl.daemon.gateway.requests import Peer, RequestHandler
from lumctl.daemon.gateway.server import GatewayServer
from lumctl.daemon.gateway.write_log import FILE as LOG
from lumctl.daemon.gateway.write_log import WriteLog
from lumctl.devices.registry import DeviceSet
from lumctl.devices.types import PucState
from lumctl.errors import RefusedError
from lumctl.site import Site
from lumctl.store import StoreError

LOCK = "gateway.lock"
SETTLES_EVERY_S = 5.0
"""How often a store that could not be read, or be told, is asked again; one that is settled is not asked at all."""


@contextmanager
def service(
    site: Site, rack: str, listen: Path, say: Callable[[str], None], *, group: int | None = None
) -> Iterator[None]:
    """The gateway of a rack, serving at a socket until the block ends; writes that are being sent are finished then.

    ``site`` drives the devices from here: it was opened with ``direct``.

    Raises:
        RefusedError: another gateway serves this rack, or listens there.
        UsageError: the socket or the store cannot be had.
    """
    if site.endpoints.gateways:
        raise RefusedError("a gateway drives its devices itself")
    store = site.store(rack)
    with ExitStack() as stack:
        for lock in (store.files / LOCK, listen.with_name(f"{listen.name}.lock")):
            stack.enter_context(claimed(lock, f"rack {rack}", already="a gateway already serves"))
        newest = NewestLease(
            lambda: store.newest_fence(rack),
            lambda number: store.skip_fences(rack, number, now=site.now(), who="gateway"),
            say,
        )
        fence = Fence(rack, newest, newest.shut_out, HighestLease(store.files / HIGHEST, say))
        log = WriteLog(store.files / LOG, say)
        devices = DeviceSet(
            site.inventory,
            site.endpoints,
            shell_of=site.fleet.shell,
            way_of=site.fleet.way,
            known_states=_remembered(site),
            now=site.now,
        )
        stack.callback(devices.close)
        desk = RequestHandler(site.inventory, rack, devices, fence, log, now=site.now, say=say)
        began = site.now()

        def answer(request: Mapping[str, Any], peer: Peer) -> Mapping[str, Any]:
            if request.get("call") == "ping":
                return {"answer": None}
            if request.get("call") == "status":
                counts = {"writes": log.sent, "refused": log.refused}
                return {"answer": {"since": began, "highest": fence.highest, **counts}}
            return desk.answer(request, peer)

        stack.enter_context(_settling(fence))
        stack.enter_context(GatewayServer(listen, {"rack": rack, "target": site.target}, answer, group=group))
        try:
            yield
        finally:
            if not fence.end():
                say("a write is still being sent: nobody will hear what became of it")


@contextmanager
def _settling(fence: Fence) -> Iterator[None]:
    """While inside, a store that is back is told what came while it was gone, before its next lease is refused."""
    ended = threading.Event()

    def settle() -> None:
        fence.settle()
        while not ended.wait(SETTLES_EVERY_S):
            fence.settle()

    thread = threading.Thread(target=settle, name="lumctl-settling", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _remembered(site: Site) -> Callable[[str], Mapping[int, PucState]]:
    """What a mesh holds by the store; nothing certain while that cannot be read: an open driver goes on as it is."""

    def known(device: str) -> Mapping[int, PucState]:
        try:
            return site.known_states(device)
        except StoreError:
            return {}

    return known

"""Keeps a lease alive for as long as its run takes."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from lumctl.errors import LumctlError
from lumctl.store import Lease, Store
from lumctl.store.clock import TERM_S

LEASE_TERM_S = TERM_S
"""How long a rack stays closed to others after its engine has died."""


@contextmanager
def kept_alive(store: Store, lease: Lease, now: Callable[[], float]) -> Iterator[None]:
    """Renew a lease three times a term, from a thread of its own, until the block ends.

    A renewal that fails is not reported here: the next entry of the journal checks the lease and refuses.
    """
    ended = threading.Event()

    def renew() -> None:
        while not ended.wait(LEASE_TERM_S / 3):
            with suppress(LumctlError):
                store.renew(lease, term_s=LEASE_TERM_S, now=now())

    thread = threading.Thread(target=renew, name="lease", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()

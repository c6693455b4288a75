"""Who has locked which datastore."""

from lumctl.sim.netconf.errors import RpcError


class Locks:
    """Locks by datastore. Not thread-safe by itself."""

    def __init__(self) -> None:
        self._held: dict[str, int] = {}

    def take(self, session: int, target: str) -> None:
        """Lock a datastore.

        Raises:
            RpcError: it is locked already.
        """
        self.require_unlocked(target)
        self._held[target] = session

    def require_unlocked(self, target: str) -> None:
        """See that nobody has locked a datastore.

        Raises:
            RpcError: somebody has.
        """
        if target in self._held:
            raise denied(self._held[target], f"{target} is locked already")

    def give_back(self, session: int, target: str) -> None:
        """Unlock it.

        Raises:
            RpcError: it is not this session's lock.
        """
        if self._held.get(target) != session:
            raise RpcError("operation-failed", f"this session has not locked {target}")
        del self._held[target]

    def require_free(self, session: int, target: str) -> None:
        """Let a session change a datastore.

        Raises:
            RpcError: another session has locked it.
        """
        holder = self._held.get(target, session)
        if holder != session:
            raise RpcError("in-use", f"{target} is locked by session {holder}", info=(("session-id", str(holder)),))

    def left(self, session: int) -> set[str]:
        """A session has ended; what it had locked."""
        freed = {target for target, holder in self._held.items() if holder == session}
        for target in freed:
            del self._held[target]
        return freed


def denied(holder: int, message: str) -> RpcError:
    """A lock is not given; ``holder`` is the session in the way, or 0."""
    return RpcError("lock-denied", message, info=(("session-id", str(holder)),))

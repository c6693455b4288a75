"""NETCONF requests as text, and the capabilities that they need."""

from dataclasses import dataclass

_CAPABILITY = "urn:ietf:params:netconf:capability:"
_NEEDED = {"running": None, "candidate": "candidate", "startup": "startup"}


@dataclass(frozen=True, slots=True)
class ServerCapabilities:
    """The capabilities that a device offers beyond the base protocol."""

    capabilities: frozenset[str]

    def has(self, name: str, version: str = "") -> bool:
        """Whether the device offers a standard capability such as ``candidate``, in this or in any version."""
        # A URI ends with the version and may have parameters after a question mark, so its beginning is compared.
        start = f"{_CAPABILITY}{name}:{version}"
        return any(uri.partition("?")[0].startswith(start) for uri in self.capabilities)

    def lacking(self, target: str, *, to_write: bool = False) -> str | None:
        """The missing capability that a datastore needs; ``None`` if the datastore can be used."""
        needed = "writable-running" if to_write and target == "running" else _NEEDED.get(target, target)
        return None if needed is None or self.has(needed) else needed


def get(subtree: str) -> str:
    """Request configuration and state."""
    return f"<get>{_filter(subtree)}</get>"


def get_config(source: str, subtree: str) -> str:
    """Request the configuration in a datastore."""
    return f"<get-config><source><{source}/></source>{_filter(subtree)}</get-config>"


def edit_config(target: str, config: str, *, undone_on_error: bool) -> str:
    """Request a change of a datastore."""
    option = "<error-option>rollback-on-error</error-option>" if undone_on_error else ""
    return f"<edit-config><target><{target}/></target>{option}<config>{config}</config></edit-config>"


def lock(target: str) -> str:
    """Request the lock of a datastore."""
    return f"<lock><target><{target}/></target></lock>"


def unlock(target: str) -> str:
    """Release the lock of a datastore."""
    return f"<unlock><target><{target}/></target></unlock>"


VALIDATE = "<validate><source><candidate/></source></validate>"
DISCARD = "<discard-changes/>"


def commit_for(seconds: int, persist_id: str, confirms: str) -> str:
    """Request a commit that the device undoes unless confirmed; ``confirms``: id of an earlier one that it replaces."""
    persist = f"<persist>{persist_id}</persist>" if persist_id else ""
    earlier = f"<persist-id>{confirms}</persist-id>" if confirms else ""
    return f"<commit><confirmed/><confirm-timeout>{seconds}</confirm-timeout>{persist}{earlier}</commit>"


def commit(confirms: str) -> str:
    """Request a permanent commit; ``confirms`` is the id of a temporary commit that it confirms."""
    return f"<commit><persist-id>{confirms}</persist-id></commit>" if confirms else "<commit/>"


def cancel(persist_id: str) -> str:
    """Request the immediate undo of a commit that waits for confirmation."""
    return f"<cancel-commit><persist-id>{persist_id}</persist-id></cancel-commit>"


def _filter(subtree: str) -> str:
    return f'<filter type="subtree">{subtree}</filter>' if subtree else ""

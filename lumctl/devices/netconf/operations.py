"""The requests that we send, as text, and what a device must offer for each."""

from dataclasses import dataclass

_CAPABILITY = "urn:ietf:params:netconf:capability:"
_NEEDED = {"running": None, "candidate": "candidate", "startup": "startup"}


@dataclass(frozen=True, slots=True)
class ServerCapabilities:
    """What a device offers beyond the least."""

    capabilities: frozenset[str]

    def has(self, name: str, version: str = "") -> bool:
        """Whether there is a standard capability such as ``candidate``, of any version or of one."""
        start = f"{_CAPABILITY}{name}:{version}"
        return any(uri.partition("?")[0].startswith(start) for uri in self.capabilities)

    def lacking(self, target: str, *, to_write: bool = False) -> str | None:
        """The capability that is not there and without which a datastore is not; ``None`` if it is there."""
        needed = "writable-running" if to_write and target == "running" else _NEEDED.get(target, target)
        return None if needed is None or self.has(needed) else needed


def get(subtree: str) -> str:
    """Configuration and state."""
    return f"<get>{_filter(subtree)}</get>"


def get_config(source: str, subtree: str) -> str:
    """The configuration in a datastore."""
    return f"<get-config><source><{source}/></source>{_filter(subtree)}</get-config>"


def edit_config(target: str, config: str, *, undone_on_error: bool) -> str:
    """A change of a datastore."""
    option = "<error-option>rollback-on-error</error-option>" if undone_on_error else ""
    return f"<edit-config><target><{target}/></target>{option}<config>{config}</config></edit-config>"


def lock(target: str) -> str:
    """Take a datastore for ourselves."""
    return f"<lock><target><{target}/></target></lock>"


def unlock(target: str) -> str:
    """Give it back."""
    return f"<unlock><target><{target}/></target></unlock>"


VALIDATE = "<validate><source><candidate/></source></validate>"
DISCARD = "<discard-changes/>"


def commit_for(seconds: int, persist_id: str, confirms: str) -> str:
    """A commit that the device undoes unless it is confirmed. ``confirms`` is one that it takes the place of."""
    persist = f"<persist>{persist_id}</persist>" if persist_id else ""
    earlier = f"<persist-id>{confirms}</persist-id>" if confirms else ""
    return f"<commit><confirmed/><confirm-timeout>{seconds}</confirm-timeout>{persist}{earlier}</commit>"


def commit(confirms: str) -> str:
    """A commit that stays; ``confirms`` is the one for a time that it confirms."""
    return f"<commit><persist-id>{confirms}</persist-id></commit>" if confirms else "<commit/>"


def cancel(persist_id: str) -> str:
    """Take back now what was committed for a time."""
    return f"<cancel-commit><persist-id>{persist_id}</persist-id></cancel-commit>"


def _filter(subtree: str) -> str:
    return f'<filter type="subtree">{subtree}</filter>' if subtree else ""

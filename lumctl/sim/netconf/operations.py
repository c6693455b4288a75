"""The operations that a session may request, by name."""

from collections.abc import Callable, Mapping
from xml.etree.ElementTree import Element

from lumctl.sim.netconf.datastore import CANDIDATE, Datastore
from lumctl.sim.netconf.edit import OPERATIONS
from lumctl.sim.netconf.tree import NC, RpcError, local, selected

_CAPABILITY = "urn:ietf:params:netconf:capability:"
# The default and the type of RFC 6241 (8.4).
_DEFAULT_TRIAL_S, _MOST_TRIAL_S = 600, 2**32 - 1


def capabilities(*, candidate: bool) -> list[str]:
    """The capabilities of a server with or without a candidate."""
    versions = [f"urn:ietf:params:netconf:base:1.{minor}" for minor in (0, 1)]
    extras = ("candidate:1.0", "confirmed-commit:1.1") if candidate else ("writable-running:1.0",)
    return versions + [f"{_CAPABILITY}{name}" for name in (*extras, "rollback-on-error:1.0", "validate:1.1")]


class Operations:
    """The operations of one session on a datastore. ``kill`` ends another session; it returns false if there is none.

    ``own`` are operations of the device's own model, by full name.
    """

    def __init__(
        self,
        datastore: Datastore,
        session: int,
        kill: Callable[[int], bool],
        own: Mapping[str, Callable[[Element], None]] | None = None,
    ) -> None:
        self._datastore = datastore
        self._session = session
        self._kill = kill
        self._own = own or {}
        self._known: dict[str, Callable[[Element], Element | None]] = {
            "get": self._get,
            "get-config": self._get_config,
            "edit-config": self._edit_config,
            "lock": lambda asked: datastore.lock(session, _named(asked, "target")),
            "unlock": lambda asked: datastore.unlock(session, _named(asked, "target")),
            "validate": lambda asked: datastore.validate(_named(asked, "source")),
            "kill-session": self._kill_session,
            "close-session": lambda _: None,
        }
        if CANDIDATE in datastore.targets:
            self._known |= {
                "discard-changes": lambda _: datastore.discard(session),
                "commit": self._commit,
                "cancel-commit": lambda asked: datastore.cancel(session, asked.findtext(f"{NC}persist-id")),
            }

    def perform(self, asked: Element) -> Element:
        """Perform an operation; return the content of the reply.

        Raises:
            RpcError: the operation is refused or not possible.
        """
        name = local(asked.tag)
        operation = self._known.get(name) if asked.tag == f"{NC}{name}" else self._own.get(asked.tag)
        if operation is None:
            raise RpcError("operation-not-supported", f"{name} is not supported")
        answer = operation(asked)
        return Element(f"{NC}ok") if answer is None else answer

    def _get(self, asked: Element) -> Element:
        return self._filtered(asked, self._datastore.everything())

    def _get_config(self, asked: Element) -> Element:
        return self._filtered(asked, self._datastore.read(_named(asked, "source")))

    def _filtered(self, asked: Element, data: Element) -> Element:
        wanted = asked.find(f"{NC}filter")
        if wanted is not None:
            if wanted.get("type", "subtree") != "subtree":
                raise RpcError(
                    "operation-not-supported", "only subtree filters are supported", info=(("bad-attribute", "type"),)
                )
            data = selected(data, wanted, self._datastore.device.keys)
        data.tag = f"{NC}data"
        return data

    def _edit_config(self, asked: Element) -> None:
        wanted = asked.find(f"{NC}config")
        if wanted is None:
            raise RpcError("missing-element", "an edit needs its config", info=(("bad-element", "config"),))
        default = asked.findtext(f"{NC}default-operation", "merge")
        if default not in (OPERATIONS & {"merge", "replace"}) | {"none"}:
            raise RpcError("invalid-value", f"default-operation {default!r} does not exist")
        self._datastore.edit(self._session, _named(asked, "target"), wanted, default)

    def _commit(self, asked: Element) -> None:
        trial_s = None
        if asked.find(f"{NC}confirmed") is not None:
            trial_s = _seconds(asked.findtext(f"{NC}confirm-timeout", str(_DEFAULT_TRIAL_S)))
        self._datastore.commit(
            self._session,
            trial_s=trial_s,
            persist=asked.findtext(f"{NC}persist"),
            persist_id=asked.findtext(f"{NC}persist-id"),
        )

    def _kill_session(self, asked: Element) -> None:
        text = asked.findtext(f"{NC}session-id", "")
        if not text.isdecimal() or int(text) == self._session or not self._kill(int(text)):
            raise RpcError("invalid-value", f"session {text!r} does not exist")


def _named(asked: Element, role: str) -> str:
    """The datastore that a request names as its source or target."""
    place = asked.find(f"{NC}{role}")
    if place is None or len(place) != 1:
        raise RpcError("missing-element", f"{local(asked.tag)} needs its {role}", info=(("bad-element", role),))
    return local(place[0].tag)


def _seconds(text: str) -> float:
    if not text.isdecimal() or not 1 <= int(text) <= _MOST_TRIAL_S:
        raise RpcError("invalid-value", f"{text!r} is not a confirm-timeout")
    return float(text)

"""An ``rpc-error`` of a device (RFC 6241, 4.3) as one of our errors."""

from xml.etree.ElementTree import Element

from lumctl.devices.errors import (
    DeviceBusyError,
    DeviceError,
    DeviceRefusedError,
    InconsistentError,
    OutcomeUnknownError,
)
from lumctl.devices.formats.complaint import first_line
from lumctl.devices.netconf.messages import NS

_NAMES_CAUSES = (f"{{{NS}}}", "{urn:ietf:params:xml:ns:yang:1}")
"""Namespaces whose words in an error-info tell an operator something."""
_BUSY = {"lock-denied", "in-use"}
_HALF_DONE = {"partial-operation", "rollback-failed"}
_HINTS = {
    "access-denied": "the device lets this user in, and not do this: check its access rules",
    "lock-denied": "another session holds the device's configuration: wait for it, or end it on the device",
}


def refusal(reply: Element, where: str, *, may_be_partial: bool = False) -> DeviceError | None:
    """The error that a reply tells of; ``None`` if there is none, warnings aside.

    ``may_be_partial``: the device was not bound to undo what it took before it said no.
    """
    errors = [each for each in reply.iterfind(_named("rpc-error")) if _of(each, "error-severity") != "warning"]
    if not errors:
        return None
    tags = [_of(each, "error-tag") for each in errors]
    first = next((each for each, tag in zip(errors, tags, strict=True) if tag in _HALF_DONE), errors[0])
    tag = _of(first, "error-tag") or "no error-tag"
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    message = f"{where}: refused: {_described(first, tag)}{more}"
    if tag in _HALF_DONE:
        return InconsistentError(f"{message}; some of the change may stand", hint="read the device back")
    if tag in _BUSY:
        return DeviceBusyError(message, hint=_HINTS.get(tag))
    if may_be_partial:
        return OutcomeUnknownError(
            f"{message}; this device does not undo what it took before that", hint="read the device back"
        )
    return DeviceRefusedError(message, hint=_HINTS.get(tag))


def _described(error: Element, tag: str) -> str:
    """Tag, path, the device's words, and what it names as the cause: ``in-use at /a/b: locked (session-id 3)``."""
    path, said = _of(error, "error-path"), _of(error, "error-message")
    kind = _of(error, "error-app-tag")
    info = error.find(_named("error-info"))
    told = [] if info is None else [each for each in info if each.tag.startswith(_NAMES_CAUSES) and _text(each)]
    named = ", ".join(f"{each.tag.rpartition('}')[2]} {_text(each)}" for each in told[:3])
    return "".join(
        (
            tag,
            f" ({kind})" if kind else "",
            f" at {path}" if path else "",
            f": {said}" if said else "",
            f" ({named})" if named else "",
        )
    )


def _named(name: str) -> str:
    return f"{{{NS}}}{name}"


def _of(error: Element, name: str) -> str:
    found = error.find(_named(name))
    return "" if found is None else _text(found)


def _text(element: Element) -> str:
    return first_line(" ".join((element.text or "").split()))

"""Timelines from what was written down of recoveries."""

from collections.abc import Mapping
from typing import Any

from lumctl.errors import UsageError
from lumctl.training.timeline import DETECTED, KnownBy, Moment, Timeline, in_order


def told(recovery: Mapping[str, Any], *, job: str = "", killed_at: float | None = None) -> Timeline:
    """A recovery as the status of its job tells it, counted from the kill where its time is known.

    ``recovery`` is one of the ``recoveries`` in the document of ``lumctl job status``; ``killed_at`` are seconds since
    the epoch.
    """
    seen = float(recovery["at"])
    replaced = recovery["replaced_by"]
    times = {name: seen + after for name, after in recovery["marks"].items() if after is not None}
    return Timeline.since(
        seen if killed_at is None else killed_at,
        KnownBy.DETECTION if killed_at is None else KnownBy.KILL,
        {DETECTED: seen, **times},
        job=job,
        cause=recovery["cause"],
        failed=tuple(recovery["failed"]),
        replaced_by=tuple(replaced.values()),
        run=recovery["run"],
    )


def from_document(document: Any) -> Timeline:
    """A timeline as :meth:`Timeline.document` wrote it; fields and moments that are not known are no error.

    Raises:
        UsageError: it is none.
    """
    try:
        moments = (Moment(str(m["name"]), str(m["title"]), float(m["at_s"])) for m in document["timeline"])
        return Timeline(
            float(document["t0"]),
            KnownBy(document["t0_known_by"]),
            in_order(moments),
            job=str(document["job"]),
            cause=str(document["cause"]),
            failed=tuple(map(str, document["failed"])),
            replaced_by=tuple(map(str, document["replaced_by"])),
            run=None if document["run"] is None else str(document["run"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        what = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else str(error)
        raise UsageError(
            f"this is no timeline of a recovery: {what}", hint="lumctl demo recover -o json prints one"
        ) from None

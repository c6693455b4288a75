"""The settings of the kinds of job control in an inventory. The plug-in that offers a kind reads its settings."""

from typing import Any

from lumctl.api_versions import Api, Misfit
from lumctl.errors import UsageError
from lumctl.inventory.document_reader import read_under
from lumctl.inventory.entry import Entry, JobKindEntry
from lumctl.inventory.job_entries import COMMAND
from lumctl.inventory.scope import Scope
from lumctl.offers import JOB_KINDS, Offer, offered, usable

GROUP = JOB_KINDS
WHAT = "kind of job control"
API = Api("job control API", 1, "lumctl-job-plugin(7)")
"""Defined here because an inventory needs each kind's entry. Adapters for older versions also belong here."""
UPGRADE = "upgrade {package} or lumctl"
UNNAMED = frozenset({COMMAND, "workers"})
"""Kinds that a hook does not name: that of a hook without a kind, and that of a job with ``run:``."""


def kinds() -> tuple[Offer, ...]:
    """Every kind that an installed package offers, from package metadata alone."""
    return offered(GROUP)


def entry_of(kind: str) -> type[JobKindEntry] | None:
    """The settings of a kind other than ``command``; ``None`` if a hook cannot name it.

    Raises:
        UsageError: the kind is not installed, does not import, is for another API version, or has no valid entry.
    """
    entry: type[JobKindEntry] | None = usable(GROUP, kind, WHAT, _with_entry).entry
    return entry


def fitted(found: object) -> type[Any] | Misfit:
    """The class of a kind, adapted to this API version if necessary, or why it cannot be used."""
    return API.fitted(found) if isinstance(found, type) else Misfit("is not a class", UPGRADE)


def _with_entry(found: object) -> type[Any] | Misfit:
    """The class of a kind if its entry can be read. In another API version the entry may mean something else."""
    kind = fitted(found)
    if isinstance(kind, Misfit):
        return kind
    entry = getattr(kind, "entry", "")
    if entry is None or (isinstance(entry, type) and issubclass(entry, JobKindEntry)):
        return kind
    return Misfit("does not state what it needs", "upgrade {package}")


def read_settings(job: Entry, hook: JobKindEntry, scope: Scope) -> JobKindEntry | None:
    """The settings of a kind, read by its plug-in; ``None`` if they are wrong, which is reported."""
    if hook.kind not in {offer.name for offer in kinds()}:
        names = [COMMAND, *(offer.name for offer in kinds() if offer.name not in UNNAMED)]
        scope.problems.unknown(hook.mark("kind"), WHAT, hook.kind, names, listed=True)
        return None
    try:
        entry = entry_of(hook.kind)
    except UsageError as error:
        scope.problems.add(hook.mark("kind"), error.message, error.hint)
        return None
    if entry is None:
        scope.problems.add(hook.mark("kind"), f"no hook has kind {hook.kind!r}: for a job without a hook, omit `hook`")
        return None
    settings = read_under(entry, job.written, "hook", scope.problems)
    if settings is None:
        return None
    wrong = list(settings.complaints(scope.hosts))
    for mark, message in wrong:
        scope.problems.add(mark, message)
    return None if wrong else settings

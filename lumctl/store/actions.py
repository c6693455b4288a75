"""Actions that touch no device, kept as finished runs: one transaction does them and journals them, or neither.

They take no lease: who acknowledges a finding need not wait for a swap to end, and no swap is disturbed by it.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, insert

from lumctl import __version__
from lumctl.store import acts, journal
from lumctl.store.database import writing
from lumctl.store.ids import new_run_id
from lumctl.store.readings import ReadingStore
from lumctl.store.schema import runs

ACTION_KINDS = frozenset({"ack", "maintain", "policy"})
"""The kinds of runs that touch no device."""

_PLAN_SCHEMA = "lumctl/plan/v1"
_NO_FENCE = 0


class ActionStore(ReadingStore):
    """The part of a store that does and records actions."""

    def act(self, data: Mapping[str, Any], *, who: str, now: float) -> dict[str, Any]:
        """Do an act of a run that is journalled elsewhere; see :mod:`lumctl.store.acts`.

        Raises:
            RefusedError: there is nothing to take back.
            StoreError: the store cannot be written.
        """
        with writing(self._engine) as connection:
            return acts.perform(connection, data, who=who, now=now)

    def take_back_act(self, data: Mapping[str, Any], evidence: Mapping[str, Any]) -> None:
        """Undo an act by the evidence that it gave.

        Raises:
            StoreError: the store cannot be written.
        """
        with writing(self._engine) as connection:
            acts.take_back(connection, data, evidence)

    def record_action(
        self,
        kind: str,
        title: str,
        steps: Sequence[Mapping[str, Any]],
        *,
        who: str,
        inventory_digest: str,
        target: str,
        at: float,
        end: float,
    ) -> str:
        """Do what ``steps`` say and keep it as a run that is done; gives the run's id, such as ``ack-0007``.

        Each step has a ``title`` and ``data``: an act, see :mod:`lumctl.store.acts`. ``kind`` is ack, maintain or
        policy.

        Raises:
            RefusedError: there is nothing to take back; nothing was written.
            UsageError: a step is no act.
            StoreError: the store cannot be written.
        """
        about = {"kind": kind, "title": title, "rack": self._rack, "target": target, "created_at": at}
        plan = _plan({**about, "inventory_digest": inventory_digest}, steps)
        with writing(self._engine) as connection:
            run = new_run_id(connection, kind, self._mine(runs))
            connection.execute(
                insert(runs).values(
                    id=run,
                    rack=self._rack,
                    target=target,
                    kind=kind,
                    title=title,
                    plan=json.dumps(plan, ensure_ascii=False),
                    plan_digest=plan["digest"],
                    inventory_digest=inventory_digest,
                    who=who,
                    version=__version__,
                    fence=_NO_FENCE,
                    state="done",
                    started_at=at,
                    ended_at=end,
                )
            )
            begin = {"plan": plan["digest"], "who": who, "inventory_digest": inventory_digest, "title": title}
            self._append(
                connection, run, at, "begin", "", {**begin, "target": target, "kind": kind, "rack": self._rack}
            )
            for step in plan["steps"]:
                self._append(connection, run, at, "intent", step["id"], {"do": step["do"], "title": step["title"]})
                evidence = acts.perform(connection, step["data"], who=who, now=at)
                self._append(connection, run, end, "outcome", step["id"], {"done": True, **evidence})
            self._append(connection, run, end, "end", "", {"state": "done", "seconds": round(end - at, 4)})
        return run

    def _append(
        self, connection: Connection, run: str, at: float, kind: str, step: str, data: Mapping[str, Any]
    ) -> None:
        journal.append(connection, rack=self._rack, run=run, at=at, kind=kind, step=step, data=data, fence=_NO_FENCE)


def _plan(about: Mapping[str, Any], steps: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What was done as a plan document, so that whatever reads runs reads this one too."""
    plan: dict[str, Any] = {
        "schema": _PLAN_SCHEMA,
        **about,
        "undoes": None,
        "expected_seconds": 0.0,
        "warnings": [],
        "replacements": [],
        "candidates": [],
        "circuits": {"add": [], "remove": [], "keep": []},
        "puc_changes": [],
        "steps": [
            {
                "id": str(number),
                "do": "record",
                "title": step["title"],
                "data": dict(step["data"]),
                "precondition": "",
                "verification": "",
                "undo": "the opposite is said",
                "required": True,
                "expected_seconds": 0.0,
            }
            for number, step in enumerate(steps, start=1)
        ],
        "start": {"assignment": {}, "crosses": {}},
    }
    # As lumctl.change.plan seals a plan: that room is above this one.
    digest = hashlib.sha256(json.dumps(plan, sort_keys=True, ensure_ascii=False).encode()).hexdigest()
    return {"id": f"plan-{digest[:8]}", "digest": digest, **plan}

"""Notifications to Prometheus' Alertmanager, by its API version 2: a case is an alert until it is over.

Alertmanager keeps alerts in memory only, and ends each at its ``endsAt``. So all open cases are posted again each
minute, which brings them back after it was started anew, with an end a day away: that lumctl was not there for an hour
does not say that a fault is gone.
"""

import json
import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from lumctl.daemon.notifications.message import CaseOccasion, Message, Notification, text_of
from lumctl.daemon.notifications.webhook import DeliveryError, Webhook, post
from lumctl.daemon.process import ErrorLog
from lumctl.health.states import State
from lumctl.printable import printable_values

AGAIN_EVERY_S = 60.0
_LASTS_S = 86400.0
_TOLD_FOR_S = 3600.0
"""How long an alert stands that tells of something done, and not of something that lasts."""
_SEVERITIES = {State.FAILED: "critical"}

Alert = dict[str, Any]


class Alertmanager:
    """One Alertmanager. Of several in a cluster each is told: they find out by themselves what is the same."""

    def __init__(self, webhook: Webhook, still_open: Callable[[], Sequence[Notification]], troubles: ErrorLog) -> None:
        """``still_open`` gives the cases that are open, as they were told last."""
        self._webhook = webhook
        self._still_open = still_open
        self._troubles = troubles
        self._posting = threading.Lock()
        """What is open is looked up and posted in one piece, so that an end is never overtaken by what was before."""
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._repeat, name="lumctl-alertmanager", daemon=True)

    @property
    def place(self) -> str:
        """The name under which its troubles are told."""
        return f"alertmanager {self._webhook.host}:{self._webhook.port}"

    def start(self) -> None:
        """Post what is open again and again from now on."""
        self._thread.start()

    def close(self) -> None:
        """Post nothing more."""
        self._ended.set()

    def deliver(self, letter: Message) -> None:
        """Post what a letter tells.

        Raises:
            DeliveryError: it was not taken.
        """
        alerts = alerts_of(letter.about) if letter.about is not None else [_told(letter)]
        with self._posting:
            self._post(alerts)

    def post_open(self, at: float) -> None:
        """Post all cases that are open, as of this time (seconds since the epoch).

        Raises:
            DeliveryError: they were not taken.
        """
        with self._posting:
            # What a person knows of has ended for Alertmanager: it would call again and again.
            open_now = [(each, at if each.case.silent else at + _LASTS_S) for each in self._still_open()]
            if open_now:
                self._post([_alert(each, each.after, ends_at) for each, ends_at in open_now])

    def _post(self, alerts: list[Alert]) -> None:
        post(self._webhook, json.dumps(printable_values(alerts), ensure_ascii=False).encode())

    def _repeat(self) -> None:
        while not self._ended.wait(AGAIN_EVERY_S):
            try:
                self.post_open(datetime.now(UTC).timestamp())
            except DeliveryError as error:
                self._troubles.arose(self.place, error)
            else:
                self._troubles.passed(self.place)


def alerts_of(notification: Notification) -> list[Alert]:
    """What a notification changes: the alert as it is now, and before it the one of another severity that it ends."""
    if notification.occasion is CaseOccasion.RESOLVED:
        return [_alert(notification, notification.before, notification.at)]
    alerts = [_alert(notification, notification.after, notification.at + _LASTS_S)]
    if notification.occasion is CaseOccasion.WORSENED and _severity(notification.before) != _severity(
        notification.after
    ):
        alerts.insert(0, _alert(notification, notification.before, notification.at))
    return alerts


def _alert(notification: Notification, state: State, ends_at: float) -> Alert:
    """An alert is known by its labels alone, so none of them may change while the case is open, but for the severity.

    The rule may: the gravest finding of a component gives it.
    """
    case = notification.case
    advice = next((finding.advice for finding in case.findings), None)
    return {
        "labels": {
            "alertname": "lumctl",
            "severity": _severity(state),
            "component": case.component,
            "incident": case.key,
            "rack": notification.rack,
            "target": notification.target,
        },
        "annotations": {"summary": text_of(notification), "rule": case.rule} | ({"advice": advice} if advice else {}),
        "startsAt": _time(notification.opened_at),
        "endsAt": _time(ends_at),
    }


def _told(letter: Message) -> Alert:
    """What the autopilot says."""
    document, at = letter.document, float(letter.document["at"])
    return {
        "labels": {
            "alertname": "lumctl-autopilot",
            "severity": "warning",
            "occasion": str(document["occasion"]),
            "rack": str(document["rack"]),
            "target": str(document["target"]),
            "id": letter.id,
        },
        "annotations": {"summary": str(document["text"])},
        "startsAt": _time(at),
        "endsAt": _time(at + _TOLD_FOR_S),
    }


def _severity(state: State) -> str:
    return _SEVERITIES.get(state, "warning")


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()

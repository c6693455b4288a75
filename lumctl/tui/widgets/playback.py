"""The line with the progress of a recorded run while the dashboard plays it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from textual.screen import Screen
from textual.widgets import Static

from lumctl.tui.widgets.bars import TopBar


@dataclass(frozen=True, slots=True)
class PlaybackLine:
    """The progress of a played run in a line, and the seconds until it continues, if known.

    ``grave``: the run differed from the record, or could not be played.
    """

    text: str
    left_s: int | None = None
    grave: bool = False

    def __str__(self) -> str:
        """The progress, with the seconds that are left."""
        return self.text if self.left_s is None else f"{self.text} (in {self.left_s} s)"


@dataclass(frozen=True, slots=True)
class Playback:
    """A recorded run that the dashboard plays: the name of its screen, and its progress, read each second."""

    title: str
    standing: Callable[[], PlaybackLine]


class PlayedLine(Static):
    """The line with the progress, beneath the top bar of every screen."""

    def __init__(self, standing: PlaybackLine) -> None:
        super().__init__(markup=False)
        self.say(standing)

    def say(self, standing: PlaybackLine) -> None:
        """Show the present progress."""
        self.update(str(standing))
        self.set_class(standing.grave, "-grave")


def show_on(screens: Iterable[Screen[object]], standing: PlaybackLine) -> None:
    """Show the progress of the run on these screens, except those without a top bar."""
    for screen in screens:
        for bar in screen.query(TopBar):
            lines = screen.query(PlayedLine)
            if lines:
                lines.first().say(standing)
            else:
                screen.mount(PlayedLine(standing), after=bar)

"""The screen of a job: where each rank is and how it stands, and the recoveries of one that lumctl runs."""

from rich.text import Text

from lumctl.tui.panes.ranks import ranks_pane
from lumctl.tui.panes.rows import Row
from lumctl.tui.screens.listing import ListingScreen
from lumctl.tui.sources import Context
from lumctl.tui.views.jobs import head_text, recoveries_text, told_of
from lumctl.tui.views.records import Seen


class JobScreen(ListingScreen, keys="job"):
    """One job."""

    def __init__(self, job: str, context: Context) -> None:
        super().__init__(f"job {job}", ranks_pane(job), context)
        self._job = job

    def head(self, seen: Seen) -> Text:
        """The health of its accelerators, and what it does."""
        return head_text(seen, self._job, self.shared.marks)

    def more(self, seen: Seen, row: Row | None) -> Text:  # noqa: ARG002 - recoveries are those of the whole job
        """Its recoveries."""
        return recoveries_text(told_of(seen, self._job), self.shared.now(), self.shared.marks)

"""What the healer tells: who is not well, which spare takes whose place, and that light has moved, or has not."""

from collections.abc import Mapping

from lumctl.change.engine import RunResult
from lumctl.change.plan import Plan
from lumctl.errors import LumctlError, RolledBackError
from lumctl.inventory.folding import fold
from lumctl.inventory.running import WithoutSpare
from lumctl.training.choosing import REPLICATED
from lumctl.training.ends import End
from lumctl.training.failing import Failing
from lumctl.training.standing import Phase, Trouble
from lumctl.training.story import Story

AGAIN_S = 5.0
"""How long after an attempt without success the next one follows."""
ATTEMPTS = 2
"""How often a swap is tried that is taken back, before it counts as not to be had."""


class Healing(Failing):
    """Takes in what comes of a look at accelerators."""

    def look_first(self) -> None:
        """Before any rank is started, have those replaced that are known to have failed."""
        if not self.looked_first:
            self.looked_first = True
            self.trouble = Trouble(Story("before the start", self.means.now(), ()), set(self.placement), first=True)

    def looked(self, bad: Mapping[str, str]) -> None:
        """Accelerators were looked at; these are not well, with the reason."""
        if self.trouble is None:
            return
        self.trouble.story.mark("health", self.means.now())
        known = self.trouble.story.bad
        for name in self.looking - bad.keys():
            known.pop(name, None)  # it is well again
        for name, why in bad.items():
            if known.get(name) != why:
                self.means.say(f"{name} is not well: {why}")
        known |= bad
        if self.trouble.first and bad:
            self.trouble.story.cause = "; ".join(f"{name}: {why}" for name, why in bad.items())
            self.trouble.story.failed = tuple(bad)

    def planned(self, plan: Plan) -> None:
        """Spares are chosen: their workers may load while light moves."""
        self.is_planned = True
        if (trouble := self.trouble) is not None:
            trouble.why = ""
            trouble.story.mark("planned", self.means.now())
            trouble.story.replaced |= {each.failed: each.spare for each in plan.replacements}
        for each in plan.replacements:
            if each.job == self.job.name:
                self.placement[each.rank] = each.spare
                self.lines.want(self.host_of(each.spare))
                self.places.changed()
        self.means.say(plan.title)

    def programmed(self) -> None:
        """Every device that the plan writes is written."""
        if self.trouble is not None:
            self.trouble.story.mark("circuits", self.means.now())

    def verified(self) -> None:
        """Every receiver of the new circuits is proved."""
        if self.trouble is not None:
            self.trouble.story.mark("verified", self.means.now())

    def dark(self, why: str) -> None:
        """All that was looked at is well, and circuits of the job are dark: it waits for their light."""
        looked_at, trouble = self.looking, self.trouble
        known = trouble.why if trouble is not None else ""
        self.healed(None)
        if trouble is None or not trouble.stalled or self.phase is Phase.STOPPING:
            return  # they did steps until one died
        trouble.look |= looked_at
        trouble.retry_at = self.means.now() + AGAIN_S
        trouble.why = why
        if why != known:
            self.means.say(f"{why}; the job waits for it, and looks every {AGAIN_S:g} s")

    def healed(self, result: RunResult | None) -> None:
        """The healer is done; ``None``: no light had to be moved."""
        if self.places.read() is not None and result is not None:
            self.places.placed = tuple(self.placement)  # what was planned has been done
        self.place(self.places.placed)
        self.looking, self.is_planned = frozenset(), False
        if self.trouble is not None:
            self.trouble.attempts, self.trouble.why = 0, ""
            if self.trouble.first and not self.trouble.story.replaced:
                self.trouble = None  # nothing is wrong
        if result is not None and self.healing is not None:
            self.healing.run = result.run

    def not_healed(self, error: LumctlError) -> None:
        """No swap was to be had: it is tried again, and then done as the inventory says."""
        self.places.read()
        self.place(self.places.placed)
        looked_at, self.looking, self.is_planned = self.looking, frozenset(), False
        if (trouble := self.trouble) is None or self.phase is Phase.STOPPING:
            return
        story = trouble.story
        if trouble.first and not story.bad:
            self.means.say(f"the accelerators could not be looked at before the start: {error.message}")
            self.trouble = None
            return
        story.replaced = {failed: spare for failed, spare in story.replaced.items() if spare in self.placement}
        self.answer_light({"error": error.message})
        trouble.attempts += 1
        others, trouble.look = trouble.look - looked_at, trouble.look | looked_at
        if trouble.why != error.message:
            waits = self.run_as.without_spare is WithoutSpare.WAIT and not isinstance(error, RolledBackError)
            then = self._ends_with(story) if waits else ""
            self.means.say(error.message + (f" ({error.hint})" if error.hint else "") + then)
            trouble.why = error.message
        if isinstance(error, RolledBackError) and trouble.attempts < ATTEMPTS:
            return  # once more, at once
        if others:
            return  # they have failed since: all are looked at together
        if self.run_as.without_spare is WithoutSpare.WAIT:
            trouble.retry_at = self.means.now() + AGAIN_S
        elif self.run_as.without_spare is WithoutSpare.SHRINK and self._may_shrink():
            self._shrink(trouble)
        else:
            self.give_up(f"no spare can be had: {error.message}", End.NO_SPARE)

    def _ends_with(self, story: Story) -> str:
        """What ends the waiting of a job that gets no swap."""
        lost = ", ".join(fold(sorted(story.bad))) or "what failed"
        return f"; the job waits until {lost} is well or a swap can be had, and tries every {AGAIN_S:g} s"

    def _may_shrink(self) -> bool:
        members = self.members()
        return bool(members) and all(worker.layout == REPLICATED for worker in members)

    def _shrink(self, trouble: Trouble) -> None:
        working = {worker.accelerator for worker in self.members()}
        lost = {rank for rank, name in enumerate(self.placement) if name in trouble.look and name not in working}
        self.vacant |= {rank: self.placement[rank] for rank in lost}
        trouble.look = set()
        trouble.story.without += sorted(lost)
        self.means.say(f"the job goes on without rank {', '.join(map(str, sorted(lost)))}")

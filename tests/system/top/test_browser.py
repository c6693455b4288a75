"""A fault, the swap that another makes, and its replay, seen in a real browser, from which nothing can be changed."""

import asyncio
import re
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest
from said import Said

from lumctl.errors import ExitCode

LOST, SPARE, JOB = "s1-gpu0", "s3-gpu0", "finetune"
CIRCUITS = 6
CHANGES = ("plan swap", "apply", "acknowledge", "undo")
"""What the foot of a screen offers where something may be changed."""
ENDS_WITHIN_S = 12.0
"""Less than what it would take to find that a page does not answer any more: pages that are open are closed at once."""


class Served:
    """``lumctl top --web`` of a rack, which says where it is."""

    def __init__(self, rack):
        command = [sys.executable, "-m", "lumctl", "top", "--web", "--port", "0", "--interval", "0.5"]
        self._process = subprocess.Popen(command, env=rack.environment, stderr=subprocess.PIPE, text=True)
        self._said = Said(self._process.stderr)
        self.address = re.search(r"http://127\.0\.0\.1:\d+/[\w-]+/", self._said.hear("read-only", "Ctrl-C ends it"))[0]

    @property
    def favicon(self):
        """What a browser asks for unasked; it is refused."""
        return f"{self.address.rpartition('/')[0].rpartition('/')[0]}/favicon.ico"

    def interrupt(self):
        """Press Ctrl-C; gives the exit code, and what was said beyond the address."""
        self._process.send_signal(signal.SIGINT)
        code = self._process.wait(ENDS_WITHIN_S)
        self._said.end()
        return code, self._said.lines[1:]

    def close(self):
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
            self._said.end()


@contextmanager
def served(rack):
    running = Served(rack)
    try:
        yield running
    finally:
        running.close()


@pytest.mark.timeout(180)
def test_a_browser_shows_the_whole_story_and_offers_no_change(rack, require_program):
    pytest.importorskip("textual_serve")
    from browsers import chromium, page_of

    program = require_program("chromium")

    async def story(door, browser):
        async with page_of(browser) as page:
            await page.open(door.address)
            await page.see("live", "read-only", f"{CIRCUITS} circuits", without=["failed", *CHANGES])
            await page.press("2")  # nobody has clicked yet
            await page.see("JOB/RANK", LOST, without=["failed", *CHANGES])
            await asyncio.to_thread(rack, "sim", "fault", LOST, "gpu-lost")
            await page.click(" 5 Incidents ✖1")
            await page.see("TOUCHES", f"{LOST}: fell off the bus", without=CHANGES)
            await nothing_is_changed(page)
            await asyncio.to_thread(swap, rack)
            await the_swap_is_seen(page)
            await its_runbook_is_replayed(page)
            assert await asyncio.to_thread(door.interrupt) == (ExitCode.DONE, [])
            below = f"(http|ws):{door.address.partition(':')[2]}"
            assert [asked for asked in page.asked if not re.match(below, asked)] in ([], [door.favicon])

    with served(rack) as door, chromium(program) as browser:
        asyncio.run(story(door, browser))
    assert [run["run"] for run in rack.swaps()] == ["swap-0001"]  # nothing of a replay is kept


async def nothing_is_changed(page):
    await page.press("p")
    await page.see("TOUCHES", "read-only, as requested", without=CHANGES)
    await page.press("Enter")
    await page.see("no one has noted it yet", f"incident {LOST}", without=CHANGES)
    for key in ("p", "a"):
        await page.press(key)
        await page.see(f"incident {LOST}", "read-only, as requested", without=["spares considered", "Type a reason"])
    await page.press("Escape")
    await page.see("TOUCHES", without=["no one has noted it yet"])


def swap(rack):
    """What a colleague does on a terminal beside it."""
    assert rack.swaps() == []
    plan = rack("swap", "plan", "--failed", LOST, "-o", "name").strip()
    rack("swap", "apply", plan, "--yes")


async def the_swap_is_seen(page):
    await page.see("TOUCHES", "out of service")
    await page.press("3")
    await page.see("● ok", JOB, "as intended", lines=CIRCUITS)
    await page.see(f"{SPARE}-a", f"{SPARE}-b", without=[f"{LOST}-"])
    await page.press("6")
    await page.see("OUTCOME", f"{JOB}: replace {LOST} by {SPARE}")
    await page.press("Enter")
    await page.see("● done", "4 receivers proved", f"● hears {SPARE}-a", f"● hears {SPARE}-b", without=CHANGES)
    await page.press("u")
    await page.see("read-only, as requested", "4 receivers proved", without=["rollback"])
    await page.press("Escape")
    await page.see("OUTCOME")


async def its_runbook_is_replayed(page):
    """On a simulator of its own: that may be done by whoever may only look."""
    await page.press("7")
    await page.see("KIND", f"{JOB}: replace {LOST} by {SPARE}")
    await page.press("Enter")
    await page.see("recorded", "runbook swap-0001", "replacements", "s replay on sim")
    await page.press("s")
    await page.see("> next", "waits before step 1")
    await page.press("g")
    await page.see("● identical: done as recorded, 8 steps", "● the same", without=["DIFFERS"])

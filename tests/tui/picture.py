"""Draw the pictures of the dashboard that the README shows, beside this file or into the folder that is named.

``make pictures`` runs it, and a test holds the pictures to what it draws.
"""

import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from conftest import Stage, first_look, records
from rack_states import lost_gpu

SIZE = (120, 36)


class Picture(NamedTuple):
    """A screen of a rack that has just lost an accelerator: the keys that lead to it, and the theme."""

    keys: tuple[str, ...] = ()
    theme: str = "dark"


PICTURES: Mapping[str, Picture] = {
    "dashboard": Picture(),
    "dashboard-incidents": Picture(("5",)),
    "dashboard-light": Picture(theme="light"),
}


async def picture(name: str) -> str:
    """One of the pictures, as SVG."""
    wanted = PICTURES[name]
    dashboard = Stage(interval_s=2, seen=lost_gpu(), records=records(), racks=("rack64",)).dashboard()
    dashboard.show_in(wanted.theme)
    async with dashboard.run_test(size=SIZE) as pilot:
        await first_look(pilot)
        await pilot.press(*wanted.keys)
        await pilot.pause()
        return dashboard.export_screenshot(title="lumctl top", simplify=True) + "\n"


if __name__ == "__main__":
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    for each in PICTURES:
        (folder / f"{each}.svg").write_text(asyncio.run(picture(each)), encoding="utf-8")

"""Write the picture of the dashboard that the README shows: ``python tests/tui/picture.py PATH``."""

import asyncio
import sys
from pathlib import Path

from conftest import Stage, first_look

SIZE = (110, 30)


async def picture() -> str:
    """The accelerators of a rack that has just lost one, as SVG."""
    dashboard = Stage(interval_s=2).dashboard()
    async with dashboard.run_test(size=SIZE) as pilot:
        await first_look(pilot)
        await pilot.press("2")
        return dashboard.export_screenshot(title="lumctl top", simplify=True)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(asyncio.run(picture()) + "\n", encoding="utf-8")

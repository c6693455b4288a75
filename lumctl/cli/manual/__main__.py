"""``python -m lumctl.cli.manual FOLDER`` writes the pages of section 1 into a folder (default: ``man``)."""

import sys
from pathlib import Path

from lumctl.cli.manual.pages import write

write(Path(sys.argv[1] if len(sys.argv) > 1 else "man"))

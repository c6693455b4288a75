"""``python -m lumctl`` is the same as ``lumctl``."""

from lumctl.cli.main import main

main()

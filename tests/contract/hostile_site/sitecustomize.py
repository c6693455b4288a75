"""Makes a simulator hostile: put this folder on PYTHONPATH before ``lumctl sim up`` or ``launch``."""

import sys

if "lumctl.sim.server" in sys.orig_argv:
    import hostile

    hostile.install()

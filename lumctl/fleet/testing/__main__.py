"""Test an installed probe and print one JSON line for each rule: ``python -m lumctl.fleet.testing NAME``."""

import json
import sys
from dataclasses import asdict

from lumctl.fleet.probe_plugins import load
from lumctl.fleet.testing.contract import check_probe

for result in check_probe(load(sys.argv[1])):
    print(json.dumps(asdict(result)))  # noqa: T201 - it is read by lumctl plugin check

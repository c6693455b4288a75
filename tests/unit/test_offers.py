"""Plug-ins of one package are imported one after the other, of several packages at once."""

import threading
from importlib.metadata import EntryPoint

import pytest

from lumctl.offers import Offer, imported


@pytest.mark.parametrize(("packages", "meet"), [(("one", "one"), False), (("one", "two"), True)])
def test_imports_of_one_package_do_not_meet(monkeypatch, packages, meet):
    # Modules that import each other, in two threads at once, find each other half done.
    barrier, met = threading.Barrier(2), []

    def load(_point):
        try:
            barrier.wait(0.5)
        except threading.BrokenBarrierError:
            met.append(False)
        else:
            met.append(True)

    monkeypatch.setattr(EntryPoint, "load", load)
    offers = [Offer(str(at), f"{package}.m{at}:PlugIn", package, "1") for at, package in enumerate(packages)]
    threads = [threading.Thread(target=imported, args=("lumctl.drivers", offer, "driver")) for offer in offers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert met == [meet, meet]

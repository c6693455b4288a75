"""Hosts that are read by their Prometheus exporters: pages over HTTP, and their readings."""

from lumctl.fleet.exporters.probes import exporter_probes
from lumctl.fleet.exporters.reader import CombinedReader, ExporterReader, exporter_reader

__all__ = ["CombinedReader", "ExporterReader", "exporter_probes", "exporter_reader"]

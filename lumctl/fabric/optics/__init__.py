"""Light as waves: what a mesh of imperfect PUCs really sends to each port, and what of it is crosstalk.

A PUC has no reflection. From either end to the other it is, over its two sides,

    T = j e^(jD) [[sin t, cos t], [cos t, -sin t]],   D = (p0 + p1) / 2,   t = (p0 - p1) / 2

with ``p0`` and ``p1`` the phases of its two arms: equal phases are cross, a difference of pi is bar. Leaked light runs
in loops, so the waves at all terminals are the solution of one linear system, not a sum over ways.

What a number means:

* Light of one transmitter that reaches a port over several ways adds up as waves, so it depends on the phase of every
  waveguide, which nobody knows. :func:`~lumctl.fabric.optics.transmission.gains` holds for the phases given (0 where
  none are); :func:`~lumctl.fabric.optics.transmission.mean_gains` is the mean over random ones, and
  :func:`~lumctl.fabric.optics.transmission.incoherent_gains` adds powers instead of waves, one solve for nearly that
  mean.
* Light of two transmitters never interferes: their powers add.
* Everything holds for one wavelength and one polarisation, at rest. Drift and the drive of the PUCs are not modelled.

``model``, ``estimate`` and ``budget`` are plain Python; the others need the extra ``optics`` (numpy and scipy).
"""

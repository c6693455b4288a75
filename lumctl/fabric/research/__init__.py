"""Research parts of the fabric: no command needs them for daily work, and most need an optional library.

``exact`` finds the best routes of many circuits or proves that there are none (``lumctl[optimal]``), ``tour`` orders a
set of configurations so that few PUCs change, ``transmission`` and ``crosstalk`` are the field model of light in an
imperfect mesh (``lumctl[optics]``). Only ``lumctl fabric matchings``, ``fabric route --optimal`` and ``fabric trace
--crosstalk`` use them; an import contract in pyproject.toml enforces that.
"""

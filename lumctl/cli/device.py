"""``lumctl device``: meshes, switches, transponders and machines' power: what they show, and setting it."""

from lumctl.cli import device_set, device_show
from lumctl.cli.nouns import NOUNS
from lumctl.cli.verbs import noun_app

app = noun_app(NOUNS["device"].help)
device_show.register(app)
device_set.register(app)

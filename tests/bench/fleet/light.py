"""The harness's end of the light server."""

import json

from driver import HERE, Child
from rack import Rack


class LightServer(Child):
    """Answers at every loopback address, at ``port`` (the rack's own unless named)."""

    def __init__(self, rack: Rack, python: str, port: int | None = None) -> None:
        path = rack.folder / "light.json"
        path.write_text(json.dumps(rack.settings() | {"light_port": port or rack.port}))
        super().__init__("light", [python, str(HERE / "light_server.py"), str(path)], rack)
        try:
            self.reply(30.0)
        except BaseException:
            self.close()
            raise

"""The workers of a played job: what they do as they are told, and the steps that they do together."""

from dataclasses import dataclass, field


@dataclass
class Player:
    """One worker."""

    name: str
    accelerator: str
    host: str
    layout: str
    ready: bool = False
    rank: int | None = None
    generation: int = 0
    done: int = 0
    joining: bool = False
    world: int = 0
    parked: bool = True
    own: set[int] = field(default_factory=set)
    of: dict[int, set[int]] = field(default_factory=dict)
    stopped: tuple[int, list[int]] | None = None
    code: int | None = None
    """Its exit code, once it has ended by itself."""
    last: dict = field(default_factory=dict)
    """What its agent remembers of it, the newest last."""


class PlayedWorkers:
    """Workers of a theatre. They complain about whatever breaks the rules of the real ones."""

    def ready(self, player):
        return {"say": "ready", "store": ["127.0.0.1", 1], "state": ["127.0.0.1", 2], "layout": player.layout}

    def told(self, player, message):
        match message["do"]:
            case "hold":
                player.parked, player.joining = True, False
                player.generation = message["generation"]
                generation = message["generation"]
                self.say(player, lambda: self.held(player, generation))
            case "load":
                assert player.parked, f"{player.name} is given a state while it works"
                if (source := message["source"]) is None and message["file"] is None:
                    assert message["done"] in player.own, f"{player.name} never kept {message['done']}"
                assert source is None or source
                self.load(player, message)
                self.say(player, {"say": "loaded", "done": message["done"]})
            case "join":
                assert not self.moves, "a group is formed while light moves"
                assert player.parked
                assert player.done == message["done"], f"{player.name} joins after {player.done}, not {message['done']}"
                player.joining, player.world = True, message["world"]
                player.generation, player.rank = message["generation"], message["rank"]
                self.say(player, {"say": "joined", "generation": player.generation, "rank": player.rank})
            case "stop":
                player.stopped = message["done"], message["also"]

    def load(self, player, message):
        player.done, player.rank = message["done"], message["of"]
        if self.layout == "unique":
            player.own = {message["done"]}

    def held(self, player, generation):
        keeps = {"own": sorted(player.own), "of": {str(rank): sorted(done) for rank, done in player.of.items()}}
        return {"say": "held", "generation": generation, "done": player.done, "keeps": keeps}

    def step(self):
        """All ranks of a whole group do a step; each may be told late."""
        crew = [self.players.get(name) for name in self.coordinator.group.crew.values()]
        if any(p is None or not p.joining or p.name in self.mute for p in crew):
            return False
        if not crew or self.dark or len({p.generation for p in crew}) > 1:
            return False
        assert len({p.done for p in crew}) == 1, "ranks of one group do different steps"
        world = len(crew)
        if any(p.world != world for p in crew):
            return False  # some of the group are not known to a coordinator that has just begun
        for player in crew:
            player.parked = False
            player.done += 1
            if self.layout == "unique":
                player.own = set(sorted({*player.own, player.done - 1, player.done})[-3:])
        if self.layout == "unique":
            for player in crew:
                keeper = next(p for p in crew if p.rank == (player.rank + 1) % world)
                keeper.of[player.rank] = set(sorted({*keeper.of.get(player.rank, set()), player.done})[-3:])
        for player in crew:
            self.say(player, {"say": "stepped", "generation": player.generation, "done": player.done, "at": self.at})
        return True

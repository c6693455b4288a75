"""The workers of a played job: what they do as they are told, and the steps that they do together."""

from dataclasses import dataclass, field


@dataclass
class FakeProcess:
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


class FakeProcesses:
    """Workers of a cluster. They complain about whatever breaks the rules of the real ones."""

    def ready(self, process):
        return {"say": "ready", "store": ["127.0.0.1", 1], "state": [process.name, 2], "layout": process.layout}

    def told(self, process, message):
        match message["do"]:
            case "hold":
                process.parked, process.joining = True, False
                process.generation = message["generation"]
                generation = message["generation"]
                self.say(process, lambda: self.held(process, generation))
            case "load":
                assert process.parked, f"{process.name} is given a state while it works"
                if (source := message["source"]) is None and message["file"] is None:
                    assert message["done"] in process.own, f"{process.name} never kept {message['done']}"
                self.require_held(source, message["done"])
                self.say(process, {"say": "loaded", "done": message["done"]}, lambda: self.load(process, message))
            case "join":
                assert not self.moves, "a group is formed while light moves"
                assert process.parked
                assert process.done == message["done"], (
                    f"{process.name} joins after {process.done}, not {message['done']}"
                )
                process.joining, process.world = True, message["world"]
                process.generation, process.rank = message["generation"], message["rank"]
                self.say(process, {"say": "joined", "generation": process.generation, "rank": process.rank})
            case "stop":
                process.stopped = message["done"], message["also"]

    def require_held(self, source, done):
        if source is not None and self.layout == "replicated" and (holder := self.processes.get(source[0])) is not None:
            assert holder.parked, f"a state is read from {holder.name} while it works"
            assert holder.done == done, f"{holder.name} has done {holder.done} steps, not {done}"

    def load(self, process, message):
        process.done, process.rank = message["done"], message["of"]
        if self.layout == "unique":
            process.own = {message["done"]}

    def held(self, process, generation):
        keeps = {"own": sorted(process.own), "of": {str(rank): sorted(done) for rank, done in process.of.items()}}
        return {"say": "held", "generation": generation, "done": process.done, "keeps": keeps}

    def step(self):
        """All ranks of a whole group do a step; each may be told late."""
        crew = [self.processes.get(name) for name in self.state.group.members.values()]
        if any(p is None or not p.joining or p.name in self.mute for p in crew):
            return False
        if not crew or self.dark or len({p.generation for p in crew}) > 1:
            return False
        assert len({p.done for p in crew}) == 1, "ranks of one group do different steps"
        world = len(crew)
        if any(p.world != world for p in crew):
            return False  # some of the group are not known to a coordinator that has just begun
        for process in crew:
            process.parked = False
            process.done += 1
            if self.layout == "unique":
                process.own = set(sorted({*process.own, process.done - 1, process.done})[-3:])
        if self.layout == "unique":
            for process in crew:
                keeper = next(p for p in crew if p.rank == (process.rank + 1) % world)
                keeper.of[process.rank] = set(sorted({*keeper.of.get(process.rank, set()), process.done})[-3:])
        for process in crew:
            self.say(process, {"say": "stepped", "generation": process.generation, "done": process.done, "at": self.at})
        return True

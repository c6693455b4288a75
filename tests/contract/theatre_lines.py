"""The agents of a played job: what they remember of its workers, and the lines to them, which may be lost."""

from lumctl.training.workers import still_holds


class PlayedLines:
    """Lines of a theatre; whoever mixes it in has players, and says things later."""

    def open(self, host):
        self.opened.append(host)
        if host in self.dead_hosts or self.refuses.get(host, 0) > 0:
            self.refuses[host] = self.refuses.get(host, 0) - 1
            self.later(host, lambda: self.coordinator.heard(host, None, "no route"))
            return
        told = [
            {
                "worker": p.name,
                "accelerator": p.accelerator,
                "pid": 1,
                "alive": p not in self.dead,
                "code": p.code,
                "last": {**p.last},
            }
            for p in [*self.dead, *self.players.values()]
            if p.host == host
        ]
        self.lines.add(host)
        self.late[host] = late = []
        self.later(host, lambda: self.listed(host, told, late))

    def listed(self, host, told, late):
        if self.late.get(host) is not late:
            return  # that line is lost again
        self.coordinator.heard(host, {"tell": "list", "workers": told}, "")
        del self.late[host]
        for message in late:
            self.coordinator.heard(host, message, "")

    def hears(self, host, message):
        """The agent of a host tells something, if somebody listens to it."""
        if host in self.late:
            self.late[host].append(message)
        elif host in self.lines:
            self.coordinator.heard(host, message, "")

    def lose_line(self, host, refused=0):
        """The line to a host is lost, and the host lets nobody in for so many times."""
        if host in self.lines:
            self.lines.discard(host)
            self.late.pop(host, None)
            self.refuses[host] = refused
            self.later(host, lambda: self.coordinator.heard(host, None, "connection reset"))

    def restart_agent(self, host):
        """The agent of a host is killed; the next one is told again by all what holds."""
        if host not in self.lines:
            return
        mine = [player for player in self.players.values() if player.host == host]
        for player in mine:
            for fleeting in ("hello", "stepped"):
                player.last.pop(fleeting, None)
        self.dead = [player for player in self.dead if player.host != host]
        self.lose_line(host)
        for player in mine:
            for message in still_holds(player.last):
                if message["say"] != "stepped":
                    self.later(player.name, lambda player=player, message=message: self.says_again(player, message))

    def says_again(self, player, message):
        if player.last.get(message["say"]) is message and player.name in self.players:
            self.hears(player.host, {"tell": "said", "worker": player.name, "message": message, "at": self.at})

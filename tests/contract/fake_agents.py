"""The fake agents of a job: what they remember of its workers, and the lines to them, which may be lost."""

from lumctl.training.coordinator import agent_reports
from lumctl.training.coordinator.workers import still_holds


class FakeAgents:
    """Lines of a cluster; whoever mixes it in has processes, and says things later."""

    def open(self, host):
        self.opened.append(host)
        if host in self.dead_hosts or self.refuses.get(host, 0) > 0:
            self.refuses[host] = self.refuses.get(host, 0) - 1
            self.later(host, lambda: agent_reports.receive(self.state, host, None, "no route"))
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
            for p in [*self.dead, *self.processes.values()]
            if p.host == host
        ]
        self.lines.add(host)
        self.late[host] = late = []
        self.later(host, lambda: self.listed(host, told, late))

    def listed(self, host, told, late):
        if self.late.get(host) is not late:
            return  # that line is lost again
        agent_reports.receive(self.state, host, {"tell": "list", "workers": told}, "")
        del self.late[host]
        for message in late:
            agent_reports.receive(self.state, host, message, "")

    def hears(self, host, message):
        """The agent of a host tells something, if somebody listens to it."""
        if host in self.late:
            self.late[host].append(message)
        elif host in self.lines:
            agent_reports.receive(self.state, host, message, "")

    def lose_line(self, host, refused=0):
        """The line to a host is lost, and the host lets nobody in for so many times."""
        if host in self.lines:
            self.lines.discard(host)
            self.late.pop(host, None)
            self.refuses[host] = refused
            self.later(host, lambda: agent_reports.receive(self.state, host, None, "connection reset"))

    def restart_agent(self, host):
        """The agent of a host is killed; the next one is told again by all what holds."""
        if host not in self.lines:
            return
        mine = [process for process in self.processes.values() if process.host == host]
        for process in mine:
            for fleeting in ("hello", "stepped"):
                process.last.pop(fleeting, None)
        self.dead = [process for process in self.dead if process.host != host]
        self.lose_line(host)
        for process in mine:
            for message in still_holds(process.last):
                if message["say"] != "stepped":
                    self.later(process.name, lambda process=process, message=message: self.says_again(process, message))

    def says_again(self, process, message):
        if process.last.get(message["say"]) is message and process.name in self.processes:
            self.hears(process.host, {"tell": "said", "worker": process.name, "message": message, "at": self.at})

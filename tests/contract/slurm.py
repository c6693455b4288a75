"""A real Slurm for tests, in a folder of its own: munged, slurmctld and a slurmd for each node, all on loopback."""

import getpass
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

STARTS_WITHIN_S = 30.0
PARTS = ("munged", "slurmctld", "slurmd", "scontrol", "squeue", "sinfo", "sbatch")
CONFIGURATION = """ClusterName=lumctl
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/linear
SwitchType=switch/none
MpiDefault=none
SchedulerParameters=batch_sched_delay=0,sched_interval=1,bf_interval=1
ReturnToService=2
KillWait=1
MessageTimeout=5
"""


class Slurm:
    """A cluster of small nodes on this machine; ``environment`` leads its commands to it."""

    def __init__(self, require_program: Callable[[str], str], nodes: int) -> None:
        self._programs = {name: require_program(name) for name in PARTS}
        # Not pytest's own folder: the path of a socket must be short, and others must come to it.
        self.folder = Path(tempfile.mkdtemp(prefix="slurm-"))
        self.folder.chmod(0o755)
        self.names = [f"n{number}" for number in range(nodes)]
        self.environment = {"SLURM_CONF": str(self.folder / "slurm.conf")}
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}
        try:
            self._configure()
            self._start("munged", "-F", *self._munge(), until=(self.folder / "munge.socket").exists)
            self._start("slurmctld", "-D", until=lambda: not self("scontrol", "ping", check=False).returncode)
            for name in self.names:
                self._start("slurmd", "-D", "-N", name, named=name)
            self.until(lambda: self.states() == dict.fromkeys(self.names, "idle"))
        except BaseException:
            self.close()
            raise

    def _configure(self) -> None:
        held = [socket.create_server(("127.0.0.1", 0)) for _ in range(len(self.names) + 1)]
        ports = [each.getsockname()[1] for each in held]
        for each in held:
            each.close()
        host = socket.gethostname()
        text = CONFIGURATION.format(host=host, ports=ports, folder=self.folder, user=getpass.getuser())
        for name, port in zip(self.names, ports[1:], strict=True):
            text += f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=1 State=UNKNOWN\n"
        (self.folder / "slurm.conf").write_text(text + "PartitionName=all Nodes=ALL Default=YES State=UP\n")
        (self.folder / "state").mkdir()
        (self.folder / "key").write_bytes(os.urandom(128))
        (self.folder / "key").chmod(0o400)

    def _munge(self) -> list[str]:
        files = {"key-file": "key", "socket": "munge.socket", "pid-file": "munged.pid", "log-file": "munged.log"}
        return [f"--{option}={self.folder / file}" for option, file in (files | {"seed-file": "seed"}).items()]

    def _start(self, program: str, *words: str, named: str = "", until: Callable[[], bool] = lambda: True) -> None:
        self._daemons[named or program] = process = subprocess.Popen(
            [self._programs[program], *words],
            env={**os.environ, **self.environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        self.until(lambda: process.poll() is not None or until())
        assert process.poll() is None, f"{program} has ended: see {self.folder}"

    def __call__(self, *words: str, check: bool = True) -> subprocess.CompletedProcess[str]:
        """Run one of its commands."""
        done = subprocess.run(
            words,
            env={**os.environ, **self.environment},
            capture_output=True,
            text=True,
            timeout=STARTS_WITHIN_S,
            check=False,
            stdin=subprocess.DEVNULL,
            cwd=self.folder,
        )
        assert not check or done.returncode == 0, (words, done.stderr)
        return done

    def submit(self, name: str, *options: str) -> str:
        """Submit a job that runs until it is ended; its number."""
        script = f": > {self.folder}/script-$SLURM_JOB_ID-${{SLURM_RESTART_COUNT:-0}}; exec sleep 3600"
        job = self("sbatch", "--parsable", f"--job-name={name}", "--output=/dev/null", *options, f"--wrap={script}")
        return job.stdout.strip()

    def job(self, number: str) -> tuple[str, str]:
        """A job's state and its nodes."""
        line = self("squeue", "--noheader", "--states=all", f"--jobs={number}", "--format=%T|%N").stdout.strip()
        state, _, nodes = line.partition("|")
        return state, nodes

    def runs(self, number: str, nodes: str) -> None:
        """Wait until a job runs on its nodes."""
        self.until(lambda: self.job(number) == ("RUNNING", nodes))

    def script_runs(self, number: str) -> bool:
        """Whether the script of a job that was last started has begun."""
        restarts = self("squeue", "--noheader", f"--jobs={number}", "--Format=RestartCnt").stdout.strip()
        return (self.folder / f"script-{number}-{restarts}").exists()

    def states(self) -> dict[str, str]:
        """The state of each node."""
        lines = self("sinfo", "--noheader", "--Node", "--format=%N|%T", check=False).stdout.split()
        return dict(line.split("|") for line in lines)

    def reason(self, node: str) -> str:
        """Why a node is not in use."""
        return self("sinfo", "--noheader", "--Node", f"--nodes={node}", "--format=%E").stdout.strip()

    def clear(self) -> None:
        """End all jobs and put all nodes back into use."""
        self("scancel", f"--user={getpass.getuser()}")
        for name, state in self.states().items():
            if "drain" in state:
                self("scontrol", "update", f"nodename={name}", "state=resume")
        self.until(lambda: self.states() == dict.fromkeys(self.names, "idle"))

    @staticmethod
    def until(so: Callable[[], bool]) -> None:
        """Wait for what nothing tells of."""
        ends = time.monotonic() + STARTS_WITHIN_S
        while not so():
            assert time.monotonic() < ends
            time.sleep(0.02)

    def close(self) -> None:
        """End everything, jobs first."""
        for name in reversed(self._daemons):
            if name == "slurmctld":
                self("scancel", f"--user={getpass.getuser()}", check=False)
        for process in reversed(self._daemons.values()):
            self._end(process)
        shutil.rmtree(self.folder, ignore_errors=True)

    @staticmethod
    def _end(process: subprocess.Popen[bytes]) -> None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

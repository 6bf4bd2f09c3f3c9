"""A cluster of Slurm that is this machine alone: both daemons in the foreground, on free ports, with all files in one folder."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

PROGRAMS = ("slurmctld", "slurmd", "srun", "sbatch", "salloc", "scancel", "squeue", "sinfo", "scontrol")
# Processes are trusted (auth/none) and not accounted for; the node claims more CPUs than the machine may have.
CONFIGURATION = """\
ClusterName=here
SlurmctldHost={node}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
AuthType=auth/none
CredType=cred/none
SlurmUser={user}
SlurmdUser={user}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
MpiDefault=none
NodeName={node} NodeAddr=127.0.0.1 CPUs=8 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def program(name: str) -> str | None:
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def is_installed() -> bool:
    return all(map(program, PROGRAMS))


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


class Slurm:
    """Commands of Slurm find it with `environment`."""

    def __init__(self) -> None:
        self.temporary = tempfile.TemporaryDirectory(prefix="slurm-")
        folder = Path(self.temporary.name)
        for name in ("state", "spool"):
            (folder / name).mkdir()
        (folder / "slurm.conf").write_text(CONFIGURATION.format(
            node=os.uname().nodename.split(".")[0], ports=free_ports(2), user=getpass.getuser(), folder=folder))
        self.environment = {"SLURM_CONF": str(folder / "slurm.conf")}
        self.daemons = []
        for name in ("slurmctld", "slurmd"):
            with (folder / f"{name}.out").open("w") as log:
                self.daemons.append(subprocess.Popen([program(name), "-D", "-c"], stdout=log, stderr=log,
                                                     stdin=subprocess.DEVNULL, env={**os.environ, **self.environment}))
        end = time.monotonic() + 60
        while self.said("sinfo", "-h", "-o", "%T") != "idle":
            if time.monotonic() > end or any(daemon.poll() is not None for daemon in self.daemons):
                logs = "\n".join(path.read_text() for path in sorted(folder.glob("*.out")))
                self.stop()
                raise RuntimeError(f"Slurm does not start:\n{logs}")
            time.sleep(0.1)

    def said(self, *command: str) -> str:
        return subprocess.run(command, capture_output=True, text=True, env={**os.environ, **self.environment}).stdout.strip()

    def stop(self) -> None:
        self.said("scancel", "--me")
        end = time.monotonic() + 40
        while self.said("squeue", "-h") and time.monotonic() < end:
            time.sleep(0.1)
        for daemon in reversed(self.daemons):
            daemon.terminate()
            daemon.wait(timeout=60)
        self.temporary.cleanup()

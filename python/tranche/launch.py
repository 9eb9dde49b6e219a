"""Starts a script on several ranks of this machine, by the launcher of the library's
MPI.

Each rank runs this module, which runs the script: so an exit with an error ends all
ranks, and the signal that launchers hand on is a KeyboardInterrupt.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import runpy
import shutil
import signal
import socket
import subprocess
import sys
from typing import Any

from tranche import _declarations as c
from tranche._library import library, with_open_mpi
from tranche.error import Error, Status

# Ways of Open MPI between processes of one machine, which need no network and no ssh.
_OPEN_MPI = {
    "OMPI_MCA_orte_execute_quiet": "1",
    "OMPI_MCA_plm": "isolated",
    "OMPI_MCA_oob_tcp_if_include": "lo",
    "OMPI_MCA_btl_tcp_if_include": "lo",
}
_AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def _is_open_mpi(launcher: str) -> bool:
    """An `mpirun` may be MPICH's."""
    told = subprocess.run([launcher, "--version"], capture_output=True, text=True)
    return "HYDRA" not in told.stdout


def _launcher(names: list[str], open_mpi: bool) -> str | None:
    for path in map(shutil.which, filter(None, names)):
        if path is not None and _is_open_mpi(path) == open_mpi:
            return path
    return None


def _command() -> tuple[list[str], dict[str, str]]:
    """The launcher with its options, and what its environment needs."""
    built = ctypes.c_char_p()
    mpi = library().tr_comm_mpi(ctypes.byref(built))
    other = with_open_mpi() if mpi == c.TR_MPI_NONE else None
    if mpi == c.TR_MPI_NONE and other is None:
        raise Error(
            Status.COMM,
            "this package was built without MPI: install Open MPI or MPICH and build "
            "it here (pip install . in the source tree), or run one process",
        )
    open_mpi = mpi != c.TR_MPI_MPICH
    known = (
        ["mpirun.openmpi", "mpirun"] if open_mpi else ["mpirun.mpich", "mpiexec.hydra"]
    )
    found = _launcher([(built.value or b"").decode(), *known], open_mpi)
    if found is None:
        name = "Open MPI" if open_mpi else "MPICH"
        raise Error(
            Status.COMM, f"there is no {known[0]} to start ranks: install {name}"
        )
    if not open_mpi:
        return [found], {}
    environment = {**_OPEN_MPI, **(_AS_ROOT if os.geteuid() == 0 else {})}
    if other:
        environment["TRANCHE_LIBRARY"] = str(other)
    return [found, "--oversubscribe", "--bind-to", "none"], environment


def _meeting_place() -> dict[str, str]:
    """Where torch.distributed meets, if the script has a use for it, too."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    return {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}


def _start(ranks: int, words: list[str]) -> int:
    launcher, environment = _command()
    command = [
        *launcher,
        "-n",
        str(ranks),
        sys.executable,
        "-m",
        "tranche.launch",
        *words,
    ]
    # A terminal's signals go to this process alone, which hands them on as SIGUSR1:
    # launchers give that to the ranks.
    environment = {**_meeting_place(), **environment, **os.environ}
    child = subprocess.Popen(command, env=environment, start_new_session=True)
    caught = 0

    def hand_on(number: int, _: Any) -> None:
        nonlocal caught
        child.send_signal(signal.SIGTERM if caught else signal.SIGUSR1)
        caught = caught or number

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1):
        signal.signal(number, hand_on)
    status = child.wait()
    status = 128 - status if status < 0 else status
    return 128 + caught if caught and status >= 128 else status


def main(words: list[str]) -> int:
    """`python -m tranche launch -n RANKS SCRIPT ...`"""
    options = argparse.ArgumentParser(
        prog="python -m tranche launch", description="Starts a script on several ranks."
    )
    options.add_argument("-n", "--ranks", type=int, required=True, metavar="RANKS")
    options.add_argument("script")
    options.add_argument("arguments", nargs=argparse.REMAINDER)
    asked = options.parse_args(words)
    if not 1 <= asked.ranks <= 4096:
        options.error(f"-n {asked.ranks}: from 1 to 4096 ranks")
    if not os.path.exists(asked.script):
        options.error(f"{asked.script}: there is no such script")
    try:
        return _start(asked.ranks, [asked.script, *asked.arguments])
    except Error as error:
        print(f"tranche: {error}", file=sys.stderr)
        return error.status.exit_status


def _interrupt(*_: Any) -> None:
    raise KeyboardInterrupt


def run_script(words: list[str]) -> int:
    """In a rank: the script as if it had been started itself."""
    from tranche import ranks

    signal.signal(signal.SIGUSR1, _interrupt)
    sys.argv[:] = words
    sys.path[0] = os.path.dirname(os.path.abspath(words[0]))
    try:
        runpy.run_path(words[0], run_name="__main__")
    except SystemExit as end:
        if end.code not in (None, 0):
            ranks.abandon(end)
        raise
    except KeyboardInterrupt:
        return 128 + signal.SIGUSR1
    return 0


if __name__ == "__main__":
    sys.exit(run_script(sys.argv[1:]))

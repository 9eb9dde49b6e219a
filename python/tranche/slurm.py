"""Ranks that srun has started without MPI: what it tells them, in the names of PyTorch's
launchers."""

from __future__ import annotations

import os

_FIRST_PORT, _PORTS = 15000, 15000


def place() -> dict[str, str] | None:
    """RANK, WORLD_SIZE, LOCAL_RANK, MASTER_ADDR and MASTER_PORT; None: srun has started
    no other ranks."""
    told = os.environ.get
    rank, count = told("SLURM_PROCID", ""), told("SLURM_STEP_NUM_TASKS", "")
    nodes = told("SLURM_STEP_NODELIST") or told("SLURM_JOB_NODELIST") or ""
    if not rank.isdigit() or not count.isdigit() or int(count) < 2 or not nodes:
        return None
    return {
        "RANK": rank,
        "WORLD_SIZE": count,
        "LOCAL_RANK": told("SLURM_LOCALID", "0"),
        "MASTER_ADDR": told("MASTER_ADDR") or first_host(nodes),
        "MASTER_PORT": told("MASTER_PORT") or str(_port()),
    }


def _port() -> int:
    """One for each step of each job."""
    job, step = (
        int(text) if text.isdigit() else 0
        for text in (os.environ.get(n, "") for n in ("SLURM_JOB_ID", "SLURM_STEP_ID"))
    )
    return _FIRST_PORT + (job * 37 + step) % _PORTS


def first_host(nodes: str) -> str:
    """Of a list as Slurm writes it, such as node[03-05,08],login1."""
    name, bracket, rest = nodes.partition("[")
    if not bracket or "," in name:
        return nodes.partition(",")[0]
    inside, _, behind = rest.partition("]")
    first = inside.partition(",")[0].partition("-")[0]
    return first_host(name + first + behind)

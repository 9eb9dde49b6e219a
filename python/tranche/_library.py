"""Finds and loads the shared library, once, when it is first needed."""

from __future__ import annotations

import ctypes
import importlib.util
import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tranche.error import Error, Status

_FOLDER = Path(__file__).parent
_OPENMP = "libgomp.so.1"
# What Open MPI's mpirun, and srun with its protocol, set for each rank.
_STARTED = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK"}
_lock = threading.Lock()
_loaded: Any = None


def program() -> Path:
    """The program `tranche`, which comes with the package."""
    return _FOLDER / "bin" / "tranche"


def library() -> Any:
    """The library, with the types of all its functions."""
    global _loaded
    if _loaded is None:
        with _lock:
            if _loaded is None:
                _loaded = _load()
    return _loaded


def _load() -> Any:
    from tranche import _declarations

    with _short_spinning():
        _load_openmp()
        try:
            found = ctypes.CDLL(str(_find()))
        except OSError as error:
            raise ImportError(
                f"tranche: its library cannot be loaded: {error}"
            ) from error
    for name, (result, parameters) in _declarations.FUNCTIONS.items():
        function = getattr(found, name)
        function.restype = result
        function.argtypes = parameters
    if found.tr_version_number() != _declarations.TRANCHE_VERSION_NUMBER:
        raise ImportError(
            f"tranche: the library is version {found.tr_version().decode()}, and this "
            f"package is for another one: install the package anew"
        )
    return found


def _find() -> Path:
    named = os.environ.get("TRANCHE_LIBRARY")
    if named:
        return Path(named)
    found = with_open_mpi() if _STARTED.intersection(os.environ) else None
    found = found or _in(_FOLDER / "lib")
    if found is None:
        raise ImportError(
            f"tranche: there is no library in {_FOLDER / 'lib'}: install the package "
            f"(make wheel), or name a libtranche.so in TRANCHE_LIBRARY"
        )
    return found


def with_open_mpi() -> Path | None:
    """A wheel has the library twice: alone, and for the Open MPI of the machine, which
    launchers of ranks need."""
    return _in(_FOLDER / "lib" / "openmpi")


def _in(folder: Path) -> Path | None:
    return next(folder.glob("libtranche.so*"), None)


def _load_openmp() -> None:
    """A process has one OpenMP: all that ask for libgomp.so.1 get the first that was
    loaded. PyTorch's comes first where it is installed, because PyTorch was built with
    it; then the system's or, in a wheel, the one beside the library."""
    torch = None if "torch" in sys.modules else importlib.util.find_spec("torch")
    for folder in torch.submodule_search_locations or [] if torch else []:
        file = Path(folder) / "lib" / _OPENMP
        if file.exists():
            ctypes.CDLL(str(file))


@contextmanager
def _short_spinning() -> Iterator[None]:
    """OpenMP's threads that wait spin briefly, as in the program `tranche`: it reads
    the variable when it is loaded. What the user says counts, and the environment
    stays."""
    if "GOMP_SPINCOUNT" in os.environ or "OMP_WAIT_POLICY" in os.environ:
        yield
        return
    os.environ["GOMP_SPINCOUNT"] = "1000"
    try:
        yield
    finally:
        del os.environ["GOMP_SPINCOUNT"]


def check(status: int, error: Any) -> None:
    """Raises what a call of the library has told."""
    if status != Status.OK:
        message = error.message.decode("utf-8", "replace")
        raise Error(Status(status), message or Status(status).name.lower())

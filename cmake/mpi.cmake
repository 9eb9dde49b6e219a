# TRANCHE_MPI: whether the ranks of an MPI launcher are supported. Which MPI: the one of
# TRANCHE_MPI_COMPILER; without a name CMake looks for one.
set(TRANCHE_MPI AUTO CACHE STRING "ranks over MPI: AUTO (where it is found), ON, OFF")
set(TRANCHE_MPI_COMPILER "" CACHE STRING
    "command of the MPI to use (mpicc.openmpi, mpicc.mpich, a path)")

set(TR_MPI_FOUND FALSE)
if(TRANCHE_MPI)
    if(TRANCHE_MPI_COMPILER)
        set(MPI_C_COMPILER ${TRANCHE_MPI_COMPILER} CACHE STRING "" FORCE)
    endif()
    if(TRANCHE_MPI STREQUAL "AUTO")
        find_package(MPI COMPONENTS C)
    else()
        find_package(MPI REQUIRED COMPONENTS C)
    endif()
    set(TR_MPI_FOUND ${MPI_C_FOUND})
    if(NOT TR_MPI_FOUND)
        message(WARNING "MPI is not installed: this program has one rank, and cannot be "
            "started by mpirun or srun (Debian: libopenmpi-dev)")
    endif()
endif()

if(TR_MPI_FOUND)
    set(TR_MPI_LIBRARY MPI::MPI_C)
    set(TR_COMM_EXCLUDED "/src/comm/mpi_none\\.c$")
else()
    set(TR_MPI_LIBRARY "")
    set(TR_COMM_EXCLUDED "/src/comm/mpi(_check|_control|_move|_world)?\\.c$")
endif()

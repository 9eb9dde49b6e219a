#!/bin/sh
# launch.sh MPIRUN W COMMAND...: runs a command on W ranks, whoever asks (root too) and
# however few cores there are, with as few words of the launcher as can be.
set -eu
mpirun=$1 ranks=$2
shift 2

case $("$mpirun" --version 2>&1) in
*'Open MPI'* | *OpenRTE*)
    if [ "$(id -u)" -eq 0 ]; then
        OMPI_ALLOW_RUN_AS_ROOT=1
        OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
        export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM
    fi
    # Open MPI 4: no words on ranks that end with a status (5 has no --quiet).
    : "${OMPI_MCA_orte_execute_quiet:=1}"
    export OMPI_MCA_orte_execute_quiet
    exec "$mpirun" --oversubscribe --bind-to none -n "$ranks" "$@"
    ;;
*)
    # It writes to ranks that may have ended, and would be killed by that at times.
    trap '' PIPE
    exec "$mpirun" -n "$ranks" "$@"
    ;;
esac

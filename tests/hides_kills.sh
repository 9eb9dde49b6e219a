#!/bin/sh
# hides_kills.sh MPIRUN: ends with 0 where this launcher may end with 0 although a rank has
# been killed, as MPICH's 4.2 does now and then. Tests then ask it for no status.
"$1" --version 2>&1 | grep -q HYDRA

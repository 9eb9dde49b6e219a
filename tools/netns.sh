#!/bin/sh
# netns.sh: a slow network on one machine, for two ranks. Two network namespaces, joined
# by two pairs of virtual interfaces: "data", shaped, and "control", as it is, for the
# launcher's own words. It needs root and iproute2; where it is not permitted it says so
# and ends with status 77.
#
#     netns.sh run RATE DELAY COMMAND...
#         makes the network, runs the command, removes the network, and ends with the
#         command's status. RATE and DELAY: of the data link in each direction, in tc's
#         words ("1gbit", "0.1ms"), or "none". The command finds in its environment
#         NETNS_A and NETNS_B, the namespaces, and NETNS_DELAY: DELAY, or nothing
#         where the kernel cannot delay (sch_netem).
#     netns.sh mpirun MPIRUN COMMAND...
#         within: two ranks, one in each namespace, over TCP on the data link alone; with
#         NETNS_EACH in the environment, so many in each
#     netns.sh cut
#         within: takes the data link down
set -eu

data=10.91.7 control=10.91.8

refuse() {
    echo "netns: $1" >&2
    exit 77
}

# ---- making

# pair NAME NETWORK: an interface NAME in each namespace
pair() {
    ip link add "$1" netns "$NETNS_A" type veth peer name "$1" netns "$NETNS_B" &&
        end "$NETNS_A" "$1" "$2.1" && end "$NETNS_B" "$1" "$2.2"
}

end() {
    ip -n "$1" addr add "$3/24" dev "$2" && ip -n "$1" link set "$2" up
}

remove() {
    trap - EXIT INT TERM
    for space in "$NETNS_A" "$NETNS_B"; do
        ip netns pids "$space" 2>/dev/null | xargs -r kill -9 2>/dev/null || true
        ip netns del "$space" 2>/dev/null || true
    done
}

# Until the kernel has seen that both ends are up; libraries ask for that.
carry() {
    for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        if ip -n "$NETNS_A" link show "$1" | grep -q 'state UP' &&
            ip -n "$NETNS_B" link show "$1" | grep -q 'state UP'; then
            return 0
        fi
        sleep 0.1
    done
    return 1
}

# What processes left behind that were killed before they could remove it.
sweep() {
    for space in $(ip netns list | sed -n 's/^\(tranche[0-9]*[ab]\)\>.*/\1/p'); do
        owner=${space#tranche}
        [ -e "/proc/${owner%[ab]}" ] || ip netns del "$space" 2>/dev/null || true
    done
}

# shape NAMESPACE RATE DELAY
shape() {
    tc -n "$1" qdisc add dev data root handle 1: tbf rate "$2" burst 256kb \
        latency 50ms || refuse "tc cannot shape here (sch_tbf)"
    if [ "$3" != none ] && tc -n "$1" qdisc add dev data parent 1:1 handle 10: \
        netem delay "$3" limit 10000 2>/dev/null; then
        NETNS_DELAY=$3
    fi
}

# make RATE DELAY
make() {
    NETNS_A=tranche$$a NETNS_B=tranche$$b NETNS_DELAY=
    export NETNS_A NETNS_B NETNS_DELAY
    if ! command -v ip || ! command -v tc; then
        refuse "no iproute2 here"
    fi >/dev/null
    sweep
    trap remove EXIT
    trap 'exit 130' INT TERM
    if ! ip netns add "$NETNS_A" || ! ip netns add "$NETNS_B"; then
        refuse "network namespaces are not permitted here"
    fi 2>/dev/null
    if ! pair data $data || ! pair control $control; then
        refuse "no virtual interfaces here"
    fi
    for space in "$NETNS_A" "$NETNS_B"; do
        ip -n "$space" link set lo up
        [ "$1" = none ] || shape "$space" "$1" "$2"
    done
    if ! carry data || ! carry control; then
        refuse "the virtual interfaces do not come up"
    fi
}

# ---- using

# inside NAMESPACE COMMAND...: with the namespace's name as host name, by which launchers
# tell machines apart
inside() {
    space=$1
    shift
    # shellcheck disable=SC2016
    exec ip netns exec "$space" unshare --uts sh -c 'hostname "$0" && exec "$@"' \
        "$space" "$@"
}

# What a launcher takes for ssh: [OPTION...] HOST COMMAND...
remote() {
    while [ "${1#-}" != "$1" ]; do
        shift
    done
    case $1 in
    *.1) space=$NETNS_A ;;
    *) space=$NETNS_B ;;
    esac
    shift
    inside "$space" sh -c "$*"
}

launch() {
    mpirun=$1 each=${NETNS_EACH:-1}
    shift
    self=$(cd "$(dirname "$0")" && pwd)/netns.sh
    case $("$mpirun" --version 2>&1) in
    *'Open MPI'* | *OpenRTE*)
        OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
            OMPI_MCA_orte_execute_quiet=1
        export OMPI_ALLOW_RUN_AS_ROOT OMPI_ALLOW_RUN_AS_ROOT_CONFIRM \
            OMPI_MCA_orte_execute_quiet
        inside "$NETNS_A" "$mpirun" -n $((2 * each)) \
            --host "$control.1:$each,$control.2:$each" \
            --bind-to none --mca plm_rsh_agent "$self" \
            --mca oob_tcp_if_include "$control.0/24" \
            --mca btl_tcp_if_include "$data.0/24" --mca pml ob1 --mca btl tcp,self "$@"
        ;;
    *)
        # Two hosts by their addresses: MPICH's own shared memory is for one host.
        UCX_TLS=tcp,self UCX_NET_DEVICES=data
        export UCX_TLS UCX_NET_DEVICES
        inside "$NETNS_A" "$mpirun" -n $((2 * each)) -ppn "$each" \
            -hosts "$control.1,$control.2" -iface control \
            -launcher ssh -launcher-exec "$self" "$@"
        ;;
    esac
}

case ${1:-} in
run)
    if [ $# -lt 4 ] || [ -n "${NETNS_A:-}" ]; then
        echo "netns: run RATE DELAY COMMAND..., and not within another" >&2
        exit 2
    fi
    make "$2" "$3"
    shift 3
    rc=0
    "$@" || rc=$?
    exit "$rc"
    ;;
mpirun)
    shift
    launch "$@"
    ;;
cut) ip -n "$NETNS_A" link set data down ;;
*)
    if [ $# -lt 2 ] || [ -z "${NETNS_A:-}" ]; then
        echo "netns: the first lines of $0 say how it is called" >&2
        exit 2
    fi
    remote "$@"
    ;;
esac

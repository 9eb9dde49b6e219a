// failure MODE RANK [ALGORITHM]: W ranks, four of them as if on two nodes, or
// exchanging by "ring" or "tree", work together until rank RANK ends it in the way
// MODE; then each does what a program is to do. The driver looks at what is left of
// them.
#include "comm/comm.h"
#include "comm/launcher.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { COUNT = 1 << 20, STEPS_BEFORE = 20 };

static float values[COUNT] __attribute__((aligned(64)));
static float sums[COUNT] __attribute__((aligned(64)));

static tr_comm_algorithm algorithm = TR_COMM_DIRECT;

static tr_status strike(tr_comm *comm, const char *mode, tr_error *err) {
    if (strcmp(mode, "exit") == 0) {
        exit(0);
    }
    if (strcmp(mode, "kill") == 0) {
        raise(SIGKILL);
    }
    if (strcmp(mode, "stop") == 0) {
        raise(SIGSTOP);
    }
    if (strcmp(mode, "slow") == 0) {
        sleep(12); // the others wait, and know that it is there
    }
    if (strcmp(mode, "group") == 0) {
        tr_comm_op foreign = {.type = TR_COMM_F32,
                              .count = COUNT,
                              .shard = COUNT,
                              .recv = values,
                              .group = {0, 1, tr_comm_rank(comm)}};
        return tr__comm_wait(comm, TR_COMM_RANKS, tr__comm_start(comm, &foreign), err);
    }
    if (strcmp(mode, "abandon") == 0) {
        tr_fail(err, TR_DATA, "the data ended");
        tr_comm_abandon(comm, err);
        return TR_DATA;
    }
    return TR_OK;
}

static tr_status step(tr_comm *comm, tr_error *err) {
    int64_t count = algorithm == TR_COMM_TREE ? TR_COMM_TREE_BYTES / 4 : COUNT;
    int64_t shard = (count + tr_comm_ranks(comm) - 1) / tr_comm_ranks(comm);
    bool by_nodes = tr_comm_ranks(comm) == 4 && algorithm == TR_COMM_DIRECT;
    tr_comm_op reduce = {.kind = TR_COMM_REDUCE,
                         .type = TR_COMM_F32,
                         .count = count,
                         .shard = shard,
                         .send = values,
                         .recv = sums,
                         .near = by_nodes ? 2 : 1,
                         .algorithm = algorithm};
    tr_comm_op gather = reduce;
    gather.kind = TR_COMM_GATHER;
    gather.send = NULL;
    gather.recv = values;
    tr__comm_start(comm, &reduce);
    return tr__comm_wait(comm, TR_COMM_RANKS, tr__comm_start(comm, &gather), err);
}

static tr_status work(tr_comm *comm, const char *mode, int victim, tr_error *err) {
    tr_status status = TR_OK;
    int steps = strcmp(mode, "slow") == 0 ? STEPS_BEFORE + 5 : 1 << 30;
    for (int i = 0; status == TR_OK && i < steps; i++) {
        if (i == STEPS_BEFORE && tr_comm_rank(comm) == victim) {
            printf("struck %d\n", (int)getpid());
            fflush(stdout);
            status = strike(comm, mode, err);
        }
        if (i == STEPS_BEFORE && strcmp(mode, "agree") == 0) {
            tr_error mine = {0};
            if (tr_comm_rank(comm) == victim) {
                tr_fail(&mine, TR_BUDGET, "no room");
            }
            status = tr_comm_agree(comm, &mine, err);
        }
        status = status == TR_OK ? step(comm, err) : status;
    }
    return status;
}

// The others wait for this rank in MPI's beginning.
static void stop_before_start(int victim) {
    setenv("TRANCHE_START_SECONDS", "2", 1);
    if (tr__launcher_find().rank == victim) {
        printf("struck %d\n", (int)getpid());
        fflush(stdout);
        raise(SIGSTOP);
    }
}

int main(int argc, char **argv) {
    tr_comm *comm = NULL;
    tr_error err = {0};
    void *staging = NULL;
    const char *mode = argc > 1 ? argv[1] : "";
    if (argc > 3) {
        algorithm = strcmp(argv[3], "ring") == 0 ? TR_COMM_RING : TR_COMM_TREE;
    }
    if (strcmp(mode, "start") == 0) {
        stop_before_start(argc > 2 ? atoi(argv[2]) : 0);
    }
    tr_status status = tr_comm_open(&comm, &err);
    if (status == TR_OK) {
        const tr_comm_room room = {
            .ranks = tr_comm_ranks(comm), .node_ranks = 2, .by_nodes = true};
        size_t bytes = (size_t)tr__comm_staging_bytes(&room);
        if (posix_memalign(&staging, 64, bytes + 64) != 0) {
            return 1;
        }
        tr__comm_staging(comm, &room, staging);
        status = work(comm, mode, argc > 2 ? atoi(argv[2]) : 0, &err);
    }
    if (status != TR_OK && tr_comm_speaks(comm)) {
        fprintf(stderr, "failure: %s\n", err.message);
    }
    tr_comm_end(comm, tr_status_exit(status));
    free(staging);
    return tr_status_exit(status);
}

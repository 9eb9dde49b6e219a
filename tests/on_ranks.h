// The frame of every program of tests that runs on ranks.
#ifndef TEST_ON_RANKS_H
#define TEST_ON_RANKS_H

#include <tranche/comm.h>

#include <stdio.h>
#include <stdlib.h>

// Opens *comm, which all ranks share, and returns how many tests of `run` failed.
// which: the program's first argument; "": none.
static inline int on_ranks(tr_comm **comm, int (*run)(const char *which), int argc,
                           char **argv) {
    tr_error err = {0};
    setenv("CMOCKA_TEST_ABORT", "1", 1); // the others would wait for this rank
    if (tr_comm_open(comm, &err) != TR_OK) {
        fprintf(stderr, "%s\n", err.message);
        return 1;
    }
    int failed = run(argc > 1 ? argv[1] : "");
    tr_comm_close(*comm);
    return failed;
}

#endif

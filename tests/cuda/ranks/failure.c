// failure MODE RANK, run on ranks: that rank's device fails while all train, or the
// rank is killed. In the modes "peers", "peers-later" and "peers-kill" devices exchange
// by themselves, and an exchange fails on the rank when it is put in, or when all wait
// for it, or the rank is killed; in those that begin with "stages" they are stages of a
// pipeline. check_failure.sh looks at how they end.
#include "comm/comm.h"
#include "cuda/device.h"
#include "train/engine.h"
#include "train/opening.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STEPS_BEFORE = 2, STEPS_MOST = 1000 };

static bool by_themselves(const char *mode) {
    return strncmp(mode, "peers", 5) == 0 || strncmp(mode, "stages", 6) == 0;
}

static void strike(const char *mode) {
    printf("struck %d\n", (int)getpid());
    fflush(stdout);
    if (strstr(mode, "kill")) {
        raise(SIGKILL);
    }
    test_device_fail(strcmp(mode, "copy") == 0 ? TEST_COPY
                     : by_themselves(mode)     ? TEST_EXCHANGE
                                               : TEST_LAUNCH,
                     1, !strstr(mode, "later"));
}

static tr_status train(tr_engine *engine, const char *mode, bool is_victim,
                       tr_error *err) {
    tr_step_result ignored = TR_STEP_RESULT_INIT;
    tr_status status = TR_OK;
    for (int s = 0; s < STEPS_MOST && status == TR_OK; s++) {
        if (s == STEPS_BEFORE && is_victim) {
            strike(mode);
        }
        status = tr_engine_step(engine, &ignored, err);
    }
    return status;
}

static tr_status run(tr_comm *comm, const char *mode, bool is_victim, tr_error *err) {
    bool stages = strncmp(mode, "stages", 6) == 0;
    const char *const set[] = {"device=cuda", "zero_optimization.stage=3", "steps=1001",
                               "train_micro_batch_size_per_gpu=1",
                               stages ? "pipeline.stages=3" : "pipeline.stages=1"};
    run_options options = {.file = "run.json",
                           .set = set,
                           .set_count = 5,
                           .comm = comm,
                           .resume = "never"};
    tr_run *opened = NULL;
    tr_plan *plan = NULL;
    tr_engine *engine = NULL;
    tr_status status = run_open(&options, &opened, err);
    if (status == TR_OK) {
        status = tr_plan_make(tr_run_plan_request(opened), &plan, err);
    }
    if (status == TR_OK) {
        status = tr_engine_create(opened, plan, &engine, err);
    }
    status = status == TR_OK ? train(engine, mode, is_victim, err) : status;
    tr_engine_destroy(engine);
    tr_plan_destroy(plan);
    tr_run_destroy(opened);
    return status;
}

int main(int argc, char **argv) {
    tr_comm *comm = NULL;
    tr_error err = {0};
    bool stages = argc > 1 && strncmp(argv[1], "stages", 6) == 0;
    if (argc < 3 ||
        chdir(stages ? TR_TEST_DATA "/goldens/gpt2" : TR_TEST_DATA "/goldens/mlp") !=
            0 ||
        tr_comm_open(&comm, &err) != TR_OK) {
        return 1;
    }
    if (by_themselves(argv[1])) {
        test_device_set_peers(true);
        test_device_set_count(tr_comm_ranks(comm));
    }
    tr_status status = run(comm, argv[1], tr_comm_rank(comm) == atoi(argv[2]), &err);
    if (status != TR_OK && tr_comm_speaks(comm)) {
        fprintf(stderr, "failure: %s\n", err.message);
    }
    tr_comm_end(comm, tr_status_exit(status));
    return tr_status_exit(status);
}

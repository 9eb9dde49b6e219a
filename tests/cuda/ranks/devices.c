// Run on ranks of one machine: they take its devices in turn, and those on one device
// share its memory.
#include "backend/backend.h"
#include "cuda/device.h"
#include "on_ranks.h"
#include "run/run.h"
#include "train/trial.h"

#include <string.h>
#include <unistd.h>

static tr_comm *comm;
static char said[8192]; // by the run, on rank 0

static void keep(void *user, tr_message_level level, const char *line) {
    size_t length = strlen(said);
    (void)user;
    (void)level;
    snprintf(said + length, sizeof said - length, "%s\n", line);
}

static const char *exchange = "execution.exchange=auto";

static tr_status open_run(const char *device, tr_run **run, tr_error *err) {
    const char *const set[] = {device, exchange, "train_micro_batch_size_per_gpu=1"};
    run_options options = {.file = "run.json",
                           .set = set,
                           .set_count = 3,
                           .comm = comm,
                           .resume = "never",
                           .choose_device = true,
                           .messages = {keep, NULL}};
    said[0] = '\0';
    return run_open(&options, run, err);
}

static void assert_said(const char *words) {
    if (tr_comm_rank(comm) == 0 && !strstr(said, words)) {
        fail_msg("\"%s\" is not in: %s", words, said);
    }
}

// Opens a run: which backend, and which of its devices on this rank.
static void assert_device(const char *setting, tr_backend_id id, int number,
                          const char *words) {
    tr_run *run = NULL;
    tr_error err = {0};
    trial_ok(open_run(setting, &run, &err), &err);
    assert_int_equal(tr_run_plan_request(run)->backend, id);
    assert_int_equal(tr_run_plan_request(run)->device, number);
    assert_said(words);
    tr_run_destroy(run);
}

static void in_turn(void **state) {
    int rank = tr_comm_rank(comm);
    (void)state;
    test_device_set_count(2);
    assert_device("device=cuda", TR_BACKEND_CUDA, rank % 2, "");
    assert_device("device=auto", TR_BACKEND_CUDA, rank % 2,
                  "device cuda:0 (device 0 for tests) on rank 0, and 2 other ranks");
    assert_device("device=cuda:1", TR_BACKEND_CUDA, 1, "");
    assert_device("device=cpu", TR_BACKEND_CPU, 0, "");
    test_device_set_count(1);
    assert_device("device=cuda", TR_BACKEND_CUDA, 0, "");
}

// Where a rank has none, nobody computes on one.
static void one_rank_has_none(void **state) {
    (void)state;
    test_device_set_count(tr_comm_rank(comm) == 1 ? 0 : 2);
    assert_device("device=auto", TR_BACKEND_CPU, 0, "");
    test_device_set_count(2);
}

// 2.75 GiB are enough for one rank on a device beside what a process takes of it, and
// for two: but not for three.
static void they_share_its_memory(void **state) {
    tr_run *run = NULL;
    tr_error err = {0};
    (void)state;
    test_device_set_memory((size_t)22 << 27);
    assert_device("device=auto", TR_BACKEND_CUDA, tr_comm_rank(comm) % 2, "cuda:0");
    test_device_set_count(1);
    assert_device("device=auto", TR_BACKEND_CPU, 0, "for each of the 3 ranks on it");
    test_device_set_memory((size_t)16 << 30);
    trial_ok(open_run("device=auto", &run, &err), &err);
    tr_run_destroy(run);
}

// And each rank's engine is on its own.
static void each_opens_its_own(void **state) {
    trial t = {0};
    tr_error err = {0};
    (void)state;
    test_device_set_count(2);
    trial_ok(open_run("device=cuda", &t.run, &err), &err);
    trial_ok(tr_plan_make(tr_run_plan_request(t.run), &t.plan, &err), &err);
    trial_ok(tr_engine_create(t.run, t.plan, &t.engine, &err), &err);
    assert_int_equal(test_device_opened(), tr_comm_rank(comm) % 2);
    tr__run_announce(t.run, t.plan, 0);
    assert_said("3 ranks of");
    assert_said("they exchange by pinned memory of the host");
    trial_steps(&t, 1, NULL);
    trial_close(&t);
}

// Opens a run's engine, which says how the ranks exchange.
static void assert_exchange(const char *how, const char *words) {
    trial t = {0};
    tr_error err = {0};
    exchange = how;
    trial_ok(open_run("device=cuda", &t.run, &err), &err);
    trial_ok(tr_plan_make(tr_run_plan_request(t.run), &t.plan, &err), &err);
    tr__run_announce(t.run, t.plan, 0);
    assert_said(words);
    tr_run_destroy(t.run);
    tr_plan_destroy(t.plan);
}

static void assert_refused(const char *how, const char *words) {
    tr_run *run = NULL;
    tr_error err = {0};
    exchange = how;
    assert_int_equal(open_run("device=cuda", &run, &err), TR_USAGE);
    if (!strstr(err.message, words)) {
        fail_msg("\"%s\" is not in: %s", words, err.message);
    }
}

// By NCCL where it is there on all ranks and each has a device of its own.
static void how_they_exchange(void **state) {
    (void)state;
    test_device_set_count(3);
    assert_exchange("execution.exchange=auto", "exchange by pinned memory of the host");
    assert_refused("execution.exchange=nccl", "the tests have taken NCCL away");
    test_device_set_peers(true);
    assert_exchange("execution.exchange=auto", "they exchange by NCCL");
    assert_exchange("execution.exchange=nccl", "they exchange by NCCL");
    assert_exchange("execution.exchange=host", "exchange by pinned memory of the host");
    test_device_set_peers(tr_comm_rank(comm) != 1);
    assert_exchange("execution.exchange=auto", "exchange by pinned memory of the host");
    assert_refused("execution.exchange=nccl", "rank 1: execution.exchange is \"nccl\"");
    test_device_set_peers(true);
    test_device_set_count(2);
    assert_exchange("execution.exchange=auto", "exchange by pinned memory of the host");
    assert_refused("execution.exchange=nccl", "several ranks are on one GPU");
    test_device_set_peers(false);
    exchange = "execution.exchange=auto";
}

// What NCCL takes of a device's memory is not the plan's: 1.5 GiB are too few then.
static void nccl_takes_memory(void **state) {
    (void)state;
    test_device_set_count(3);
    test_device_set_memory((size_t)3 << 29);
    assert_device("device=auto", TR_BACKEND_CUDA, tr_comm_rank(comm), "");
    test_device_set_peers(true);
    assert_device("device=auto", TR_BACKEND_CPU, 0, "cuda:0 has 1.50 GiB");
    test_device_set_peers(false);
    test_device_set_memory((size_t)16 << 30);
}

static int run(const char *which) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_turn),
        cmocka_unit_test(one_rank_has_none),
        cmocka_unit_test(they_share_its_memory),
        cmocka_unit_test(how_they_exchange),
        cmocka_unit_test(nccl_takes_memory),
        cmocka_unit_test(each_opens_its_own),
    };
    (void)which;
    return chdir(TR_TEST_DATA "/goldens/mlp") == 0
               ? cmocka_run_group_tests(tests, NULL, NULL)
               : 1;
}

int main(int argc, char **argv) {
    return on_ranks(&comm, run, argc, argv);
}

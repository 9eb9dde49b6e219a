// Run on two ranks: frozen parameters at every stage, resident and offloaded, change no
// bit of what is trained, and keep their own. (The sum of three floats depends on who
// owns an element, and so on what lies before it in its flat buffer.)
#include "on_ranks.h"
#include "train/frozen.h"
#include "train/scratch.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { MICRO = 2 };

static tr_comm *comm;

// One wave, since more are sums of more than two floats.
#define STAGE(n)                                                                       \
    "\"execution\": {\"threads\": 1, \"wave\": 2}, \"zero_optimization\": "            \
    "{\"stage\": " #n
#define NVME             "\"memory\": {\"nvme\": {\"path\": \"/tmp\"}}, "
#define OPTIMIZER(where) ", \"offload_optimizer\": {\"device\": \"" where "\"}"
#define PARAMS(where)    ", \"offload_param\": {\"device\": \"" where "\"}"
#define BF16             "\"bf16\": {\"enabled\": true}, "

static const char *const ways[] = {
    STAGE(0) "}",
    STAGE(1) "}",
    STAGE(2) "}",
    STAGE(3) "}",
    BF16 STAGE(1) "}",
    BF16 STAGE(3) ", \"overlap_comm\": false}",
    STAGE(0) OPTIMIZER("cpu") "}",
    BF16 STAGE(1) OPTIMIZER("cpu") "}",
    STAGE(2) OPTIMIZER("cpu") "}",
    BF16 STAGE(2) OPTIMIZER("cpu") "}",
    STAGE(3) OPTIMIZER("cpu") PARAMS("cpu") "}",
    BF16 STAGE(3) PARAMS("cpu") "}",
    NVME STAGE(2) OPTIMIZER("nvme") "}",
    NVME BF16 STAGE(3) OPTIMIZER("nvme") PARAMS("nvme") "}",
};
enum { WAYS = sizeof ways / sizeof *ways };

// Each way with some of the worlds.
static void trained_part_is_as_at_rate_zero(void **state) {
    (void)state;
    int batch = 2 * MICRO * (int)tr_comm_ranks(comm) - 1;
    for (int i = 0; i < WAYS; i++) {
        frozen_way way = {batch, MICRO, ways[i], i % 2};
        for (int w = i % 3; w < FROZEN_WORLDS; w += 3) {
            frozen_compare(&frozen_worlds[w], &way, comm);
        }
    }
}

// Of weights that a folder has in 16 bits, as units compute in them.
static const char *const half_ways[] = {
    BF16 STAGE(0) "}",
    BF16 STAGE(1) "}",
    BF16 STAGE(2) OPTIMIZER("cpu") "}",
    BF16 STAGE(3) "}",
    BF16 STAGE(3) OPTIMIZER("cpu") PARAMS("cpu") "}",
    NVME BF16 STAGE(3) OPTIMIZER("nvme") PARAMS("nvme") "}",
};
enum { HALF_WAYS = sizeof half_ways / sizeof *half_ways };

// Rank 0 writes it, for all.
static void share_folder(void **scratch, char model[PATH_MAX]) {
    tr_error err = {0};
    if (tr_comm_rank(comm) == 0) {
        assert_int_equal(scratch_make(scratch), 0);
        frozen_folder(scratch_path(scratch, "out"));
        snprintf(model, PATH_MAX, "\"%s/checkpoints/latest\"",
                 scratch_path(scratch, "out"));
    }
    assert_int_equal(tr__comm_broadcast(comm, 0, model, PATH_MAX, &err), TR_OK);
}

static void weights_of_16_bits_are_kept_in_them(void **state) {
    int batch = 2 * MICRO * (int)tr_comm_ranks(comm) - 1;
    char model[PATH_MAX] = "";
    void *scratch = NULL;
    (void)state;
    share_folder(&scratch, model);
    for (int i = 0; i < HALF_WAYS; i++) {
        frozen_world world = {model, frozen_worlds[i % 5].frozen, true};
        frozen_way way = {batch, MICRO, half_ways[i], i % 2};
        frozen_compare(&world, &way, comm);
    }
    if (scratch) {
        scratch_remove(&scratch);
    }
}

static int run(const char *which) {
    (void)which;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trained_part_is_as_at_rate_zero),
        cmocka_unit_test(weights_of_16_bits_are_kept_in_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv) {
    return on_ranks(&comm, run, argc, argv);
}

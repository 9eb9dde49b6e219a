// Run on two ranks: frozen parameters at every stage, resident and offloaded, change no
// bit of what is trained, and keep their own. (The sum of three floats depends on who
// owns an element, and so on what lies before it in its flat buffer.)
#include "on_ranks.h"
#include "train/frozen.h"

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

static int run(const char *which) {
    (void)which;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trained_part_is_as_at_rate_zero),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv) {
    return on_ranks(&comm, run, argc, argv);
}

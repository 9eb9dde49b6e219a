// Run on several ranks: the planner chooses the mesh. All ranks have the same one, and
// train as one rank does.
#include "on_meshes.h"
#include "on_ranks.h"

#include <stdio.h>
#include <string.h>

// Nothing else is chosen, and the machine is one of the usual proportions.
#define FIXED                                                                          \
    ", \"zero_optimization\": {\"stage\": 0, \"offload_optimizer\": {\"device\": "     \
    "\"none\"}, \"offload_param\": {\"device\": \"none\"}}, "                          \
    "\"activation_checkpointing\": {\"number_checkpoints\": 0, "                       \
    "\"cpu_checkpointing\": "                                                          \
    "false, \"cpu_saved\": false}, \"execution\": {\"threads\": 1, \"recompute\": "    \
    "\"none\", \"reproducible\": true, \"wave\": 1}"

static void write_open_run(char text[TEXT_MAX], const char *more) {
    int used = snprintf(text, TEXT_MAX,
                        "{\"model\": %s, \"steps\": 9, \"data\": {\"order\": "
                        "\"sequential\"}, \"train_batch_size\": %d, "
                        "\"train_micro_batch_size_per_gpu\": 1, \"tensor_parallel\": "
                        "{\"size\": \"auto\"}, \"pipeline\": {\"stages\": \"auto\", "
                        "\"schedule\": \"auto\"}, \"out\": \"unused\"%s%s%s}",
                        gpt2, BATCH, ADAM, FIXED, more);
    assert_true(used > 0 && used < TEXT_MAX);
}

// All ranks' places, in their order, are those of one mesh.
static void assert_one_mesh(const tr_mesh *own) {
    enum { RANKS_MAX = 8 };
    tr_mesh all[RANKS_MAX];
    tr_error err = {0};
    int ranks = tr_comm_ranks(world);
    assert_true(ranks <= RANKS_MAX);
    assert_int_equal(tr_mesh_ranks(own), ranks);
    trial_ok(tr__comm_all_gather(world, own, sizeof *own, all, &err), &err);
    for (int i = 0; i < ranks; i++) {
        assert_memory_equal(all[i].size, own->size, sizeof own->size);
        assert_int_equal(tr_mesh_rank(&all[i]), i);
    }
}

// Bytes of the device that the plan of the run takes, on the rank that takes most.
static int64_t try_run(const char *text, const samples *data, const outcome *one,
                       tr_mesh *mesh) {
    run_options options = options_of(text, data, world, "never");
    outcome many;
    trial t;
    trial_open(&t, &options);
    *mesh = t.plan->request.mesh;
    double bytes = (double)t.plan->ledger.total[TR_SPACE_DEVICE], most = 0;
    trial_close(&t);
    assert_one_mesh(mesh);
    take_steps(&options, STEPS, false, &many);
    assert_near(one, &many, text);
    free_outcome(&many);
    for (int i = 0; i < tr_comm_ranks(world); i++) {
        double theirs = bytes;
        tr_error err = {0};
        trial_ok(tr__comm_broadcast(world, i, &theirs, sizeof theirs, &err), &err);
        most = theirs > most ? theirs : most;
    }
    return (int64_t)most;
}

static void all_ranks_choose_alike(void **state) {
    char text[TEXT_MAX], budget[128];
    samples data;
    outcome one;
    tr_mesh mesh;
    (void)state;
    samples_tokens(&data, STEPS * BATCH, 8, TOKENS, 6);
    write_run_of(text, gpt2, 2, &alone, "unused", ADAM, ONE_THREAD);
    run_options options = options_of(text, &data, NULL, "never");
    take_steps(&options, STEPS, false, &one);
    write_open_run(text, "");
    int64_t bytes = try_run(text, &data, &one, &mesh);
    // Less than that: another mesh, whose fullest rank takes no more.
    snprintf(budget, sizeof budget,
             ", \"memory\": {\"device\": %lld, \"host\": \"1GB\"}",
             (long long)(bytes * 9 / 10));
    write_open_run(text, budget);
    tr_mesh other;
    int64_t fewer = try_run(text, &data, &one, &other);
    assert_true(fewer <= bytes * 9 / 10);
    assert_memory_not_equal(mesh.size, other.size, sizeof mesh.size);
    free_outcome(&one);
    samples_free(&data);
}

static int run(const char *which) {
    (void)which;
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_ranks_choose_alike)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv) {
    return on_ranks(&world, run, argc, argv);
}

// Run on two or four ranks: a step whose loss is over all pairs of texts, in stages of
// a pipeline. In reproducible mode neither stages nor passes change a bit of what one
// rank trains in one pass.
#include "train/pairs.h"
#include "on_meshes.h"
#include "on_ranks.h"
#include "train/scratch.h"

#include <stdio.h>

enum { PAIRS = 60, PATH_BYTES = 512, MORE_MAX = 512 };

#define REPRODUCIBLE "\"execution\": {\"threads\": 1, \"reproducible\": true"

static void end_of(const pairs_setting *s, tr_comm *ranks, snapshot *end,
                   double loss[3]) {
    char text[PAIRS_TEXT_MAX];
    tr_step_result results[3];
    trial t;
    pairs_text(s, text);
    run_options options = {.text = text, .comm = ranks, .resume = "never"};
    trial_open(&t, &options);
    assert_int_equal(t.plan->request.passes, s->passes);
    trial_steps(&t, 3, results);
    snapshot_gather(end, &t);
    trial_close(&t);
    for (int i = 0; i < 3; i++) {
        loss[i] = results[i].loss;
    }
}

static void stages_change_no_bit(void **state) {
    static const struct {
        int passes, data_ranks; // 0: as many as leave two stages
        const char *schedule, *wave, *more;
    } ways[] = {
        {1, 1, "", "", ""},
        {2, 1, "", "", ""},
        {2, 1, ", \"schedule\": \"zero_bubble\"", ", \"wave\": 2", ""},
        {2, 1, ", \"schedule\": \"breadth_first\"", "",
         "\"activation_checkpointing\": {\"number_checkpoints\": 2},"},
        {2, 0, ", \"schedule\": \"interleaved\", \"virtual_stages\": 2", "", ""},
        {2, 0, ", \"schedule\": \"v\"", ", \"wave\": 2",
         "\"zero_optimization\": {\"stage\": 2},"},
        {2, 2, "", "", "\"zero_optimization\": {\"stage\": 3},"},
        {2, 2, ", \"schedule\": \"zero_bubble\"", "",
         "\"zero_optimization\": {\"stage\": 2, \"offload_optimizer\": {\"device\": "
         "\"cpu\"}},"},
    };
    char records[PATH_BYTES], more[MORE_MAX];
    tr_error err = {0};
    snapshot one, many;
    double alone_loss[3], loss[3];
    snprintf(records, sizeof records, "%s", scratch_path(state, "pairs.jsonl"));
    trial_ok(tr__comm_broadcast(world, 0, records, sizeof records, &err), &err);
    if (tr_comm_rank(world) == 0) {
        pairs_write(records, PAIRS);
    }
    trial_ok(tr__comm_barrier(world, &err), &err);
    pairs_setting s = {records, 20, 3, 1, REPRODUCIBLE "},"}; // the last one is short
    end_of(&s, NULL, &one, alone_loss);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        int stages = ways[i].data_ranks ? tr_comm_ranks(world) / ways[i].data_ranks : 2;
        if (stages == 1) {
            continue;
        }
        snprintf(more, sizeof more, "\"pipeline\": {\"stages\": %d%s}, %s%s}, %s",
                 stages, ways[i].schedule, REPRODUCIBLE, ways[i].wave, ways[i].more);
        s.passes = ways[i].passes;
        s.more = more;
        end_of(&s, world, &many, loss);
        assert_memory_equal(loss, alone_loss, sizeof loss);
        snapshot_assert_same(&one, &many);
        snapshot_free(&many);
    }
    snapshot_free(&one);
    trial_ok(tr__comm_barrier(world, &err), &err); // rank 0 removes the file
}

static int run(const char *which) {
    (void)which;
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(
        stages_change_no_bit, scratch_cache, scratch_remove)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv) {
    return on_ranks(&world, run, argc, argv);
}

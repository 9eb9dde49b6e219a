// Run on two or four ranks, which have other layers: in reproducible mode neither the
// number of stages nor their schedule changes a bit of what one rank trains.
#include "on_meshes.h"
#include "on_ranks.h"

#define OPTIMIZER(type)                                                                \
    ", \"optimizer\": {\"type\": \"" type                                              \
    "\", \"params\": {\"lr\": 0.003, \"eps\": 1e-6}}"
#define OFFLOADED                                                                      \
    ", \"zero_optimization\": {\"stage\": 2, \"offload_optimizer\": {\"device\": "     \
    "\"cpu\"}}"
#define PARAMETERS_AWAY                                                                \
    ", \"zero_optimization\": {\"stage\": 3, \"offload_param\": {\"device\": "         \
    "\"cpu\"}}"

static void stages_change_no_bit(void **state) {
    static const char reproducible[] =
        ", \"execution\": {\"threads\": 1, \"reproducible\": true}";
    static const struct {
        const char *model, *more;
    } runs[] = {{gpt2, ADAM},
                {gpt2, OPTIMIZER("Lamb")},
                {qwen3, OPTIMIZER("Muon")},
                {qwen3, ADAM OFFLOADED}};
    samples data;
    char text[TEXT_MAX];
    (void)state;
    samples_tokens(&data, STEPS * BATCH, 8, TOKENS, 6);
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        outcome one, many;
        write_run_of(text, runs[i].model, 2, &alone, "unused", runs[i].more,
                     reproducible);
        run_options options = options_of(text, &data, NULL, "never");
        take_steps(&options, STEPS, false, &one);
        for (size_t m = 0; m < MESHES; m++) {
            if (!is_of_all(&meshes[m]) || meshes[m].size[TR_AXIS_TENSOR] > 1) {
                continue;
            }
            write_run_of(text, runs[i].model, 2, &meshes[m], "unused", runs[i].more,
                         reproducible);
            options = options_of(text, &data, world, "never");
            take_steps(&options, STEPS, false, &many);
            assert_memory_equal(one.loss, many.loss, sizeof one.loss);
            snapshot_assert_same(&one.end, &many.end);
            free_outcome(&many);
        }
        free_outcome(&one);
    }
    samples_free(&data);
}

// Of six blocks, so that two stages may have four parts each.
static const char deep[] =
    "{\"model_type\": \"gpt2\", \"n_layer\": 6, \"n_embd\": 32, \"n_head\": 4, "
    "\"n_positions\": 8, \"vocab_size\": 67}";

// In f32, and in reproducible mode to the bit: in waves that do not divide the batch,
// in groups of waves that are smaller than the stages, with parameters that come and
// go.
static void schedules_change_no_bit(void **state) {
#define SCHEDULE(name, each) ", \"schedule\": \"" name "\", \"virtual_stages\": " #each
#define REPRODUCIBLE(more)                                                             \
    ", \"execution\": {\"threads\": 1, \"reproducible\": true" more "}"
    static const struct {
        int stages; // at most
        const char *schedule, *cut;
    } runs[] = {
        {4, SCHEDULE("interleaved", 2), REPRODUCIBLE("")},
        {2, SCHEDULE("interleaved", 4), REPRODUCIBLE("") ZERO_ALONE(2)},
        {2, SCHEDULE("interleaved", 3), REPRODUCIBLE(", \"wave\": 3") RECOMPUTED},
        {4, SCHEDULE("breadth_first", 2), REPRODUCIBLE("") ZERO_ALONE(3)},
        {4, SCHEDULE("breadth_first", 1), REPRODUCIBLE(", \"wave\": 2")},
        {4, SCHEDULE("zero_bubble", 1), REPRODUCIBLE("") RECOMPUTED},
        {2, SCHEDULE("zero_bubble", 1), REPRODUCIBLE(", \"wave\": 2") ZERO_ALONE(1)},
        {4, SCHEDULE("v", 2), REPRODUCIBLE("")},
        {2, SCHEDULE("v", 2), REPRODUCIBLE(", \"wave\": 3") RECOMPUTED},
        {4, SCHEDULE("zero_bubble", 1), REPRODUCIBLE("") ZERO_ALONE(2)},
        {2, SCHEDULE("zero_bubble", 1), REPRODUCIBLE("") ZERO_ALONE(3) RECOMPUTED},
        {4, SCHEDULE("zero_bubble", 1), REPRODUCIBLE("") OFFLOADED},
        {4, SCHEDULE("v", 2), REPRODUCIBLE("") ZERO_ALONE(2)},
        {2, SCHEDULE("v", 2), REPRODUCIBLE(", \"wave\": 2") ZERO_ALONE(3)},
        {2, SCHEDULE("v", 2), REPRODUCIBLE("") OFFLOADED},
        {4, SCHEDULE("zero_bubble", 1), REPRODUCIBLE("") PARAMETERS_AWAY},
    };
    samples data;
    char text[TEXT_MAX];
    outcome one, many;
    (void)state;
    samples_tokens(&data, STEPS * BATCH, 8, TOKENS, 6);
    write_run_of(text, deep, 1, &alone, "unused", ADAM, REPRODUCIBLE(""));
    run_options options = options_of(text, &data, NULL, "never");
    take_steps(&options, STEPS, false, &one);
    for (size_t i = 0; i < sizeof runs / sizeof *runs; i++) {
        for (size_t m = 0; m < MESHES; m++) {
            int stages = (int)meshes[m].size[TR_AXIS_PIPELINE];
            if (!is_of_all(&meshes[m]) || meshes[m].size[TR_AXIS_TENSOR] > 1 ||
                stages == 1 || stages > runs[i].stages) {
                continue;
            }
            schedule = runs[i].schedule;
            write_run_of(text, deep, 1, &meshes[m], "unused", ADAM, runs[i].cut);
            options = options_of(text, &data, world, "never");
            take_steps(&options, STEPS, false, &many);
            assert_memory_equal(one.loss, many.loss, sizeof one.loss);
            assert_true(one.evaluation.loss == many.evaluation.loss);
            snapshot_assert_same(&one.end, &many.end);
            free_outcome(&many);
        }
    }
    schedule = "";
    free_outcome(&one);
    samples_free(&data);
}

// Of so many samples each, two to a micro-batch: fewer micro-batches than the plan has
// in one sequence, as many, and more; the last one short.
enum { EVALUATIONS = 4 };
static const int64_t evaluated[EVALUATIONS] = {1, 3, 8, 29};

static void evaluate_all(const run_options *options, tr_evaluation *out) {
    tr_error err = {0};
    trial t;
    trial_open(&t, options);
    for (int i = 0; i < EVALUATIONS; i++) {
        out[i] = (tr_evaluation)TR_EVALUATION_INIT;
        trial_ok(tr_engine_evaluate(t.engine, evaluated[i], &out[i], &err), &err);
        assert_int_equal(out[i].samples, evaluated[i]);
    }
    trial_check_arenas(&t);
    trial_close(&t);
}

static void evaluations_change_no_bit(void **state) {
    static const char *const schedules[] = {
        "", SCHEDULE("interleaved", 2), SCHEDULE("breadth_first", 2), SCHEDULE("v", 2)};
    samples data;
    char text[TEXT_MAX];
    tr_evaluation one[EVALUATIONS], many[EVALUATIONS];
    (void)state;
    samples_tokens(&data, STEPS * BATCH, 8, TOKENS, 6);
    write_run_of(text, deep, 2, &alone, "unused", ADAM, REPRODUCIBLE(""));
    run_options options = options_of(text, &data, NULL, "never");
    evaluate_all(&options, one);
    for (size_t i = 0; i < 4 * MESHES; i++) {
        const tr_mesh *mesh = &meshes[i / 4];
        if (!is_of_all(mesh) || mesh->size[TR_AXIS_TENSOR] > 1 ||
            mesh->size[TR_AXIS_PIPELINE] == 1) {
            continue;
        }
        schedule = schedules[i % 4];
        write_run_of(text, deep, 2, mesh, "unused", ADAM, REPRODUCIBLE(""));
        options = options_of(text, &data, world, "never");
        evaluate_all(&options, many);
        for (int k = 0; k < EVALUATIONS; k++) {
            assert_true(one[k].loss == many[k].loss);
            assert_true(one[k].accuracy == many[k].accuracy);
        }
    }
    schedule = "";
    samples_free(&data);
}

// Without reproducible mode, too: what leaves a stage is added up in the order in which
// it would be there, wave by wave or not.
static void the_states_place_changes_no_bit(void **state) {
#define FILES ", \"memory\": {\"nvme\": {\"path\": \"/tmp\", \"gradients\": true}}"
#define STATES(stage, place)                                                           \
    ONE_THREAD ", \"zero_optimization\": {\"stage\": " #stage                          \
               ", \"offload_optimizer\": {\"device\": \"" place "\"}}"
    static const char *const places[][3] = {
        {STATES(1, "none"), STATES(1, "cpu")},
        {STATES(2, "none"), STATES(2, "cpu"), STATES(2, "nvme") FILES},
        {STATES(3, "none"), STATES(3, "cpu")}};
    static const char *const schedules[] = {"", SCHEDULE("zero_bubble", 1),
                                            SCHEDULE("v", 2)};
    enum { PLACES = 3, SCHEDULES = 3 };
    samples data;
    (void)state;
    samples_tokens(&data, STEPS * BATCH, 8, TOKENS, 6);
    for (size_t m = 0; m < MESHES; m++) {
        if (!is_of_all(&meshes[m]) || meshes[m].size[TR_AXIS_TENSOR] > 1 ||
            meshes[m].size[TR_AXIS_PIPELINE] == 1) {
            continue;
        }
        for (size_t i = 0; i < SCHEDULES * PLACES; i++) {
            char text[TEXT_MAX];
            outcome end[PLACES];
            schedule = schedules[i / PLACES];
            const char *const *at = places[i % PLACES];
            for (int k = 0; k < PLACES && at[k]; k++) {
                write_run_of(text, deep, 1, &meshes[m], "unused", ADAM, at[k]);
                run_options options = options_of(text, &data, world, "never");
                take_steps(&options, STEPS, false, &end[k]);
                assert_memory_equal(end[0].loss, end[k].loss, sizeof end[k].loss);
                snapshot_assert_same(&end[0].end, &end[k].end);
            }
            for (int k = 0; k < PLACES && at[k]; k++) {
                free_outcome(&end[k]);
            }
        }
    }
    schedule = "";
    samples_free(&data);
}

static int run(const char *which) {
    (void)which;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stages_change_no_bit),
        cmocka_unit_test(schedules_change_no_bit),
        cmocka_unit_test(evaluations_change_no_bit),
        cmocka_unit_test(the_states_place_changes_no_bit)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv) {
    return on_ranks(&world, run, argc, argv);
}

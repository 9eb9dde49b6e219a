// Evaluations, worked out by hand: which walks they consist of, and how long these
// take.
#include "sim/helper.h"

#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const double nearly = 1e-9;

#define FREE_LINK ", \"link\": {\"exchange\": \"nccl\", \"inside\": {\"bytes\": 1e30}}"

// Seconds of an evaluation where each kernel takes one.
static double seconds_of(const tr_plan_request *request, const char *link,
                         int64_t samples) {
    tr_plan *plan = test_plan(request);
    tr_machine *machine = test_clockwork(link);
    tr_simulated *simulated = test_simulate(plan, machine);
    const tr_simulation *r = tr_simulated_result(simulated);
    double step = r->seconds;
    tr_error err = {0};
    assert_int_equal(r->evaluation_samples, 0);
    assert_int_equal(tr_simulated_evaluate(simulated, samples, &err), TR_OK);
    assert_int_equal(r->evaluation_samples, samples);
    assert_near(r->seconds, step, 0);
    double seconds = r->evaluation_seconds;
    tr_simulated_destroy(simulated);
    tr_machine_close(machine);
    tr_plan_destroy(plan);
    return seconds;
}

// Three layers of a kernel each go over each micro-batch; the last one may be short.
static void micro_batches_follow_each_other(void **state) {
    tr_model *model = test_model_mlp();
    tr_plan_request request = test_request(model, 2, 3);
    (void)state;
    assert_near(seconds_of(&request, "", 1), 3, nearly);
    assert_near(seconds_of(&request, "", 2), 3, nearly);
    assert_near(seconds_of(&request, "", 5), 3 * 3, nearly);
    assert_near(seconds_of(&request, "", 260), 130 * 3, nearly);
    tr_model_destroy(model);
}

// Each of two ranks takes half of them, the first the odd one. Parameters that each has
// updated a part of are gathered before, in messages of 2 s for each of three layers.
static void ranks_share_the_micro_batches(void **state) {
    tr_model *model = test_model_mlp();
    tr_plan_request request = test_request(model, 1, 2);
    (void)state;
    request.mesh = tr_mesh_of_data(2, 0);
    request.train_batch_size *= 2;
    assert_near(seconds_of(&request, TEST_LINK, 6), 3 * 3, nearly);
    assert_near(seconds_of(&request, TEST_LINK, 7), 4 * 3, nearly);
    request.stage = 1;
    assert_near(seconds_of(&request, TEST_LINK, 7), 3 * 2 + 4 * 3, nearly);
    tr_model_destroy(model);
}

// On three stages of a layer each, a walk takes three micro-batches: 3 + 2 turns. In
// the last walk of a round there may be fewer: n + 2 turns. A round has 64 at most.
static void stages_take_several_at_a_time(void **state) {
    static const struct {
        int64_t samples;
        double turns;
    } all[] = {
        {1, 1 + 2},     {2, 2 + 2},
        {3, 5},         {6, 2 * 5},
        {7, 2 * 5 + 3}, {130, 2 * (14 * 5 + 4) + 14 * 5}}; // rounds of 44, 44 and 42
    tr_model *model = test_model_mlp();
    tr_plan_request request = test_request(model, 1, 2);
    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        for (int64_t stage = 0; stage < 3; stage++) {
            request.mesh = (tr_mesh){.size = {1, 1, 3}, .at = {0, 0, stage}};
            assert_near(seconds_of(&request, FREE_LINK, all[i].samples), all[i].turns,
                        nearly);
        }
    }
    tr_model_destroy(model);
}

// A stage has no parameters of the other one, and nothing to gather of them. The stage
// of two layers gathers for 4 s, and the other one meanwhile.
static void stages_of_several_ranks_gather_their_own(void **state) {
    tr_model *model = test_model_mlp();
    tr_plan_request request = test_request(model, 1, 2);
    (void)state;
    request.mesh = (tr_mesh){.size = {2, 1, 2}};
    request.train_batch_size *= 2;
    double without = seconds_of(&request, TEST_LINK, 6);
    request.stage = 1;
    assert_near(seconds_of(&request, TEST_LINK, 6), without + 4, nearly);
    tr_model_destroy(model);
}

// ---- what is printed

static bool take(void *to, const char *text, size_t bytes) {
    return fwrite(text, 1, bytes, to) == bytes;
}

static char *printed(const tr_simulated *simulated, bool json) {
    char *text = NULL;
    size_t bytes = 0;
    tr_error err = {0};
    const tr_sink to = {take, open_memstream(&text, &bytes)};
    assert_non_null(to.user);
    assert_int_equal(
        (json ? tr_simulated_print_json : tr_simulated_print)(simulated, &to, &err),
        TR_OK);
    fclose(to.user);
    return text;
}

static void assert_in_json(const tr_simulated *simulated, int64_t samples,
                           double seconds) {
    char *text = printed(simulated, true);
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    const json_t *found = json_object_get(root, "evaluation");
    assert_int_equal(json_integer_value(json_object_get(found, "samples")), samples);
    assert_near(json_number_value(json_object_get(found, "seconds")), seconds, nearly);
    assert_near(json_number_value(json_object_get(found, "samples_per_second")),
                (double)samples / seconds, 1e-6);
    json_decref(root);
    free(text);
}

static void an_evaluation_is_printed(void **state) {
    tr_model *model = test_model_mlp();
    tr_plan_request request = test_request(model, 1, 2);
    tr_error err = {0};
    (void)state;
    tr_plan *plan = test_plan(&request);
    tr_machine *machine = test_clockwork("");
    tr_simulated *simulated = test_simulate(plan, machine);
    for (int json = 0; json < 2; json++) {
        char *text = printed(simulated, json);
        assert_null(strstr(text, "evaluation"));
        free(text);
    }
    assert_int_equal(tr_simulated_evaluate(simulated, 4, &err), TR_OK);
    char *text = printed(simulated, false);
    assert_non_null(strstr(text, "an evaluation of 4 samples takes 12.000000 s: "
                                 "0.333333 samples/s, as long as "));
    free(text);
    assert_in_json(simulated, 4, 12);
    assert_int_equal(tr_simulated_evaluate(simulated, 1, &err), TR_OK); // another one
    assert_in_json(simulated, 1, 3);
    tr_simulated_destroy(simulated);
    tr_machine_close(machine);
    tr_plan_destroy(plan);
    tr_model_destroy(model);
}

static void what_cannot_be_evaluated_is_refused(void **state) {
    tr_plan_request request = test_request(&test_model_open, 1, 2);
    tr_error none = {0}, loss = {0};
    (void)state;
    tr_plan *plan = test_plan(&request);
    tr_machine *machine = test_clockwork("");
    tr_simulated *simulated = test_simulate(plan, machine);
    assert_int_equal(tr_simulated_evaluate(NULL, 1, NULL), TR_USAGE);
    assert_int_equal(tr_simulated_evaluate(simulated, 0, &none), TR_USAGE);
    assert_non_null(strstr(none.message, "1 or more"));
    assert_int_equal(tr_simulated_evaluate(simulated, 1, &loss), TR_USAGE);
    assert_non_null(strstr(loss.message, "no loss"));
    assert_int_equal(tr_simulated_result(simulated)->evaluation_samples, 0);
    tr_simulated_destroy(simulated);
    tr_machine_close(machine);
    tr_plan_destroy(plan);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(micro_batches_follow_each_other),
        cmocka_unit_test(ranks_share_the_micro_batches),
        cmocka_unit_test(stages_take_several_at_a_time),
        cmocka_unit_test(stages_of_several_ranks_gather_their_own),
        cmocka_unit_test(an_evaluation_is_printed),
        cmocka_unit_test(what_cannot_be_evaluated_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

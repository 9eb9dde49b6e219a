// What is printed of a simulation: JSON, text, and the trace.
#include "sim/helper.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const double nearly = 1e-6;

typedef tr_status printer(const tr_simulated *simulated, const tr_sink *to,
                          tr_error *err);

static bool take(void *to, const char *text, size_t bytes) {
    return fwrite(text, 1, bytes, to) == bytes;
}

static char *printed(const tr_simulated *simulated, printer *print) {
    char *text = NULL;
    size_t bytes = 0;
    tr_error err = {0};
    const tr_sink to = {take, open_memstream(&text, &bytes)};
    assert_non_null(to.user);
    assert_int_equal(print(simulated, &to, &err), TR_OK);
    fclose(to.user);
    return text;
}

static json_t *parsed(const tr_simulated *simulated, printer *print) {
    char *text = printed(simulated, print);
    json_error_t problem;
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &problem);
    if (!root) {
        fail_msg("line %d: %s", problem.line, problem.text);
    }
    free(text);
    return root;
}

typedef struct scene {
    tr_model *model;
    tr_plan *plan;
    tr_machine *machine;
    tr_simulated *simulated;
} scene;

// Two ranks, stage 3, two micro-batches of a small GPT-2 whose block is recomputed.
static int begin(void **state) {
    static scene s;
    s.model = test_model_small_gpt2(0);
    tr_plan_request request = test_request(s.model, 1, 2);
    request.mesh = tr_mesh_of_data(2, 0);
    request.train_batch_size *= 2;
    request.stage = 3;
    request.recomputed_units = 2;
    s.plan = test_plan(&request);
    s.machine = test_machine(
        "{\"name\": \"a \\\"b\\\"\\n\", \"ranks_per_node\": 2, \"compute\": "
        "{\"flops\": 1e9, \"bytes\": 1e9, \"launch\": 1e-5}, "
        "\"memory\": {\"device\": 64, \"host\": 4096}, "
        "\"link\": {\"inside\": {\"bytes\": 1e8, \"latency\": 1e-6}}}");
    s.simulated = test_simulate(s.plan, s.machine);
    *state = &s;
    return 0;
}

static int end(void **state) {
    scene *s = *state;
    tr_simulated_destroy(s->simulated);
    tr_machine_close(s->machine);
    tr_plan_destroy(s->plan);
    tr_model_destroy(s->model);
    return 0;
}

static double number(const json_t *object, const char *name) {
    const json_t *value = json_object_get(object, name);
    assert_true(json_is_number(value));
    return json_number_value(value);
}

static void test_json(void **state) {
    const scene *s = *state;
    const tr_simulation *r = tr_simulated_result(s->simulated);
    json_t *root = parsed(s->simulated, tr_simulated_print_json), *kind;
    const char *name;
    assert_string_equal(json_string_value(json_object_get(root, "machine")),
                        "a \"b\"\n");
    assert_near(number(root, "seconds"), r->seconds, nearly);
    assert_near(number(root, "compute_seconds") + number(root, "slowed_seconds") +
                    number(root, "exposed_seconds"),
                r->seconds, nearly);
    assert_near(number(root, "samples_per_second") * r->seconds, 4, nearly);
    assert_near(number(root, "tokens_per_second") * r->seconds, 16, nearly);
    assert_near(number(root, "utilisation"), r->flops / r->seconds / 1e9, nearly);
    assert_true(number(root, "model_flops") < number(root, "flops"));
    tr_model_flops f = tr_plan_model_flops(s->plan);
    assert_near(number(root, "product_seconds") + number(root, "attention_seconds") +
                    number(root, "other_seconds") + number(root, "update_seconds"),
                r->compute_seconds, nearly);
    assert_true(number(root, "update_seconds") > 0);
    assert_near(number(root, "slower_seconds"), 0, 0);
    assert_near(number(root, "tokens_per_second_per_rank") * r->seconds, 8, nearly);
    assert_near(number(root, "tflops_per_rank"), f.full / r->seconds / 1e12, nearly);
    assert_near(number(root, "mfu"), f.full / r->seconds / 1e9, nearly);
    assert_near(number(root, "mfu_causal"), f.causal / r->seconds / 1e9, nearly);
    assert_near(number(root, "hfu"), (f.full + f.full_again) / r->seconds / 1e9,
                nearly);
    assert_near(number(root, "hfu_causal"),
                (f.causal + f.causal_again) / r->seconds / 1e9, nearly);
    assert_true(f.full > 0);
    const json_t *traffic = json_object_get(root, "traffic_bytes");
    assert_near(number(traffic, "gather"), (double)s->plan->traffic.gather, 0);
    assert_near(number(traffic, "reduce"), (double)s->plan->traffic.reduce, 0);
    const json_t *memory = json_object_get(root, "memory");
    const json_t *device = json_object_get(memory, "device");
    assert_near(number(device, "planned"),
                (double)s->plan->ledger.total[TR_SPACE_DEVICE], 0);
    assert_near(number(device, "machine"), 64, 0);
    assert_near(number(json_object_get(memory, "host"), "machine"), 2048, 0);
    assert_true(
        json_is_null(json_object_get(json_object_get(memory, "nvme"), "machine")));
    double busy = 0, steps = 0;
    json_object_foreach(json_object_get(root, "kinds"), name, kind) {
        bool message = strcmp(name, "gather") == 0 || strcmp(name, "reduce") == 0;
        busy += message ? 0 : number(kind, "seconds");
        steps += number(kind, "steps");
    }
    assert_near(busy, r->compute_seconds + r->slowed_seconds, nearly);
    assert_near(steps, (double)s->plan->sequences[TR_SEQUENCE_TRAIN].count, 0);
    json_decref(root);
}

static void test_text(void **state) {
    const scene *s = *state;
    char *text = printed(s->simulated, tr_simulated_print);
    assert_non_null(strstr(text, "batch 4 = micro-batch 1 x 2 accumulation steps x 2"));
    assert_non_null(strstr(text, "of 64 B: DOES NOT FIT"));
    assert_non_null(strstr(text, "recompute"));
    assert_non_null(strstr(text, "without recomputation"));
    free(text);
}

// Every step is there once, on its stream, in the plan's order, and no two of a stream
// at the same time.
static void test_trace(void **state) {
    const scene *s = *state;
    const tr_sequence *sequence = &s->plan->sequences[TR_SEQUENCE_TRAIN];
    json_t *root = parsed(s->simulated, tr_simulated_trace), *event;
    double last_end[TR_STREAMS] = {0}, latest = 0;
    int last_step[TR_STREAMS] = {-1, -1, -1, -1, -1};
    size_t index, spans = 0, names = 0;
    json_array_foreach(json_object_get(root, "traceEvents"), index, event) {
        const char *phase = json_string_value(json_object_get(event, "ph"));
        assert_near(number(event, "pid"), 0, 0);
        int stream = (int)number(event, "tid");
        assert_true(stream >= 0 && stream < TR_STREAMS);
        if (strcmp(phase, "M") == 0) {
            names++;
            continue;
        }
        assert_string_equal(phase, "X");
        int step = (int)number(json_object_get(event, "args"), "step");
        double begins = number(event, "ts"), takes = number(event, "dur");
        assert_true(step > last_step[stream] && step < (int)sequence->count);
        assert_int_equal(sequence->steps[step].stream, stream);
        assert_true(takes >= 0 && begins >= last_end[stream] - 0.002); // printed in ns
        last_step[stream] = step;
        last_end[stream] = begins + takes;
        latest = last_end[stream] > latest ? last_end[stream] : latest;
        spans++;
    }
    assert_int_equal(spans, sequence->count);
    assert_int_equal(names, 1 + TR_STREAMS);
    assert_near(latest / 1e6, tr_simulated_result(s->simulated)->seconds, nearly);
    json_decref(root);
}

// What the caller does in the middle of a step takes no time.
static void test_outside(void **state) {
    tr_plan_request request = test_request(&test_model_open, 2, 2);
    (void)state;
    tr_plan *plan = test_plan(&request);
    tr_machine *machine = test_machine(
        "{\"name\": \"m\", \"ranks_per_node\": 1, \"compute\": {\"flops\": 1e9, "
        "\"bytes\": 1e9, \"launch\": 1e-5}}");
    tr_simulated *simulated = test_simulate(plan, machine);
    char *text = printed(simulated, tr_simulated_print);
    assert_non_null(strstr(text, "its time is not known"));
    assert_null(strstr(text, "hand_out"));
    free(text);
    tr_simulated_destroy(simulated);
    tr_machine_close(machine);
    tr_plan_destroy(plan);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_outside),
        cmocka_unit_test_setup_teardown(test_json, begin, end),
        cmocka_unit_test_setup_teardown(test_text, begin, end),
        cmocka_unit_test_setup_teardown(test_trace, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

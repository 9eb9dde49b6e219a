// Plans as text and JSON.
// Labels: check
#include "models/models.h"
#include "plan/flow/roles.h"
#include "plan/models.h"
#include "plan/ordered.h"
#include "plan/print/print.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

// ---- text

static size_t count_lines(const char *text) {
    size_t lines = 0;
    for (; *text; text++) {
        lines += *text == '\n';
        assert_false(text[0] == ' ' && text[1] == '\n');
    }
    return lines;
}

static void repeats_are_folded(void **state) {
    (void)state;
    tr_model *model = test_model_gpt2();
    static const int64_t waves[] = {1, 8, 64, 1, 8, 64, 7},
                         recomputed[] = {0, 0, 0, -1, -1, -1, 5};
    for (int i = 0; i < 7; i++) {
        tr_plan_request request = test_request(model, 1, 64);
        request.wave = waves[i];
        request.recomputed_units = recomputed[i];
        tr_plan *plan = test_plan(&request);
        size_t length = 0;
        char *text = test_plan_text(plan, false, &length);
        assert_true(count_lines(text) < 80);
        assert_non_null(strstr(text, "64 accumulation steps"));
        assert_non_null(strstr(text, "backward"));
        free(text);
        tr_plan_destroy(plan);
    }
    tr_model_destroy(model);
}

static void assert_json_ledger(const tr_plan *plan, const json_t *root) {
    const json_t *ledger = json_object_get(root, "ledger");
    for (int s = 0; s < TR_SPACES; s++) {
        const json_t *space = json_object_get(ledger, tr_space_name((tr_space)s));
        assert_int_equal(json_integer_value(json_object_get(space, "total")),
                         plan->ledger.total[s]);
        for (int c = 0; c < TR_LEDGER_COUNT; c++) {
            const char *name = tr_ledger_name((tr_ledger_category)c);
            assert_int_equal(json_integer_value(json_object_get(space, name)),
                             plan->ledger.bytes[s][c]);
        }
    }
}

static void assert_json_steps(const tr_plan *plan, const json_t *root,
                              tr_sequence_kind kind) {
    const json_t *steps = json_object_get(root, "steps"), *step;
    const tr_sequence *sequence = &plan->sequences[kind];
    size_t i;
    assert_int_equal(json_array_size(steps), sequence->count);
    json_array_foreach(steps, i, step) {
        const tr_plan_step *want = &sequence->steps[i];
        const char *unit = json_string_value(json_object_get(step, "unit"));
        const json_t *output = json_object_get(step, "output");
        assert_string_equal(json_string_value(json_object_get(step, "kind")),
                            tr__verb_name(want->label.verb));
        if (want->label.verb == TR_VERB_forward) {
            assert_string_equal(unit, plan->request.model->units[want->unit].name);
        }
        const tr_step_operand *made = tr__step_find(plan, want, TR_OPERAND_OUTPUT);
        const tr_buffer *buffer = made ? &plan->buffers[made->buffer] : NULL;
        if (buffer && buffer->sequence >= 0) {
            assert_int_equal(json_integer_value(json_array_get(output, 0)),
                             buffer->offset);
            assert_int_equal(json_integer_value(json_array_get(output, 1)),
                             buffer->bytes);
        }
    }
}

static void json_says_what_the_plan_is(void **state) {
    (void)state;
    tr_model *model = test_model_small_gpt2(0.1);
    for (int i = 0; i < 2; i++) {
        tr_plan_request request = test_request(model, 2, i ? 1 : 3);
        request.inference = i;
        request.train_batch_size -= 1;
        tr_plan *plan = test_plan(&request);
        size_t length = 0;
        char *text = test_plan_text(plan, true, &length);
        json_error_t error;
        json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &error);
        assert_non_null(root);
        static const char *const numbers[] = {
            "ranks", "train_batch_size", "micro_batch", "accumulation_steps", "wave",
            "stage", "parameters"};
        const int64_t want[] = {
            1, i ? 1 : 5, 2, i ? 1 : 3, 1, 0, tr_plan_parameters(plan)};
        for (int k = 0; k < 7; k++) {
            const json_t *number = json_object_get(root, numbers[k]);
            assert_true(json_is_integer(number));
            assert_int_equal(json_integer_value(number), want[k]);
        }
        assert_true(json_number_value(json_object_get(root, "flops")) > 0);
        assert_int_equal(json_object_size(json_object_get(root, "traffic_bytes")), 6);
        assert_json_ledger(plan, root);
        assert_json_steps(plan, root, i ? TR_SEQUENCE_INFERENCE : TR_SEQUENCE_TRAIN);
        json_decref(root);
        free(text);
        tr_plan_destroy(plan);
    }
    tr_model_destroy(model);
}

static int64_t whole_of(const json_t *object, const char *name) {
    return json_integer_value(json_object_get(object, name));
}

// One step of the plan, in the `time`-th time of a repeat (NULL: in none).
static void assert_step_at(const tr_plan_step *want, const json_t *step,
                           const json_t *each, int64_t time) {
    const json_t *wait = json_object_get(step, "wait");
    assert_string_equal(json_string_value(json_object_get(step, "kind")),
                        tr__verb_name(want->label.verb));
    if (want->of_micro_batch) {
        assert_int_equal(whole_of(step, "micro_batch") +
                             time * whole_of(each, "micro_batch"),
                         want->micro);
    }
    assert_int_equal(wait != NULL, want->wait[TR_STREAM_COMM] > 0);
    if (wait) {
        assert_int_equal(json_integer_value(wait) + time * whole_of(each, "wait"),
                         want->wait[TR_STREAM_COMM]);
    }
}

// A long plan is folded, and unfolds to itself.
static void long_json_is_folded(void **state) {
    (void)state;
    tr_model *model = test_model_small_gpt2(0.1);
    for (int ranks = 1; ranks <= 2; ranks++) {
        tr_plan_request request = test_request(model, 1, 3000);
        request.mesh = tr_mesh_of_data(ranks, 0);
        request.train_batch_size *= ranks;
        request.stage = ranks == 1 ? 0 : 3;
        tr_plan *plan = test_plan(&request);
        const tr_plan_step *want = plan->sequences[TR_SEQUENCE_TRAIN].steps;
        size_t length = 0, at = 0, i, k;
        char *text = test_plan_text(plan, true, &length);
        json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, NULL), *step, *inner;
        assert_true(length < 100000);
        json_array_foreach(json_object_get(root, "steps"), i, step) {
            const json_t *each = json_object_get(step, "each");
            int64_t times = each ? whole_of(step, "repeat") : 1;
            for (int64_t time = 0; time < times && each; time++) {
                json_array_foreach(json_object_get(step, "steps"), k, inner) {
                    assert_step_at(&want[at++], inner, each, time);
                }
            }
            if (!each) {
                assert_step_at(&want[at++], step, NULL, 0);
            }
        }
        assert_int_equal(at, plan->sequences[TR_SEQUENCE_TRAIN].count);
        json_decref(root);
        free(text);
        tr_plan_destroy(plan);
    }
    tr_model_destroy(model);
}

// Pieces of updates are one line, in both places.
static void printed_pieces_are_folded(void **state) {
    (void)state;
    tr_model *model = NULL;
    tr_error err = {0};
    tr_mlp_config config = {.size = {40, 60, 50, 5}, .layers = 3};
    assert_int_equal(tr__model_mlp(&config, &model, &err), TR_OK);
    tr_plan_request request = test_request(model, 2, 3);
    request.optimizer_placement = request.param_placement = TR_SPACE_NVME;
    request.update_elements = 1024;
    tr_plan *plan = test_plan(&request);
    size_t length;
    char *text = test_plan_text(plan, false, &length), all[64];
    snprintf(all, sizeof all, "    update %s .. %s, 7 pieces\n", plan->flats[0].name,
             plan->flats[2].name); // of 2460, 3050 and 255 parameters
    assert_non_null(strstr(text, all));
    assert_non_null(strstr(text, "3 pieces, if the step before deferred them\n"));
    assert_non_null(strstr(text, "1 piece, if the step before deferred them\n"));
    assert_null(strstr(text, "read state 0"));
    free(text);
    tr_plan_destroy(plan);
    tr_model_destroy(model);
}

static void printed_inputs_are_told_from_parameters(void **state) {
    (void)state;
    tr_model *model = test_model_small_gpt2(0);
    tr_plan_request request = test_request(model, 2, 3);
    request.wave = 3;
    request.recomputed_units = -1;
    request.boundary_placement = TR_SPACE_HOST;
    tr_plan *plan = test_plan(&request);
    size_t length;
    char *text = test_plan_text(plan, false, &length);
    assert_non_null(strstr(text, "evict input of h.0, micro-batch"));
    assert_non_null(strstr(text, "fetch input of h.0, micro-batch"));
    free(text);
    tr_plan_destroy(plan);
    tr_model_destroy(model);
}

static bool json_names(const tr_plan_request *request, const char *words) {
    tr_plan *plan = test_plan(request);
    size_t length;
    char *text = test_plan_text(plan, true, &length);
    bool found = strstr(text, words);
    free(text);
    tr_plan_destroy(plan);
    return found;
}

static void parts_have_their_names_in_json(void **state) {
    (void)state;
    tr_model *model = test_model_mlp();
    tr_plan_request request = test_request(model, 2, 3);
    request.optimizer_placement = request.param_placement = TR_SPACE_NVME;
    request.compute = TR_BF16;
    request.optimizer_states = 2;
    assert_true(json_names(&request, "\"part\": \"copy\""));
    assert_true(json_names(&request, "\"part\": \"state 1\""));
    assert_true(json_names(&request, "\"staged state 1\": ["));
    request = test_request(model, 2, 3);
    request.train_batch_size *= 2;
    request.mesh = tr_mesh_of_data(2, 0);
    request.stage = 1;
    request.tensor_norms = true;
    assert_true(json_names(&request, "\"part\": \"norms\""));
    assert_true(json_names(&request, "\"norms\": ["));
    tr_model_destroy(model);
}

static void a_full_disk_is_an_error(void **state) {
    (void)state;
    tr_plan_request request = test_request(&test_model_centered, 2, 3);
    tr_plan *plan = test_plan(&request);
    for (int json = 0; json < 2; json++) {
        FILE *to = fopen("/dev/full", "w");
        tr_error err = {0};
        if (!to) {
            skip();
        }
        setvbuf(to, NULL, _IONBF, 0);
        tr_status status =
            json ? tr__plan_print_json(plan, to, &err) : tr__plan_print(plan, to, &err);
        assert_int_equal(status, TR_IO);
        fclose(to);
    }
    tr_plan_destroy(plan);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(repeats_are_folded),
        cmocka_unit_test(json_says_what_the_plan_is),
        cmocka_unit_test(long_json_is_folded),
        cmocka_unit_test(printed_pieces_are_folded),
        cmocka_unit_test(printed_inputs_are_told_from_parameters),
        cmocka_unit_test(parts_have_their_names_in_json),
        cmocka_unit_test(a_full_disk_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

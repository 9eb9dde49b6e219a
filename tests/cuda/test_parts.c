// Steps in parts whose caller computes on the device ("execution.parts_on_device"), on
// a device of the host's memory and threads: outputs are in its memory and are not
// copied by the plan, rows and gradients come from there, and the steps are those of a
// caller on the host, to the last bit.
#include "backend/cuda/driver.h"
#include "cuda/device.h"
#include "cuda/trained.h"
#include "guard/guard.h"
#include "train/outside.h"

#include <stdio.h>
#include <string.h>

enum { STEPS = 3, MICROS = 2, TEXT_MAX = 1024, ROOM = 4096 };

_Static_assert((int)sizeof(float) * OUTSIDE_ROWS * (OWN_CLASSES + OWN_FEATURES) <= ROOM,
               "rows, or gradients");

static outside_data data;

static void open_on(trial *t, own_model *own, bool on_device, const char *more) {
    char text[TEXT_MAX];
    snprintf(text, sizeof text,
             "{\"steps\": 9, \"train_micro_batch_size_per_gpu\": %d, "
             "\"gradient_accumulation_steps\": %d, %s \"device\": \"cuda\", "
             "\"execution\": {\"parts_on_device\": %s}, "
             "\"optimizer\": {\"type\": \"AdamW\", \"params\": {\"lr\": 0.01, "
             "\"eps\": 1e-6}}, \"out\": \"unused\"}",
             OUTSIDE_ROWS, MICROS, more, on_device ? "true" : "false");
    own_model_make_open(own, 0);
    run_options options = {.text = text, .own_model = &own->model, .resume = "never"};
    trial_open(t, &options);
}

// ---- a caller who computes on the device

static void *stream;

static void copy(void *to, const void *from, int64_t bytes) {
    const tr_cuda_driver *driver = tr__cuda_driver();
    assert_int_equal(driver->copy(to, from, (size_t)bytes, stream), 0);
    assert_int_equal(driver->stream_wait(stream), 0);
}

static bool is_in(tr_arena *arena, const void *address, int64_t bytes) {
    uintptr_t first = (uintptr_t)tr__arena_view(arena, 0, 0), at = (uintptr_t)address;
    return at >= first && at + (size_t)bytes <= first + tr__arena_high_water(arena);
}

// The loss of what was copied from the device, and its gradient, which goes there.
static double loss_there(trial *t, const tr_outputs *outputs, int64_t first,
                         void *room) {
    float gradient[OUTSIDE_ROWS * OWN_CLASSES], logits[OUTSIDE_ROWS * OWN_CLASSES];
    tr_output here = outputs->output[0];
    int64_t bytes = tr_tensor_bytes(here.desc);
    assert_true(is_in(t->engine->arenas[TR_SPACE_DEVICE], here.data, bytes));
    copy(logits, here.data, bytes);
    here.data = logits;
    double loss = outside_loss(&here, data.label + first, gradient);
    copy(room, gradient, here.desc.shape.dim[0] * OWN_CLASSES * (int64_t)sizeof(float));
    return loss;
}

// Rows that the first of the step has on the host are on the device for the others.
static void micro_on_device(trial *t, int64_t first, int64_t rows, void *room) {
    tr_forward_options options = TR_FORWARD_OPTIONS_INIT;
    tr_outputs outputs = TR_OUTPUTS_INIT;
    tr_error err = {0};
    const void *here[] = {data.x[first]}, *there[] = {room};
    const float *const gradients[] = {room};
    options.rows = rows;
    if (first / OUTSIDE_ROWS % MICROS == 0) {
        options.inputs = here;
    } else {
        copy(room, data.x[first], rows * (int64_t)sizeof data.x[0]);
        options.inputs_there = there;
    }
    trial_ok(tr_engine_forward(t->engine, &options, &outputs, &err), &err);
    assert_int_equal(outputs.device, 0);
    assert_int_equal(outputs.rows, rows);
    double loss = loss_there(t, &outputs, first, room);
    trial_ok(tr_engine_backward(t->engine, gradients, loss, &err), &err);
}

static void micro_on_host(trial *t, int64_t first, int64_t rows) {
    tr_error err = {0};
    trial_ok(outside_micro(t->engine, &data, first, rows, NULL, &err), &err);
}

// The second micro-batch is short: rows that are not there get no gradient.
static void train(bool on_device, const char *more, trained *out) {
    trial t;
    own_model own;
    void *room = NULL;
    open_on(&t, &own, on_device, more);
    assert_int_equal(tr__cuda_driver()->stream_create(&stream), 0);
    assert_int_equal(tr__cuda_driver()->take(ROOM, &room), 0);
    snapshot_gather(&out->start, &t);
    out->count = STEPS;
    for (int s = 0; s < STEPS; s++) {
        tr_error err = {0};
        out->steps[s] = (tr_step_result)TR_STEP_RESULT_INIT;
        for (int64_t j = 0; j < MICROS; j++) {
            int64_t first = (s * MICROS + j) * OUTSIDE_ROWS;
            int64_t rows = j == 0 ? OUTSIDE_ROWS : OUTSIDE_ROWS - 3;
            if (on_device) {
                micro_on_device(&t, first, rows, room);
            } else {
                micro_on_host(&t, first, rows);
            }
        }
        trial_ok(tr_engine_update(t.engine, &out->steps[s], &err), &err);
        assert_false(out->steps[s].skipped);
    }
    snapshot_gather(&out->end, &t);
    trained_check_arenas(&t);
    assert_int_equal(tr__cuda_driver()->give_back(room), 0);
    assert_int_equal(tr__cuda_driver()->stream_destroy(stream), 0);
    trial_close(&t);
}

static void as_a_caller_on_the_host(void **state) {
    static const char *const settings[] = {
        "", "\"bf16\": {\"enabled\": true},",
        "\"fp16\": {\"enabled\": true, \"initial_scale_power\": 8},"};
    outside_fill(&data);
    for (int i = 0; i < 3; i++) {
        for (uint64_t seed = 0; seed < 3; seed++) {
            trained host, device;
            (void)state;
            test_guard_set_seed(seed);
            train(false, settings[i], &host);
            train(true, settings[i], &device);
            for (int s = 0; s < STEPS; s++) {
                assert_true(host.steps[s].loss == device.steps[s].loss);
                assert_true(host.steps[s].grad_norm == device.steps[s].grad_norm);
            }
            snapshot_assert_same(&host.end, &device.end);
            trained_free(&host);
            trained_free(&device);
        }
    }
}

// ---- the plan

static int64_t bytes_of(const tr_plan *plan, tr_space space) {
    return plan->arena_bytes[space];
}

// Of the rings of micro-batches.
static tr_space space_of(const tr_plan *plan) {
    const tr_buffer *rings[] = {&plan->buffers[plan->data_ring[0]],
                                &plan->buffers[plan->data_ring[1]]};
    assert_int_equal(rings[0]->space, rings[1]->space);
    return rings[0]->space;
}

static int copies_of(const tr_plan *plan, tr_sequence_kind kind) {
    const tr_sequence *sequence = &plan->sequences[kind];
    int copies = 0;
    for (size_t i = 0; i < sequence->count; i++) {
        copies += sequence->steps[i].shape == TR_STEP_IS_COPY;
    }
    return copies;
}

static void nothing_of_it_is_copied_or_on_the_host(void **state) {
    trial host, device;
    own_model a, b;
    (void)state;
    open_on(&host, &a, false, "");
    open_on(&device, &b, true, "");
    assert_int_equal(copies_of(host.plan, TR_SEQUENCE_TRAIN), 2 * MICROS);
    assert_int_equal(copies_of(host.plan, TR_SEQUENCE_EVALUATE), 1);
    assert_int_equal(copies_of(device.plan, TR_SEQUENCE_TRAIN), 0);
    assert_int_equal(copies_of(device.plan, TR_SEQUENCE_EVALUATE), 0);
    assert_true(host.plan->traffic.device_host > 0);
    assert_int_equal(device.plan->traffic.device_host, 0);
    assert_true(bytes_of(device.plan, TR_SPACE_HOST) <
                bytes_of(host.plan, TR_SPACE_HOST));
    assert_int_equal(space_of(host.plan), TR_SPACE_HOST);
    assert_int_equal(space_of(device.plan), TR_SPACE_DEVICE);
    assert_int_equal(host.plan->landing, -1);
    assert_true(device.plan->landing >= 0);
    trial_close(&host);
    trial_close(&device);
}

// ---- an evaluation

static void an_evaluation_takes_rows_from_there(void **state) {
    tr_outputs outputs = TR_OUTPUTS_INIT;
    tr_error err = {0};
    float found[2][OUTSIDE_ROWS * OWN_CLASSES];
    own_model own;
    trial t;
    void *room = NULL;
    (void)state;
    test_guard_set_seed(1);
    open_on(&t, &own, true, "");
    assert_int_equal(tr__cuda_driver()->stream_create(&stream), 0);
    assert_int_equal(tr__cuda_driver()->take(ROOM, &room), 0);
    copy(room, data.x[8], OUTSIDE_ROWS * (int64_t)sizeof data.x[0]);
    for (int i = 0; i < 2; i++) {
        tr_forward_options options = TR_FORWARD_OPTIONS_INIT;
        const void *here[] = {data.x[8]}, *there[] = {room};
        options.rows = OUTSIDE_ROWS - 2;
        options.evaluate = true;
        options.inputs = i == 0 ? here : NULL;
        options.inputs_there = i == 1 ? there : NULL;
        trial_ok(tr_engine_forward(t.engine, &options, &outputs, &err), &err);
        copy(found[i], outputs.output[0].data, tr_tensor_bytes(outputs.output[0].desc));
    }
    assert_memory_equal(found[0], found[1],
                        (size_t)tr_tensor_bytes(outputs.output[0].desc));
    assert_int_equal(tr__cuda_driver()->give_back(room), 0);
    assert_int_equal(tr__cuda_driver()->stream_destroy(stream), 0);
    trial_close(&t);
}

// ---- what goes wrong there

static void refuse_rows(trial *t, bool here, const char *words) {
    tr_forward_options options = TR_FORWARD_OPTIONS_INIT;
    tr_outputs outputs = TR_OUTPUTS_INIT;
    tr_error err = {0};
    const void *rows[] = {data.x[0]};
    options.rows = OUTSIDE_ROWS;
    options.inputs = here ? rows : NULL;
    options.inputs_there = rows;
    assert_int_equal(tr_engine_forward(t->engine, &options, &outputs, &err), TR_USAGE);
    assert_non_null(strstr(err.message, words));
}

static void rows_of_two_places_are_refused(void **state) {
    own_model a, b;
    trial host, device;
    (void)state;
    open_on(&host, &a, false, "");
    open_on(&device, &b, true, "");
    refuse_rows(&host, false, "execution.parts_on_device");
    refuse_rows(&device, true, "not both");
    trial_close(&host);
    trial_close(&device);
}

static void a_gradient_that_cannot_be_taken_ends_the_step(void **state) {
    tr_forward_options options = TR_FORWARD_OPTIONS_INIT;
    tr_outputs outputs = TR_OUTPUTS_INIT;
    tr_error err = {0};
    trial t;
    own_model own;
    const float *const gradients[] = {NULL};
    const void *inputs[] = {data.x[0]};
    (void)state;
    test_guard_set_seed(0);
    open_on(&t, &own, true, "");
    options.inputs = inputs;
    options.rows = OUTSIDE_ROWS;
    trial_ok(tr_engine_forward(t.engine, &options, &outputs, &err), &err);
    test_device_fail(TEST_LAUNCH, 1, false);
    tr_status status = tr_engine_backward(t.engine, gradients, 0, &err);
    test_device_mend();
    assert_int_equal(status, TR_INTERNAL);
    assert_non_null(strstr(err.message, "the device"));
    trial_close(&t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_a_caller_on_the_host),
        cmocka_unit_test(nothing_of_it_is_copied_or_on_the_host),
        cmocka_unit_test(an_evaluation_takes_rows_from_there),
        cmocka_unit_test(rows_of_two_places_are_refused),
        cmocka_unit_test(a_gradient_that_cannot_be_taken_ends_the_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// The checker finds parameters without room: of what lives always, the range that units
// compute with, the f32 master weights, and where the update rounds them to.
#include "plan/check.h"
#include "plan/models.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

typedef struct subject {
    const char *name;
    tr_dtype compute; // TR_NONE: f32
    int stage;        // of two ranks
    tr_space optimizer, params;
} subject;

static const subject subjects[] = {
    {"f32", TR_NONE, 0, 0, 0},
    {"f32, stage 3, on the host", TR_NONE, 3, TR_SPACE_HOST, TR_SPACE_HOST},
    {"bf16", TR_BF16, 0, 0, 0},
    {"bf16, stage 1", TR_BF16, 1, 0, 0},
    {"fp16, stage 2, optimizer on the host", TR_F16, 2, TR_SPACE_HOST, 0},
    {"bf16, stage 3, on the host", TR_BF16, 3, TR_SPACE_HOST, TR_SPACE_HOST},
    {"f32, stage 3, on NVMe", TR_NONE, 3, TR_SPACE_NVME, TR_SPACE_NVME},
    {"bf16, stage 3, on NVMe", TR_BF16, 3, TR_SPACE_NVME, TR_SPACE_NVME},
    {"fp16, stage 1, optimizer on NVMe", TR_F16, 1, TR_SPACE_NVME, 0},
};
enum { SUBJECTS = sizeof subjects / sizeof *subjects };

static tr_plan *make(const tr_model *model, const subject *s) {
    tr_plan_request request = test_request(model, 2, 2);
    request.ranks = 2;
    request.train_batch_size *= 2;
    request.stage = s->stage;
    request.compute = s->compute;
    request.optimizer_home = s->optimizer;
    request.param_home = s->params;
    return test_plan(&request);
}

static void must_find(const tr_plan *plan, const subject *s, const char *what,
                      size_t flat) {
    tr_error err = {0};
    if (tr__check_kept(plan, &err) != TR_INTERNAL) {
        fail_msg("%s: %s (%zu) is not found", s->name, what, flat);
    }
}

static void shrink(tr_plan *plan, const subject *s, size_t f) {
    tr_flat *flat = &plan->flats[f];
    const tr_flat_range *ranges[] = {&flat->param, &flat->master, &flat->copy};
    for (int i = 0; i < 3; i++) {
        int buffer = ranges[i]->buffer;
        if (buffer < 0 || ranges[i]->count == 0) {
            continue;
        }
        int64_t bytes = plan->buffers[buffer].bytes;
        int64_t element =
            i == 1 ? (int64_t)sizeof(float) : (s->compute ? 2 : (int64_t)sizeof(float));
        plan->buffers[buffer].bytes = ranges[i]->count * element - 1;
        must_find(plan, s, "a range with too little room", f);
        plan->buffers[buffer].bytes = bytes;
    }
}

static void swap_ranges(tr_plan *plan, const subject *s, size_t f) {
    tr_flat *flat = &plan->flats[f];
    tr_flat_range copy = flat->copy, master = flat->master;
    if (s->compute) {
        flat->copy.buffer = master.buffer;
        must_find(plan, s, "16 bits on top of master weights", f);
    }
    flat->copy.buffer = -1;
    must_find(plan, s, "no copy", f);
    flat->copy = copy;
    flat->master.buffer = (int)plan->buffer_count;
    must_find(plan, s, "no master", f);
    flat->master = master;
    flat->master.first += 1024;
    must_find(plan, s, "another rank's part", f);
    flat->master = master;
}

static void parameters_without_room_are_found(void **state) {
    tr_model *model = test_model_small_gpt2(0);
    (void)state;
    for (int i = 0; i < SUBJECTS; i++) {
        tr_plan *plan = make(model, &subjects[i]);
        tr_error err = {0};
        for (size_t f = 0; f < plan->flat_count; f++) {
            shrink(plan, &subjects[i], f);
            swap_ranges(plan, &subjects[i], f);
        }
        assert_int_equal(tr__plan_check(plan, &err), TR_OK);
        tr_plan_destroy(plan);
    }
    tr_model_destroy(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parameters_without_room_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

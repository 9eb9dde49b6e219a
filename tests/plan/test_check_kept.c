// The checker finds parameters and gradients without room: of what lives always, the
// range that units compute with, the f32 master weights, where the update rounds them
// to, and the sums of gradients, in their own type.
#include "plan/flow/passes.h"
#include "plan/models.h"
#include "plan/proof/check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

typedef struct subject {
    const char *name;
    tr_dtype compute; // TR_NONE: f32
    int stage;        // of two ranks
    tr_space optimizer, params;
    tr_dtype sums; // TR_NONE: f32
} subject;

static const subject subjects[] = {
    {"f32", TR_NONE, 0, 0, 0, TR_NONE},
    {"f32, stage 3, on the host", TR_NONE, 3, TR_SPACE_HOST, TR_SPACE_HOST, TR_NONE},
    {"bf16", TR_BF16, 0, 0, 0, TR_NONE},
    {"bf16, stage 1", TR_BF16, 1, 0, 0, TR_NONE},
    {"fp16, stage 2, optimizer on the host", TR_F16, 2, TR_SPACE_HOST, 0, TR_NONE},
    {"bf16, stage 3, on the host", TR_BF16, 3, TR_SPACE_HOST, TR_SPACE_HOST, TR_NONE},
    {"f32, stage 3, on NVMe", TR_NONE, 3, TR_SPACE_NVME, TR_SPACE_NVME, TR_NONE},
    {"bf16, stage 3, on NVMe", TR_BF16, 3, TR_SPACE_NVME, TR_SPACE_NVME, TR_NONE},
    {"fp16, stage 1, optimizer on NVMe", TR_F16, 1, TR_SPACE_NVME, 0, TR_NONE},
    {"bf16 sums", TR_NONE, 0, 0, 0, TR_BF16},
    {"fp16 sums, stage 1, optimizer on the host", TR_F16, 1, TR_SPACE_HOST, 0, TR_F16},
    {"bf16 sums, stage 3, on NVMe", TR_BF16, 3, TR_SPACE_NVME, TR_SPACE_NVME, TR_BF16},
};
enum { SUBJECTS = sizeof subjects / sizeof *subjects };

static tr_plan *make(const tr_model *model, const subject *s) {
    tr_plan_request request = test_request(model, 2, 2);
    request.mesh = tr_mesh_of_data(2, 0);
    request.train_batch_size *= 2;
    request.stage = s->stage;
    request.compute = s->compute;
    request.sums = s->sums;
    request.optimizer_placement = s->optimizer;
    request.param_placement = s->params;
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
    int64_t f32 = sizeof(float), used = s->compute ? 2 : f32, sum = s->sums ? 2 : f32;
    const tr_flat_range *ranges[] = {&flat->param, &flat->master, &flat->copy,
                                     &flat->grad, &flat->sums};
    const int64_t elements[] = {used, f32, used, sum, sum};
    for (int i = 0; i < 5; i++) {
        int buffer = ranges[i]->buffer;
        if (buffer < 0 || ranges[i]->count == 0) {
            continue;
        }
        int64_t bytes = plan->buffers[buffer].bytes;
        plan->buffers[buffer].bytes = ranges[i]->count * elements[i] - 1;
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

static void swap_gradients(tr_plan *plan, const subject *s, size_t f) {
    tr_flat *flat = &plan->flats[f];
    tr_flat_range grad = flat->grad, sums = flat->sums;
    flat->grad.buffer = -1;
    must_find(plan, s, "no gradients", f);
    flat->grad = grad;
    flat->grad.first += 1024;
    must_find(plan, s, "another rank's gradients", f);
    flat->grad = grad;
    flat->sums.buffer = sums.buffer < 0 ? grad.buffer : -1;
    must_find(plan, s, "sums where they should not be, or none", f);
    flat->sums = sums;
}

static void what_has_no_room_is_found(void **state) {
    tr_model *model = test_model_small_gpt2(0);
    (void)state;
    for (int i = 0; i < SUBJECTS; i++) {
        tr_plan *plan = make(model, &subjects[i]);
        tr_error err = {0};
        for (size_t f = 0; f < plan->flat_count; f++) {
            shrink(plan, &subjects[i], f);
            swap_ranges(plan, &subjects[i], f);
            swap_gradients(plan, &subjects[i], f);
        }
        assert_int_equal(tr__plan_check(plan, &err), TR_OK);
        tr_plan_destroy(plan);
    }
    tr_model_destroy(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_has_no_room_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

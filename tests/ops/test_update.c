// The ops of an update: each range of a flat buffer by its own numbers, whatever the
// type of the sums; nothing between the ranges changes.
#include "ops/flat/update/update.h"

#include "backend/backend.h"
#include "backend/cpu/half.h"
#include "ops/flat/accumulate/cpu_convert.h"
#include "ops/launch.h"
#include "ops/optimizers/lamb/lamb.h"
#include "ops/optimizers/optimizer_measure.h"
#include "ops/optimizers/sgd/sgd.h"
#include "ops/update.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

// The op has elements [FIRST, FIRST + COUNT) of a flat buffer whose ranges begin before
// it and end after it.
enum { FIRST = 2048, COUNT = 70000, RANGES = 4, FLAT = 7 };

static const tr_update_range ranges[RANGES + 2] = {
    {.flat = FLAT - 1, .offset = 0, .count = 100000},
    {.flat = FLAT, .offset = 1000, .count = 3000, .group = 0, .tensor = 1},
    {.flat = FLAT,
     .offset = 4008,
     .count = 1,
     .group = 1,
     .place = 1,
     .adapts = true,
     .tensor = 2},
    {.flat = FLAT,
     .offset = 4016,
     .count = 60000,
     .group = 1,
     .place = 2,
     .undecayed = true},
    {.flat = FLAT,
     .offset = 65000,
     .count = 9000,
     .group = 0,
     .place = 3,
     .adapts = true},
    {.flat = FLAT + 1, .offset = 0, .count = 100000},
};
static tr_hyper hyper[2]; // of the groups
static const double power[2][2] = {{0.5, 0.7}, {0.4, 0.6}};
static const double tensors[6] = {4, 9, 16, 1, 25, 1};

// What a run file gives the optimizer, with numbers of each group's own.
static void set_hyper(const tr_optimizer_settings *of, const char *params) {
    hyper[0] = hyper[1] = test_hyper_read(of, params);
    hyper[0].lr = 0.1;
    hyper[0].weight_decay = 0.1;
    hyper[1].lr = 0.02;
    hyper[1].weight_decay = 0.3;
    if (of->optimizer->has_betas) {
        hyper[1].beta1 = 0.8;
        hyper[1].beta2 = 0.9;
    }
}

static tr_update_order order_of(const tr_optimizer *optimizer) {
    return (tr_update_order){.optimizer = optimizer,
                             .ranges = ranges,
                             .range_count = RANGES + 2,
                             .hyper = hyper,
                             .grad_scale = 0.25,
                             .number = 3,
                             .power = power};
}

static const double SCALE = 0x1p30;

// Gradients as sums of a type: sums [COUNT], and what they are as f32.
static void *make_sums(tr_dtype type, float *grads) {
    tr_op_desc desc = {.op = &tr__op_accumulate,
                       .in_count = 1,
                       .out_count = 2,
                       .in = {{TR_F32, TR_SHAPE1(COUNT)}},
                       .out = {{type, TR_SHAPE1(COUNT)}, {TR_F64, TR_SHAPE1(2)}},
                       .target = {.workers = 2}};
    double counts[2] = {0};
    void *sums = calloc(COUNT, sizeof(int64_t));
    assert_non_null(sums);
    if (type == TR_F32) {
        memcpy(sums, grads, COUNT * sizeof *grads);
        return sums;
    }
    tr_run_context run = {.fixed_scale = SCALE, .fixed_limit = TR_FIXED_TOP};
    tr_launch launch = {.in = {grads}, .out = {sums, counts}, .run = &run};
    test_launch(tr__kernel_find(&desc), &desc, &launch);
    const tr_target plain = {.level = -1, .workers = 2};
    tr__sums_convert(type, sums, COUNT, SCALE, &plain, grads);
    return sums;
}

// What the optimizer's own function makes of each range's elements.
static void update_ranges(const tr_optimizer *optimizer, int isa, test_update *u) {
    for (int i = 1; i <= RANGES; i++) {
        const tr_update_range *range = &ranges[i];
        int64_t begin = range->offset > FIRST ? range->offset - FIRST : 0;
        int64_t end = range->offset + range->count - FIRST;
        tr_hyper own = hyper[range->group];
        own.weight_decay = range->undecayed ? 0 : own.weight_decay;
        end = end < COUNT ? end : COUNT;
        tr_update update = test_update_range(u, &own, 3, begin, end - begin);
        update.grad_scale = 0.25;
        update.beta1_power = power[range->group][0];
        update.beta2_power = power[range->group][1];
        update.trust = 1;
        if (optimizer->adaptation && range->adapts) {
            const double *squares = tensors + 2 * range->tensor;
            update.trust =
                optimizer->adaptation->trust(&own, sqrt(squares[0]), sqrt(squares[1]));
        }
        tr__optimizer_choose(optimizer, isa)(&own, &update);
    }
}

static void run_op(const tr_optimizer *optimizer, int isa, tr_dtype type,
                   const void *sums, test_update *u, uint16_t *copy) {
    tr_update_order order = order_of(optimizer);
    tr_run_context run = {.fixed_scale = SCALE, .update = &order};
    tr_tensor_desc flat = {TR_F32, TR_SHAPE1(COUNT)};
    tr_op_desc desc = {
        .op = &tr__op_update,
        .in_count = 2,
        .out_count = 4,
        .in = {{type, TR_SHAPE1(COUNT)}, {TR_F64, TR_SHAPE1(6)}},
        .out = {flat, {copy ? TR_BF16 : TR_NONE, TR_SHAPE1(COUNT)}, flat, flat},
        .target = {.workers = 2, .level = isa}};
    tr_update_attr attr = {.first = FIRST, .flat = FLAT};
    memcpy(desc.attr, &attr, sizeof attr);
    tr_launch launch = {
        .in = {sums, tensors},
        .out = {u->buffer[0].data, copy, u->buffer[2].data, u->buffer[3].data},
        .run = &run};
    const tr_kernel *kernel =
        optimizer && isa >= 0 ? tr__kernel_find(&desc) : tr__op_update.reference;
    test_launch(kernel, &desc, &launch);
}

static void try_update(const tr_optimizer *optimizer, int isa, tr_dtype type) {
    static uint16_t copy[COUNT], want_copy[COUNT];
    test_update got, want;
    test_update_open(&got, COUNT);
    test_update_open(&want, COUNT);
    void *sums = make_sums(type, want.buffer[1].data);
    for (int half = 0; half <= 1; half++) {
        run_op(optimizer, isa, type, sums, &got, half ? copy : NULL);
        update_ranges(optimizer, isa, &want);
        for (int b = 0; b < TEST_BUFFERS; b++) {
            assert_true(test_memory_intact(&got.buffer[b]));
            if (b != 1) {
                assert_memory_equal(got.buffer[b].data, want.buffer[b].data,
                                    got.buffer[b].bytes);
            }
        }
    }
    tr__half_narrow(TR_BF16, want.buffer[0].data, COUNT, 1, want_copy);
    assert_memory_equal(copy, want_copy, sizeof copy);
    free(sums);
    test_update_close(&got);
    test_update_close(&want);
}

static void each_range_by_its_own_numbers(void **state) {
    static const tr_dtype types[] = {TR_F32, TR_BF16, TR_F16, TR_I64};
    const tr_optimizer_settings *of;
    (void)state;
    for (size_t o = 0; (of = tr__optimizers[o]) != NULL; o++) {
        if (of->optimizer->matrices) { // has ops of its own
            continue;
        }
        set_hyper(of, of->optimizer == &tr__optimizer_sgd ? "\"momentum\": 0.9" : "");
        for (int t = 0; t < 4; t++) {
            for (int isa = -1; isa <= (int)tr__cpu_isa(); isa++) {
                try_update(of->optimizer, isa, types[t]);
            }
        }
    }
}

// ---- norms of tensors

enum { PARTS = COUNT / 1024 + 1 + RANGES };

static void measure(int isa, tr_dtype type, const void *sums, test_update *u,
                    tr_squares *parts) {
    tr_update_order order = order_of(&tr__optimizer_lamb);
    tr_run_context run = {.fixed_scale = SCALE, .update = &order};
    tr_tensor_desc flat = {TR_F32, TR_SHAPE1(COUNT)};
    tr_op_desc desc = {.op = &tr__op_direction_squares,
                       .in_count = 2,
                       .out_count = 4,
                       .in = {{type, TR_SHAPE1(COUNT)}, flat},
                       .out = {{TR_F64, TR_SHAPE1(2 * PARTS)}, {0}, flat, flat},
                       .target = {.workers = 2, .level = isa}};
    tr_update_attr attr = {.first = FIRST, .origin = FIRST, .flat = FLAT};
    memcpy(desc.attr, &attr, sizeof attr);
    tr_launch launch = {.in = {sums, u->buffer[0].data},
                        .out = {parts, NULL, u->buffer[2].data, u->buffer[3].data},
                        .run = &run};
    const tr_kernel *kernel =
        isa >= 0 ? tr__kernel_find(&desc) : tr__op_direction_squares.reference;
    test_launch(kernel, &desc, &launch);
}

// The parts of all types of sums are those of their f32, and their sum is the norm of
// the parameters.
static void parts_add_up(void **state) {
    static const tr_dtype types[] = {TR_F32, TR_BF16, TR_I64};
    (void)state;
    set_hyper(tr__optimizer_settings_find("Lamb"), "");
    for (int t = 0; t < 3; t++) {
        tr_squares parts[PARTS] = {{0}}, want[PARTS] = {{0}}, total[1] = {{0}};
        test_update u, same;
        test_update_open(&u, COUNT);
        test_update_open(&same, COUNT);
        void *sums = make_sums(types[t], same.buffer[1].data);
        measure((int)tr__cpu_isa(), types[t], sums, &u, parts);
        measure((int)tr__cpu_isa(), TR_F32, same.buffer[1].data, &same, want);
        assert_memory_equal(parts, want, sizeof want);
        assert_memory_equal(u.buffer[2].data, same.buffer[2].data, u.buffer[2].bytes);
        for (int i = 0; i < PARTS; i++) {
            total->param += parts[i].param;
            total->direction += parts[i].direction;
        }
        double squares = 0;
        const float *p = u.buffer[0].data;
        for (int i = 1; i <= RANGES; i++) {
            for (int64_t e = 0; e < ranges[i].count; e++) {
                int64_t at = ranges[i].offset + e - FIRST;
                squares += at >= 0 && at < COUNT ? (double)p[at] * p[at] : 0;
            }
        }
        assert_true(fabs(total->param - squares) <= 1e-12 * squares);
        assert_true(total->direction > 0);
        free(sums);
        test_update_close(&u);
        test_update_close(&same);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_range_by_its_own_numbers),
        cmocka_unit_test(parts_add_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#include "ops/update.h"

#include "base/rng.h"
#include "run/keys/keys.h"

#include <math.h>
#include <omp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

tr_hyper test_hyper(tr_hyper shared, const void *own, size_t bytes) {
    assert_true(bytes <= sizeof shared.own);
    memcpy(shared.own, own, bytes);
    return shared;
}

tr_hyper test_hyper_read(const tr_optimizer_settings *of, const char *params) {
    char text[512];
    tr_config *config = NULL;
    tr_hyper hyper = {0};
    tr_error err = {0};
    snprintf(text, sizeof text, "{\"optimizer\": {\"type\": \"%s\", \"params\": {%s}}}",
             of->types[0], params);
    tr_status status =
        tr__config_parse(&(tr_config_text){"run.json", text, strlen(text)},
                         tr__key_tables, TR_KEY_TABLES, NULL, 0, &config, &err);
    if (status == TR_OK && of->read) {
        hyper.lr = tr__optimizer_number(config, "lr");
        hyper.weight_decay = tr__optimizer_number(config, "weight_decay");
        status = of->read(config, &hyper, &err);
    }
    if (status != TR_OK) {
        fail_msg("%s", err.message);
    }
    tr__config_destroy(config);
    return hyper;
}

void test_update_open(test_update *update, int64_t count) {
    update->count = count;
    for (int b = 0; b < TEST_BUFFERS; b++) {
        update->buffer[b] = test_memory_take((size_t)count * sizeof(float));
        tr__fill_normal(update->buffer[b].data, 0, count, 0, b < 2 ? 1 : 0.1f, 3,
                        (uint64_t)b);
    }
    for (int b = 2; b < TEST_BUFFERS; b++) {
        float *state = update->buffer[b].data;
        for (int64_t i = 0; i < count; i++) {
            state[i] = fabsf(state[i]);
        }
    }
}

void test_update_close(test_update *update) {
    for (int b = 0; b < TEST_BUFFERS; b++) {
        test_memory_give(&update->buffer[b]);
    }
}

tr_update test_update_range(const test_update *update, const tr_hyper *hyper,
                            int number, int64_t first, int64_t count) {
    tr_update range = {
        .param = (float *)update->buffer[0].data + first,
        .grad = (const float *)update->buffer[1].data + first,
        .count = count,
        .grad_scale = 1,
        .number = number,
        .beta1_power = pow(hyper->beta1, number),
        .beta2_power = pow(hyper->beta2, number),
    };
    for (int i = 0; i < TR_OPTIMIZER_STATES; i++) {
        range.state[i] = (float *)update->buffer[2 + i].data + first;
    }
    return range;
}

tr_update_kernel *test_update_function(const tr_optimizer *optimizer, int which) {
    if (which == 0) {
        return optimizer->reference;
    }
    const tr_cpu_optimizer *row = tr__cpu_optimizer_of(optimizer);
    for (int isa = 0; row && isa <= (int)tr__cpu_isa(); isa++) {
        if (row->update[isa] && --which == 0) {
            assert_ptr_equal(tr__optimizer_choose(optimizer, (tr_isa)isa),
                             row->update[isa]);
            return row->update[isa];
        }
    }
    return NULL;
}

int test_update_isa(const tr_optimizer *optimizer, int which) {
    const tr_cpu_optimizer *row = tr__cpu_optimizer_of(optimizer);
    for (int isa = 0; row && which > 0 && isa <= (int)tr__cpu_isa(); isa++) {
        if (row->update[isa] && --which == 0) {
            return isa;
        }
    }
    return -1;
}

tr_direct_kernel *test_update_direct(const tr_optimizer *optimizer, int which) {
    const tr_adaptation *adaptation = optimizer->adaptation;
    const tr_cpu_optimizer *row = tr__cpu_optimizer_of(optimizer);
    for (int isa = 0; row && adaptation && which > 0; isa++) {
        if (row->update[isa] && --which == 0) {
            return row->direct[isa];
        }
    }
    return adaptation ? adaptation->reference : NULL;
}

static double norm_of(const float *x, int64_t count) {
    double squares = 0;
    for (int64_t i = 0; i < count; i++) {
        squares += (double)x[i] * x[i];
    }
    return sqrt(squares);
}

void test_update_tensor(const tr_optimizer *optimizer, int which, const tr_hyper *hyper,
                        const tr_update *range) {
    tr_direct_kernel *direct = test_update_direct(optimizer, which);
    tr_update update = *range;
    update.trust = 1;
    if (direct) {
        float *direction = calloc((size_t)range->count, sizeof *direction);
        assert_non_null(direction);
        direct(hyper, &update, direction);
        update.trust =
            optimizer->adaptation->trust(hyper, norm_of(update.param, update.count),
                                         norm_of(direction, update.count));
        free(direction);
    }
    test_update_function(optimizer, which)(hyper, &update);
}

static void assert_intact(const test_update *update) {
    for (int b = 0; b < TEST_BUFFERS; b++) {
        assert_true(test_memory_intact(&update->buffer[b]));
    }
}

static void assert_same_bits(const test_update *got, const test_update *want) {
    for (int b = 0; b < TEST_BUFFERS; b++) {
        assert_memory_equal(got->buffer[b].data, want->buffer[b].data,
                            got->buffer[b].bytes);
    }
}

static void check_cut(const tr_optimizer *optimizer, int which, const tr_hyper *hyper,
                      int number, const test_update *want, int64_t piece) {
    test_update got;
    test_update_open(&got, want->count);
    for (int64_t first = 0; first < got.count; first += piece) {
        int64_t left = got.count - first;
        tr_update range =
            test_update_range(&got, hyper, number, first, left < piece ? left : piece);
        range.trust = 0.5;
        test_update_function(optimizer, which)(hyper, &range);
    }
    assert_intact(&got);
    assert_same_bits(&got, want);
    test_update_close(&got);
}

void test_update_cuts(const tr_optimizer *optimizer, const tr_hyper *hyper,
                      int number) {
    enum { COUNT = 70001 }; // enough for several threads
    static const int64_t pieces[] = {COUNT, 65536, 1024, 257, 64, 17};
    for (int which = 0; test_update_function(optimizer, which); which++) {
        test_update want;
        test_update_open(&want, COUNT);
        tr_update all = test_update_range(&want, hyper, number, 0, COUNT);
        all.trust = 0.5;
        omp_set_num_threads(1);
        test_update_function(optimizer, which)(hyper, &all);
        for (int threads = 1; threads <= 3; threads++) {
            omp_set_num_threads(threads);
            for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
                check_cut(optimizer, which, hyper, number, &want, pieces[i]);
            }
        }
        test_update_close(&want);
    }
}

// The largest difference must be within `tolerance` of the largest element of `want`.
static void assert_near(const float *got, const float *want, int64_t count,
                        double tolerance) {
    double largest = 0, wrong = 0;
    for (int64_t i = 0; i < count; i++) {
        largest = fmax(largest, fabs(want[i]));
        wrong = fmax(wrong, fabs((double)got[i] - want[i]));
        assert_true(isfinite(got[i]));
    }
    if (!(wrong <= tolerance * largest)) {
        fail_msg("off by %.3g of %.3g, allowed %.3g of it", wrong, largest, tolerance);
    }
}

void test_update_agrees(const tr_optimizer *optimizer, const tr_hyper *hyper,
                        int number, double tolerance) {
    static const int64_t counts[] = {1, 3, 17, 63, 64, 65, 257, 1000};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        for (int which = 1; test_update_function(optimizer, which); which++) {
            test_update got, want;
            test_update_open(&got, counts[i]);
            test_update_open(&want, counts[i]);
            tr_update a = test_update_range(&got, hyper, number, 0, counts[i]);
            tr_update b = test_update_range(&want, hyper, number, 0, counts[i]);
            a.grad_scale = b.grad_scale = 0.3;
            test_update_tensor(optimizer, which, hyper, &a);
            test_update_tensor(optimizer, 0, hyper, &b);
            assert_intact(&got);
            assert_intact(&want);
            for (int k = 0; k < TEST_BUFFERS; k++) {
                assert_near(got.buffer[k].data, want.buffer[k].data, counts[i],
                            tolerance);
            }
            test_update_close(&got);
            test_update_close(&want);
        }
    }
}

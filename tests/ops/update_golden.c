// Reads tests/data/optimizers/<name>.txt (tools/goldens/optimizers.py writes them).
#include "ops/update.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 16 }; // parameters in a file

typedef struct golden {
    FILE *file;
    int count, updates;
    tr_hyper hyper;
} golden;

static double read_number(golden *g, const char *name) {
    char word[32];
    double value = 0;
    assert_int_equal(fscanf(g->file, "%31s %lf", word, &value), 2);
    assert_string_equal(word, name);
    return value;
}

static void golden_open(golden *g, const char *name) {
    char path[512];
    snprintf(path, sizeof path, "%s/optimizers/%s.txt", TR_TEST_DATA, name);
    g->file = fopen(path, "r");
    assert_non_null(g->file);
    assert_int_equal(fscanf(g->file, "#%*[^\n]"), 0);
    g->count = (int)read_number(g, "count");
    assert_true(g->count > 0 && g->count <= MOST);
    g->updates = (int)read_number(g, "updates");
    g->hyper = (tr_hyper){.bias_correction = true};
    g->hyper.lr = read_number(g, "lr");
    g->hyper.weight_decay = read_number(g, "weight_decay");
    g->hyper.beta1 = read_number(g, "beta1");
    g->hyper.beta2 = read_number(g, "beta2");
    g->hyper.eps = read_number(g, "eps");
    g->hyper.decoupled = read_number(g, "decoupled") != 0;
    g->hyper.momentum = read_number(g, "momentum");
    g->hyper.dampening = read_number(g, "dampening");
    g->hyper.nesterov = read_number(g, "nesterov") != 0;
}

static void read_row(golden *g, const char *name, double *row) {
    char word[32];
    assert_int_equal(fscanf(g->file, "%31s", word), 1);
    assert_string_equal(word, name);
    for (int i = 0; i < g->count; i++) {
        assert_int_equal(fscanf(g->file, "%lf", &row[i]), 1);
    }
}

// Within eight units in the last place of PyTorch's f32, which rounds after each of the
// few operations; of the largest value so far of the element (`seen`, [count]), whose
// rounding stays in sums.
static void check_row(golden *g, const char *name, const float *got, double *seen) {
    double row[MOST];
    read_row(g, name, row);
    for (int i = 0; i < g->count; i++) {
        seen[i] = fmax(seen[i], fabs(row[i]));
        if (!(fabs(got[i] - row[i]) <= 0x1p-20 * seen[i])) {
            fail_msg("%s %d is %.9g, in PyTorch %.9g", name, i, (double)got[i], row[i]);
        }
    }
}

static void start(golden *g, const tr_optimizer *optimizer, test_update *u) {
    double row[MOST];
    float *param = u->buffer[0].data;
    read_row(g, "start", row);
    for (int i = 0; i < g->count; i++) {
        param[i] = (float)row[i];
        for (int s = 0; s < optimizer->state_count; s++) {
            // SGD's buffer may hold anything before its first update.
            ((float *)u->buffer[2 + s].data)[i] = optimizer->state_count == 2 ? 0 : NAN;
        }
    }
}

static void follow(golden *g, const tr_optimizer *optimizer, tr_update_function update,
                   double grad_scale) {
    test_update u;
    double row[MOST], seen[TEST_BUFFERS][MOST] = {{0}};
    bool has_states = optimizer->state_count == 2 || g->hyper.momentum != 0;
    for (int i = 0; i < g->count; i++) {
        seen[0][i] = g->hyper.lr * g->updates; // Adam's steps are of about lr
    }
    test_update_open(&u, g->count);
    start(g, optimizer, &u);
    for (int number = 1; number <= g->updates; number++) {
        read_row(g, "grad", row);
        for (int i = 0; i < g->count; i++) {
            ((float *)u.buffer[1].data)[i] = (float)(row[i] / grad_scale);
        }
        tr_update range = test_update_range(&u, &g->hyper, number, 0, g->count);
        range.grad_scale = grad_scale;
        update(&g->hyper, &range);
        check_row(g, "param", u.buffer[0].data, seen[0]);
        for (int s = 0; has_states && s < optimizer->state_count; s++) {
            check_row(g, optimizer->state_names[s], u.buffer[2 + s].data, seen[2 + s]);
        }
    }
    test_update_close(&u);
}

void test_update_golden(const tr_optimizer *optimizer, const char *name,
                        double grad_scale) {
    for (int which = 0; test_update_function(optimizer, which); which++) {
        golden g;
        golden_open(&g, name);
        follow(&g, optimizer, test_update_function(optimizer, which), grad_scale);
        fclose(g.file);
    }
}

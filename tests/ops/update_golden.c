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

// Hyper-parameters by their names in the file; a bool is 0 or 1 in it.
static void take(golden *g, const char *name, double value) {
    tr_hyper *h = &g->hyper;
    const struct {
        const char *name;
        double *number;
        bool *flag;
    } all[] = {
        {"lr", &h->lr, NULL},
        {"weight_decay", &h->weight_decay, NULL},
        {"beta1", &h->beta1, NULL},
        {"beta2", &h->beta2, NULL},
        {"eps", &h->eps, NULL},
        {"decoupled", NULL, &h->decoupled},
        {"momentum", &h->momentum, NULL},
        {"dampening", &h->dampening, NULL},
        {"nesterov", NULL, &h->nesterov},
        {"lr_decay", &h->lr_decay, NULL},
        {"initial_accumulator_value", &h->initial_accumulator, NULL},
        {"corrected", NULL, &h->corrected},
        {"min_coeff", &h->min_coeff, NULL},
        {"max_coeff", &h->max_coeff, NULL},
        {"trust_coefficient", &h->trust_coefficient, NULL},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (strcmp(name, all[i].name) == 0 && all[i].number) {
            *all[i].number = value;
            return;
        }
        if (strcmp(name, all[i].name) == 0) {
            *all[i].flag = value != 0;
            return;
        }
    }
    fail_msg("no hyper-parameter %s", name);
}

// Up to the row of the parameters at the start, whose name it reads.
static void golden_open(golden *g, const char *name) {
    char path[512], word[32];
    double value = 0;
    snprintf(path, sizeof path, "%s/optimizers/%s.txt", TR_TEST_DATA, name);
    g->file = fopen(path, "r");
    assert_non_null(g->file);
    assert_int_equal(fscanf(g->file, "#%*[^\n]"), 0);
    assert_int_equal(fscanf(g->file, " count %d updates %d", &g->count, &g->updates),
                     2);
    assert_true(g->count > 0 && g->count <= MOST);
    g->hyper = (tr_hyper){.bias_correction = true, .max_coeff = INFINITY};
    while (fscanf(g->file, "%31s", word) == 1 && strcmp(word, "start") != 0) {
        assert_int_equal(fscanf(g->file, "%lf", &value), 1);
        take(g, word, value);
    }
    assert_string_equal(word, "start");
}

static void read_values(golden *g, double *row) {
    for (int i = 0; i < g->count; i++) {
        assert_int_equal(fscanf(g->file, "%lf", &row[i]), 1);
    }
}

static void read_row(golden *g, const char *name, double *row) {
    char word[32];
    assert_int_equal(fscanf(g->file, "%31s", word), 1);
    assert_string_equal(word, name);
    read_values(g, row);
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

// May the states hold anything before the first update?
static bool starts_itself(const tr_optimizer *optimizer) {
    return optimizer == &tr__optimizer_sgd || optimizer == &tr__optimizer_adagrad ||
           optimizer == &tr__optimizer_lars;
}

static void start(golden *g, const tr_optimizer *optimizer, test_update *u) {
    double row[MOST];
    float *param = u->buffer[0].data;
    read_values(g, row);
    for (int i = 0; i < g->count; i++) {
        param[i] = (float)row[i];
        for (int s = 0; s < optimizer->state_count; s++) {
            ((float *)u->buffer[2 + s].data)[i] = starts_itself(optimizer) ? NAN : 0;
        }
    }
}

static void follow(golden *g, const tr_optimizer *optimizer, int which,
                   double grad_scale) {
    test_update u;
    double row[MOST], seen[TEST_BUFFERS][MOST] = {{0}};
    bool has_states = optimizer != &tr__optimizer_sgd || g->hyper.momentum != 0;
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
        test_update_tensor(optimizer, which, &g->hyper, &range);
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
        follow(&g, optimizer, which, grad_scale);
        fclose(g.file);
    }
}

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
    const test_golden *what;
    int count, updates, states;
    tr_hyper hyper;
} golden;

// Where the hyper-parameter of this name is; NULL: the optimizer has none.
static void *field_of(golden *g, const char *name, bool *is_bool) {
    tr_hyper *h = &g->hyper;
    const struct {
        const char *name;
        double *number;
    } shared[] = {{"lr", &h->lr},
                  {"weight_decay", &h->weight_decay},
                  {"beta1", &h->beta1},
                  {"beta2", &h->beta2}};
    *is_bool = false;
    for (size_t i = 0; i < sizeof shared / sizeof *shared; i++) {
        if (strcmp(name, shared[i].name) == 0) {
            return shared[i].number;
        }
    }
    for (const test_field *f = g->what->fields; f && f->name; f++) {
        if (strcmp(name, f->name) == 0) {
            *is_bool = f->is_bool;
            return h->own + f->offset;
        }
    }
    return NULL;
}

// A bool is 0 or 1 in the file, and what the optimizer lacks is 0.
static void take(golden *g, const char *name, double value) {
    bool is_bool, flag = value != 0;
    void *field = field_of(g, name, &is_bool);
    if (!field && value != 0) {
        fail_msg("the optimizer has no hyper-parameter %s", name);
    }
    if (field && is_bool) {
        memcpy(field, &flag, sizeof flag);
    } else if (field) {
        memcpy(field, &value, sizeof value);
    }
}

// Up to the row of the parameters at the start, whose name it reads.
static void golden_open(golden *g, const test_golden *what, const char *name) {
    char path[512], word[32];
    double value = 0;
    snprintf(path, sizeof path, "%s/optimizers/%s.txt", TR_TEST_DATA, name);
    g->file = fopen(path, "r");
    assert_non_null(g->file);
    assert_int_equal(fscanf(g->file, "#%*[^\n]"), 0);
    assert_int_equal(fscanf(g->file, " count %d updates %d", &g->count, &g->updates),
                     2);
    assert_true(g->count > 0 && g->count <= MOST);
    g->what = what;
    g->hyper = what->hyper;
    while (fscanf(g->file, "%31s", word) == 1 && strcmp(word, "start") != 0) {
        assert_int_equal(fscanf(g->file, "%lf", &value), 1);
        take(g, word, value);
    }
    assert_string_equal(word, "start");
    g->states = what->of->states ? what->of->states(&g->hyper)
                                 : what->of->optimizer->state_count;
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

static void start(golden *g, test_update *u) {
    double row[MOST];
    float *param = u->buffer[0].data;
    read_values(g, row);
    for (int i = 0; i < g->count; i++) {
        param[i] = (float)row[i];
        for (int s = 0; s < g->what->of->optimizer->state_count; s++) {
            ((float *)u->buffer[2 + s].data)[i] = g->what->starts_itself ? NAN : 0;
        }
    }
}

static void follow(golden *g, int which, double grad_scale) {
    const tr_optimizer *optimizer = g->what->of->optimizer;
    test_update u;
    double row[MOST], seen[TEST_BUFFERS][MOST] = {{0}};
    for (int i = 0; i < g->count; i++) {
        seen[0][i] = g->hyper.lr * g->updates; // Adam's steps are of about lr
    }
    test_update_open(&u, g->count);
    start(g, &u);
    for (int number = 1; number <= g->updates; number++) {
        read_row(g, "grad", row);
        for (int i = 0; i < g->count; i++) {
            ((float *)u.buffer[1].data)[i] = (float)(row[i] / grad_scale);
        }
        tr_update range = test_update_range(&u, &g->hyper, number, 0, g->count);
        range.grad_scale = grad_scale;
        test_update_tensor(optimizer, which, &g->hyper, &range);
        check_row(g, "param", u.buffer[0].data, seen[0]);
        for (int s = 0; s < g->states; s++) {
            check_row(g, optimizer->states[s].name, u.buffer[2 + s].data, seen[2 + s]);
        }
    }
    test_update_close(&u);
}

void test_update_golden(const test_golden *what, const char *name, double grad_scale) {
    for (int which = 0; test_update_function(what->of->optimizer, which); which++) {
        golden g;
        golden_open(&g, what, name);
        follow(&g, which, grad_scale);
        fclose(g.file);
    }
}

// Rows are shared between threads, and what each has come to is added in their order.
#include "backend/cpu/isa.h"
#include "backend/cpu/parallel.h"
#include "backend/cpu/real.h"
#include "backend/cpu/simd_map.h"
#include "ops/operand.h"

#include "ops/nn/cross_entropy/row.h"

#include <math.h>

extern const tr_kernel TR_ISA_NAME(tr__cross_entropy_kernel);
extern const tr_kernel TR_ISA_NAME(tr__cross_entropy_backward_kernel);
extern const tr_kernel TR_ISA_NAME(tr__cross_entropy_each_kernel);
extern const tr_kernel TR_ISA_NAME(tr__cross_entropy_each_backward_kernel);
extern const tr_kernel TR_ISA_NAME(tr__cross_entropy_logits_kernel);

enum { ELEMENT_WEIGHT = 8 }; // against a moved one

typedef struct row_sums {
    double loss, count, correct;
} row_sums;

typedef struct pass {
    const tr_op_desc *desc;
    const tr_real *x, *weight; // [rows, classes]; [classes] or NULL
    const int32_t *targets;    // [rows]
    tr_real *dx;               // [rows, classes] or NULL
    row_sums *found;           // [rows]
    const float *seeds;        // [rows]: each row's, or NULL: `seed` is all rows'
    int64_t rows, classes;
    float seed;
    bool add; // to dx
} pass;

static pass begin(const tr_op_desc *desc, const tr_launch *launch) {
    return (pass){.desc = desc,
                  .x = launch->in[0],
                  .targets = launch->in[1],
                  .weight = tr__is_weighted(desc) ? launch->in[2] : NULL,
                  .found = launch->workspace,
                  .rows = tr__shape_rows(desc->in[0].shape),
                  .classes = tr__shape_width(desc->in[0].shape),
                  .seed = (float)launch->run->loss_seed,
                  .add = launch->accumulate & 1};
}

// What follows the last element is -infinity, and e^ of it nothing.
static tr_vf load(const tr_real *x, int left) {
    return left == TR_VW ? tr_v_load_r(x) : tr_v_load_part_r(x, left, -INFINITY);
}

// Is the target's logit the first of the largest?
static bool is_best(const tr_real *x, int64_t target, float top) {
    int before = 0;
    for (int64_t c = 0; c < target; c++) {
        before |= tr_r_get(x[c]) == top;
    }
    return tr_r_get(x[target]) == top && !before;
}

static tr_vf weights(const pass *p, int64_t c, int left) {
    return p->weight ? tr_v_load_some_r(p->weight + c, left) : tr_v_set(1);
}

// The sums over classes of their weights, and of these times the logits.
static void smooth(const pass *p, const tr_real *x, double *all, double *product) {
    *all = *product = 0;
    for (int64_t c = 0; c < p->classes; c++) {
        double w = p->weight ? (double)tr_r_get(p->weight[c]) : 1;
        *all += w;
        *product += w * (double)tr_r_get(x[c]);
    }
}

static void put_row(const pass *p, int64_t r, const tr_wanted *wanted, float top,
                    double factor) {
    float seed = p->seeds ? p->seeds[r] : p->seed;
    const tr_real *x = p->x + r * p->classes;
    tr_real *dx = p->dx + r * p->classes;
    int64_t target = p->targets[r];
    tr_vf shift = tr_v_set(top), scale = tr_v_set((float)factor * seed);
    tr_vf all = tr_v_set((float)wanted->all * seed);
    float before = p->add ? tr_r_get(dx[target]) : 0;
    for (int64_t c = 0; c < p->classes; c += TR_VW) {
        int left = tr_v_left(p->classes, c);
        tr_vf slope = tr_v_exp(load(x + c, left) - shift) * scale;
        if (wanted->all > 0) {
            slope -= all * weights(p, c, left);
        }
        tr_v_put_some_r(dx + c, slope, left, p->add);
    }
    double w = p->weight ? (double)tr_r_get(p->weight[target]) : 1;
    double slope = exp((double)tr_r_get(x[target]) - (double)top) * factor -
                   wanted->all * w - wanted->hit;
    dx[target] = tr_r_of((float)(before + slope * (double)seed));
}

static void nothing(const pass *p, int64_t r) {
    tr_real *dx = p->dx + r * p->classes;
    for (int64_t c = 0; c < p->classes && !p->add; c++) {
        dx[c] = tr_r_of(0);
    }
}

static row_sums work_row(const pass *p, int64_t r) {
    const tr_real *x = p->x + r * p->classes;
    int64_t target = p->targets[r];
    if (target == TR_NO_TARGET) {
        if (p->dx) {
            nothing(p, r);
        }
        return (row_sums){0, 0, 0};
    }
    tr_vf tops = tr_v_set(-INFINITY), sums = tr_v_set(0);
    for (int64_t c = 0; c < p->classes; c += TR_VW) {
        tops = tr_v_max(load(x + c, tr_v_left(p->classes, c)), tops);
    }
    float top = tr_v_top(tops);
    for (int64_t c = 0; c < p->classes; c += TR_VW) {
        sums += tr_v_exp(load(x + c, tr_v_left(p->classes, c)) - tr_v_set(top));
    }
    double sum = tr_v_sum(sums), normal = (double)top + log(sum);
    double w = p->weight ? (double)tr_r_get(p->weight[target]) : 1;
    tr_wanted wanted = tr__wanted(p->desc, w);
    double total = wanted.hit,
           loss = wanted.hit * (normal - (double)tr_r_get(x[target]));
    if (wanted.all > 0) {
        double all, product;
        smooth(p, x, &all, &product);
        total += wanted.all * all;
        loss += wanted.all * (all * normal - product);
    }
    if (p->dx) {
        put_row(p, r, &wanted, top, total / sum);
    }
    return (row_sums){loss, wanted.count, p->found && is_best(x, target, top)};
}

static int threads_of(const pass *p) {
    return tr__threads_for(p->rows * p->classes, ELEMENT_WEIGHT,
                           p->desc->target.workers);
}

static void work(const pass *p, double *sums) {
    int threads = threads_of(p);
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t r = 0; r < p->rows; r++) {
        p->found[r] = work_row(p, r);
    }
    for (int64_t r = 0; r < p->rows; r++) {
        sums[TR_SUM_LOSS] += p->found[r].loss;
        sums[TR_SUM_COUNT] += p->found[r].count;
        sums[TR_SUM_CORRECT] += p->found[r].correct;
    }
}

static void forward(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    pass p = begin(desc, launch);
    work(&p, launch->out[0]);
}

static void backward(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    pass p = begin(desc, launch);
    p.dx = launch->out[0]; // NULL: the sums alone are wanted
    work(&p, launch->out[1]);
}

static void each(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    pass p = begin(desc, launch);
    float *out = launch->out[0]; // [rows]
    int threads = threads_of(&p);
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t r = 0; r < p.rows; r++) {
        out[r] = (float)work_row(&p, r).loss;
    }
}

static void each_backward(const tr_op_desc *desc, void *state,
                          const tr_launch *launch) {
    (void)state;
    pass p = begin(desc, launch);
    p.seeds = launch->in[3]; // d_each
    p.dx = launch->out[0];
    int threads = threads_of(&p);
#pragma omp parallel for num_threads(threads) if (threads > 1)
    for (int64_t r = 0; r < p.rows; r++) {
        work_row(&p, r);
    }
}

static void logits(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    const tr_real *x = launch->in[0]; // [count]
    float *y = launch->out[0];        // [count]
    int64_t count = tr_shape_count(desc->in[0].shape);
    for (int64_t i = 0; i < count; i++) {
        y[i] = tr_r_get(x[i]);
    }
}

static size_t workspace(const tr_op_desc *desc, const void *state) {
    (void)state;
    return (size_t)tr__shape_rows(desc->in[0].shape) * sizeof(row_sums);
}

static bool supports(const tr_op_desc *desc) {
    return tr__cross_entropy_supports(desc, TR_REAL);
}

static void cost(const tr_op_desc *desc, tr_cost *out) {
    tr__desc_cost(desc, 20, out);
}

const tr_kernel TR_ISA_NAME(tr__cross_entropy_kernel) = {
    .name = "cross_entropy.cpu." TR_ISA_TEXT,
    .supports = supports,
    .cost = cost,
    .workspace = workspace,
    .launch = forward,
};

const tr_kernel TR_ISA_NAME(tr__cross_entropy_backward_kernel) = {
    .name = "cross_entropy_backward.cpu." TR_ISA_TEXT,
    .supports = supports,
    .cost = cost,
    .workspace = workspace,
    .launch = backward,
};

const tr_kernel TR_ISA_NAME(tr__cross_entropy_each_kernel) = {
    .name = "cross_entropy_each.cpu." TR_ISA_TEXT,
    .supports = supports,
    .cost = cost,
    .launch = each,
};

const tr_kernel TR_ISA_NAME(tr__cross_entropy_each_backward_kernel) = {
    .name = "cross_entropy_each_backward.cpu." TR_ISA_TEXT,
    .supports = supports,
    .cost = cost,
    .launch = each_backward,
};

const tr_kernel TR_ISA_NAME(tr__cross_entropy_logits_kernel) = {
    .name = "cross_entropy_logits.cpu." TR_ISA_TEXT,
    .supports = supports,
    .cost = cost,
    .launch = logits,
};

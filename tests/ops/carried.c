#include "ops/carried.h"

#include "backend/backend.h"
#include "backend/cpu/isa.h"
#include "ops/asked.h"
#include "ops/node.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

// Of each operand; of each op.
enum { MOST_BYTES = 4096, CASES_MOST = 16 };

// One spot of one case.
typedef struct trial {
    const tr_case *the_case;
    tr_backend_id backend;
    bool trains;
    test_spot spot;
    test_way way;
    const test_node *forward, *backward; // what the reference makes of it
    int failed;
} trial;

static bool is_real(tr_tensor_desc desc) {
    return desc.dtype == TR_F32 || desc.dtype == TR_F64 || desc.dtype == TR_BF16 ||
           desc.dtype == TR_F16;
}

static void report(trial *t, const char *result, int i, int64_t at, double is,
                   double ought) {
    tr_target target = {.backend = t->way.backend, .level = t->way.isa, .workers = 1};
    print_error("%s (%s%s), %s: with %g at %lld of %s %d, %s %d has %g at %lld, "
                "not %g\n",
                t->the_case->op->name, t->the_case->name,
                t->trains ? "" : ", not training",
                t->way.isa < 0 ? "reference" : tr__target_name(&target), t->spot.value,
                (long long)t->spot.element,
                t->spot.of_gradient ? "the gradient of output" : "input",
                t->spot.operand, result, i, is, (long long)at, ought);
    t->failed++;
}

// A NaN stays one. Of an infinity some ways of reckoning make a NaN and others an
// infinity; either shows that something is wrong.
static bool carries(const trial *t, double is, double ought) {
    return isnan(t->spot.value) && isnan(ought) ? isnan(is)
           : !isfinite(ought)                   ? !isfinite(is)
                                                : true;
}

// The first element that does not is enough to be told of.
static void compare(trial *t, const char *result, int i, const test_tensor *got,
                    const test_tensor *want) {
    bool known = got->desc.dtype == want->desc.dtype && is_real(want->desc);
    int64_t count = known ? tr_shape_count(want->desc.shape) : 0;
    for (int64_t k = 0; k < count; k++) {
        double is = test_tensor_at(got, k), ought = test_tensor_at(want, k);
        if (!carries(t, is, ought)) {
            report(t, result, i, k, is, ought);
            return;
        }
    }
}

static void run_forward(trial *t) {
    test_node got;
    test_node_open_like(&got, t->forward);
    test_node_forward(&got, &t->way);
    for (int i = 0; i < got.out_count; i++) {
        compare(t, "output", i, &got.out[i], &t->forward->out[i]);
    }
    test_node_close(&got);
}

static void run_backward(trial *t) {
    test_node got;
    test_node_open_like(&got, t->forward);
    test_node_backward(&got, &t->way, NULL);
    for (int i = 0; i < t->the_case->in_count; i++) {
        compare(t, "gradient", i, &got.grad_in[i], &t->backward->grad_in[i]);
    }
    for (int i = 0; i < got.out_count; i++) {
        compare(t, "gradient of output", i, &got.grad_out[i],
                &t->backward->grad_out[i]);
    }
    if (t->the_case->op->flags & TR_OP_LOSS) {
        compare(t, "sums", 0, &got.out[0], &t->backward->out[0]);
    }
    test_node_close(&got);
}

static void run_way(trial *t, test_way way) {
    t->way = way;
    if (!t->spot.of_gradient) {
        run_forward(t);
    }
    if (t->trains && t->the_case->op->backward) {
        run_backward(t);
    }
}

static void run_ways(trial *t) {
    if (t->backend != TR_BACKEND_CPU) {
        int level = tr__backend(t->backend)->here(0).level;
        run_way(t, (test_way){.backend = t->backend, .isa = level, .threads = 1});
        return;
    }
    for (int isa = 0; isa <= (int)tr__cpu_isa(); isa++) {
        run_way(t, (test_way){.isa = isa, .threads = 1, .both = isa % 2});
    }
}

static int try_spot(trial *t, test_spot spot) {
    const test_way reference = {.isa = -1, .threads = 1};
    test_node forward, backward;
    t->spot = spot;
    t->failed = 0;
    test_node_open(&forward, t->the_case);
    test_node_put_spot(&forward, spot);
    test_node_forward(&forward, &reference);
    test_node_open_like(&backward, &forward);
    test_node_backward(&backward, &reference, NULL);
    t->forward = &forward;
    t->backward = &backward;
    run_ways(t);
    test_node_close(&backward);
    test_node_close(&forward);
    return t->failed;
}

// The element is neither the first nor, in more than two, the last.
static int try_values(trial *t, test_spot spot, tr_tensor_desc desc) {
    static const double values[] = {NAN, INFINITY, -INFINITY};
    int failed = 0;
    spot.there = true;
    spot.element = tr_shape_count(desc.shape) / 2;
    for (int v = 0; v < 3; v++) {
        spot.value = values[v];
        failed += try_spot(t, spot);
    }
    return failed;
}

static int try_case(const tr_case *the_case, tr_backend_id on, bool trains) {
    trial t = {.the_case = the_case, .backend = on, .trains = trains};
    test_node node;
    int failed = 0;
    test_node_open(&node, the_case);
    uint32_t read = trains ? test_node_grads_read(&node) : 0;
    for (int i = 0; i < the_case->in_count; i++) {
        if (is_real(node.in[i].desc)) {
            failed += try_values(&t, (test_spot){.operand = i}, node.in[i].desc);
        }
    }
    for (int i = 0; i < node.out_count; i++) {
        if (read >> i & 1 && is_real(node.out[i].desc)) {
            test_spot spot = {.of_gradient = true, .operand = i};
            failed += try_values(&t, spot, node.out[i].desc);
        }
    }
    test_node_close(&node);
    return failed;
}

static int try_asked(const tr_case *the_case, tr_backend_id on) {
    tr_case asked;
    return test_asked(the_case, TR_REWRITE_LOGITS, &asked) ? try_case(&asked, on, false)
                                                           : 0;
}

static int try_half(const tr_case *the_case, tr_backend_id on, tr_dtype half) {
    tr_case same = *the_case;
    for (int i = 0; i < same.in_count; i++) {
        bool changes = same.in[i].desc.dtype == TR_F32 && !(same.always_f32 >> i & 1);
        same.in[i].desc.dtype = changes ? half : same.in[i].desc.dtype;
    }
    same.name = tr_dtype_name(half);
    return the_case->half_tolerance > 0 ? try_case(&same, on, true) : 0;
}

static bool is_small(const tr_case *the_case) {
    for (int i = 0; i < the_case->in_count; i++) {
        if (tr_tensor_bytes(the_case->in[i].desc) > MOST_BYTES) {
            return false;
        }
    }
    return true;
}

int test_conform_carried(const tr_case_list *list, tr_backend_id on) {
    tr_case the_case;
    int failed = 0, tried = 0;
    for (int i = 0; tried < CASES_MOST && list->get(i, &the_case); i++) {
        if (is_small(&the_case)) {
            tried++;
            failed += try_case(&the_case, on, true);
            failed += try_asked(&the_case, on);
            failed += try_half(&the_case, on, TR_BF16);
            failed += try_half(&the_case, on, TR_F16);
        }
    }
    assert_true(tried > 0);
    return failed;
}

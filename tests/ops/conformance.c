#include "ops/conformance.h"

#include "backend/backend.h"
#include "backend/cpu/isa.h"
#include "draws.h"
#include "ops/asked.h"
#include "ops/finite.h"
#include "ops/node.h"

#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { THREADS_MAX = 3 };

static tr_backend_id backend; // whose kernels are held to the reference

// What the checks of one case share.
typedef struct checks {
    const tr_case_list *list;
    int index; // of the case
    tr_case the_case;
    bool trains; // else the forward alone
    test_way way;
    const char *what; // is being done: "forward"
    int failed;
    test_node want;                 // outputs by the reference
    test_node fresh, added;         // with gradients from nothing, from a base
    double grad_size[TR_OP_IN_MAX]; // largest element of each gradient
    double step; // from one number of the format at work to the next, above 1
} checks;

static void __attribute__((format(printf, 2, 3)))
report(checks *c, const char *format, ...) {
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    print_error("%s, case %d (%s%s), %s, %d threads: %s: %s\n", c->list->op_name,
                c->index, c->the_case.name, c->trains ? "" : ", not training",
                c->way.isa < 0 ? "reference"
                               : tr__target_name(&(tr_target){.backend = c->way.backend,
                                                              .level = c->way.isa}),
                c->way.threads, c->what, text);
    c->failed++;
}

static void check_unbroken(checks *c, const test_node *node) {
    if (node->broken) {
        report(c, "%s", node->broken);
    }
}

static void check_near(checks *c, const char *name, int i, const test_tensor *got,
                       const test_tensor *want, double tolerance) {
    double distance = test_tensor_distance(got, want);
    double size = test_tensor_largest(want);
    if (!(distance <= tolerance * (size > 0 ? size : 1))) {
        report(c, "%s %d is off by %.3g of %.3g, allowed %.3g of it", name, i, distance,
               size, tolerance);
    }
}

static void check_same(checks *c, const char *name, int i, const test_tensor *got,
                       const test_tensor *want) {
    if (!test_tensor_same_bits(got, want)) {
        report(c, "%s %d differs in its bits, by %.3g of %.3g", name, i,
               test_tensor_distance(got, want), test_tensor_largest(want));
    }
}

// The loss may be off by the tolerance; the counts must be exact.
static void check_sums(checks *c, const test_tensor *got, const test_tensor *want) {
    for (int i = 0; i < TR_SUMS; i++) {
        double is = test_tensor_at(got, i), ought = test_tensor_at(want, i);
        double allowed = i == TR_SUM_LOSS ? c->the_case.tolerance * fabs(ought) : 0;
        if (!(fabs(is - ought) <= allowed)) {
            report(c, "sum %d is %.9g, not %.9g", i, is, ought);
        }
    }
}

static bool is_loss(const checks *c) {
    return c->the_case.op->flags & TR_OP_LOSS;
}

// ---- forward

static void check_outputs(checks *c, const test_node *got, uint32_t which) {
    for (int i = 0; i < got->out_count; i++) {
        if (!(which & 1u << i)) {
            continue;
        }
        if (is_loss(c) && i == 0) {
            check_sums(c, &got->out[i], &c->want.out[i]);
        } else {
            check_near(c, "output", i, &got->out[i], &c->want.out[i],
                       c->the_case.tolerance);
        }
    }
}

// Leaves each output but the first out in turn: the others must not change.
static void check_unwanted_outputs(checks *c, test_node *got) {
    c->what = "forward with an output left out";
    for (int left = 1; left < got->out_count; left++) {
        test_way way = c->way;
        way.unwanted_out = 1u << left;
        test_node_forward(got, &way);
        check_outputs(c, got, ~way.unwanted_out);
    }
}

// On top of the input that the op says, output 0 must have the same bits.
static void check_in_place(checks *c, const test_node *apart) {
    int under = c->the_case.op->in_place - 1;
    test_node got;
    test_way way = c->way;
    if (under < 0 || c->want.in[under].desc.dtype == TR_NONE) {
        return;
    }
    way.in_place = true;
    c->what = "forward in place";
    test_node_open_like(&got, &c->want);
    test_node_forward(&got, &way);
    check_same(c, "output", 0, &got.out[0], &apart->out[0]);
    check_unbroken(c, &got);
    test_node_close(&got);
}

static void check_recompute(checks *c, test_node *got) {
    test_node again;
    c->what = "recompute";
    test_node_forward(got, &c->way);
    test_node_open_like(&again, got);
    uint32_t cheap = test_node_recompute(&again, &c->way);
    for (int i = 0; i < again.out_count; i++) {
        if (cheap & 1u << i) {
            check_same(c, "output", i, &again.out[i], &got->out[i]);
        }
    }
    check_unbroken(c, &again);
    test_node_close(&again);
}

static void check_forward(checks *c) {
    test_node got, again;
    c->what = "forward";
    test_node_open_like(&got, &c->want);
    test_node_open_like(&again, &c->want);
    test_node_forward(&got, &c->way);
    check_outputs(c, &got, UINT32_MAX);
    test_node_forward(&again, &c->way);
    c->what = "forward, again";
    for (int i = 0; i < got.out_count; i++) {
        check_same(c, "output", i, &again.out[i], &got.out[i]);
    }
    check_in_place(c, &got);
    check_unwanted_outputs(c, &got);
    check_recompute(c, &got);
    check_unbroken(c, &got);
    test_node_close(&again);
    test_node_close(&got);
}

// ---- backward

// Runs the backward on the reference's forward values.
static void run_backward(checks *c, test_node *node, const test_way *way) {
    test_node_open_like(node, &c->want);
    test_node_backward(node, way, c->grad_size);
}

static void check_gradients(checks *c, const test_node *got, const test_node *want,
                            double tolerance) {
    for (int i = 0; i < c->the_case.in_count; i++) {
        if (got->grad_in[i].desc.dtype != TR_NONE) {
            check_near(c, "gradient", i, &got->grad_in[i], &want->grad_in[i],
                       tolerance);
        }
    }
    for (int i = 0; i < got->out_count; i++) {
        if (got->grad_out[i].desc.dtype != TR_NONE) {
            check_near(c, "gradient of output", i, &got->grad_out[i],
                       &want->grad_out[i], tolerance);
        }
    }
    if (is_loss(c)) {
        check_sums(c, &got->out[0], &want->out[0]);
    }
}

static void check_fresh(checks *c, bool both) {
    test_node got, again;
    test_way way = c->way;
    way.both = both;
    c->what = both ? "backward, prepared for both" : "backward";
    run_backward(c, &got, &way);
    check_gradients(c, &got, &c->fresh, c->the_case.tolerance);
    check_unbroken(c, &got);
    run_backward(c, &again, &way);
    for (int i = 0; i < c->the_case.in_count; i++) {
        check_same(c, "again: gradient", i, &again.grad_in[i], &got.grad_in[i]);
    }
    test_node_close(&again);
    test_node_close(&got);
}

static void check_added(checks *c, bool both) {
    test_node got;
    test_way way = c->way;
    way.both = both;
    way.accumulate = way.given = true;
    c->what =
        both ? "accumulating backward, prepared for both" : "accumulating backward";
    run_backward(c, &got, &way);
    // One more rounding of the sum, in the one or in the other.
    check_gradients(c, &got, &c->added, c->the_case.tolerance + c->step);
    check_unbroken(c, &got);
    test_node_close(&got);
}

// Leaves the gradient of each input out in turn: the others must not change.
static void check_unwanted_gradients(checks *c) {
    uint32_t written = test_node_grads_written(&c->want);
    c->what = "backward with a gradient left out";
    for (int i = 0; i < c->the_case.in_count; i++) {
        if (written & 1u << i) {
            test_node got;
            test_way way = c->way;
            way.unwanted_in = 1u << i;
            run_backward(c, &got, &way);
            check_gradients(c, &got, &c->fresh, c->the_case.tolerance);
            check_unbroken(c, &got);
            test_node_close(&got);
        }
    }
}

static void check_backward(checks *c) {
    check_fresh(c, false);
    check_added(c, false);
    if (c->way.isa >= 0) { // a reference is prepared for nothing, and slow
        check_fresh(c, true);
        check_added(c, true);
    }
    if (c->step == 0x1p-23) {
        check_unwanted_gradients(c);
    }
}

// Of the largest input.
static int64_t bytes_of(const tr_case *the_case) {
    int64_t most = 0;
    for (int i = 0; i < the_case->in_count; i++) {
        int64_t bytes = tr_tensor_bytes(the_case->in[i].desc);
        most = bytes > most ? bytes : most;
    }
    return most;
}

// 16-bit formats are loaded and stored by the same kernels: each is tried with one
// number of threads, large ones for one instruction set, and their reference, which is
// the f32 one, not against itself.
static bool is_large(const tr_case *the_case) {
    return bytes_of(the_case) > 8192;
}

static void check_way(checks *c, test_way way) {
    c->way = way;
    check_forward(c);
    if (c->trains && c->the_case.op->backward) {
        check_backward(c);
    }
}

static void check_kernels(checks *c) {
    bool half = c->step > 0x1p-23;
    if (backend != TR_BACKEND_CPU) {
        int level = tr__backend(backend)->here(0).level;
        check_way(c, (test_way){.backend = backend, .isa = level, .threads = 1});
        return;
    }
    // A reference that left out what it is not asked for wrongly does so in small
    // cases.
    bool large = is_large(&c->the_case);
    int first = half && large ? (int)tr__cpu_isa() : half || large ? 0 : -1;
    // The kernels of all sets are one source; the lowest and the widest differ most.
    if (TEST_SANITIZED && first < 0) {
        first = 0;
    }
    if (getenv("TR_HELD")) { // lower sets have been tried where none was held
        first = (int)tr__cpu_isa();
    }
    for (int isa = first; isa <= (int)tr__cpu_isa(); isa++) {
        int most = isa < 0 ? 1 : THREADS_MAX;
        if (TEST_SANITIZED && isa > first && isa < (int)tr__cpu_isa()) {
            continue;
        }
        // Of how a sanitizer sees memory, one number of threads tells all.
        for (int threads = half || TEST_SANITIZED ? most : 1; threads <= most;
             threads++) {
            check_way(c, (test_way){.isa = isa, .threads = threads});
        }
    }
}

// ---- the reference itself

static void check_input_slope(checks *c, test_node *node, int i) {
    double largest = test_tensor_largest(&node->grad_in[i]);
    double wrong = test_finite_distance(node, i);
    if (!(wrong <= c->the_case.gradient_tolerance * (largest > 0 ? largest : 1))) {
        report(c, "gradient %d is off by %.3g of %.3g, allowed %.3g of it", i, wrong,
               largest, c->the_case.gradient_tolerance);
    }
}

// Elements of a tensor that finite differences are tried on. They are by far the
// slowest, and of values alone.
enum { SLOPES_MOST = TEST_DRAWS(INT_MAX, 24) };

static void check_slopes(checks *c) {
    test_node node;
    test_way way = c->way;
    uint32_t written = test_node_grads_written(&c->want);
    way.given = true;
    c->what = "against finite differences";
    run_backward(c, &node, &way);
    for (int i = 0; i < c->the_case.in_count; i++) {
        bool differentiable =
            !(c->the_case.op->no_gradient & 1u << i) &&
            (node.in[i].desc.dtype == TR_F32 || node.in[i].desc.dtype == TR_F64);
        if (differentiable && !(written & 1u << i)) {
            report(c, "no rule gives the gradient of input %d", i);
        } else if (differentiable &&
                   tr_shape_count(node.in[i].desc.shape) <= SLOPES_MOST) {
            check_input_slope(c, &node, i);
        }
    }
    test_node_close(&node);
}

static void check_finite_values(checks *c) {
    c->what = "reference";
    for (int i = 0; i < c->want.out_count; i++) {
        if (!isfinite(test_tensor_largest(&c->want.out[i]))) {
            report(c, "output %d is not finite", i);
        }
    }
    for (int i = 0; i < c->the_case.in_count; i++) {
        c->grad_size[i] = test_tensor_largest(&c->fresh.grad_in[i]);
        if (!isfinite(c->grad_size[i])) {
            report(c, "gradient %d is not finite", i);
        }
        c->grad_size[i] = c->grad_size[i] > 0 ? c->grad_size[i] : 1;
    }
}

static int conform_case(const tr_case_list *list, int index, const tr_case *the_case,
                        bool trains, double step) {
    checks c = {.list = list,
                .index = index,
                .the_case = *the_case,
                .trains = trains,
                .step = step};
    if (backend != TR_BACKEND_CPU) {
        c.the_case.tolerance = fmax(the_case->tolerance, the_case->device_tolerance);
    }
    c.way = (test_way){.isa = -1, .threads = 1};
    test_way adding = c.way;
    adding.accumulate = adding.given = true;
    test_node_open(&c.want, &c.the_case);
    test_node_forward(&c.want, &c.way);
    run_backward(&c, &c.fresh, &c.way);
    check_finite_values(&c);
    run_backward(&c, &c.added, &adding);
    if (trains && c.the_case.gradient_tolerance > 0 && backend == TR_BACKEND_CPU) {
        check_slopes(&c);
    }
    check_kernels(&c);
    test_node_close(&c.added);
    test_node_close(&c.fresh);
    test_node_close(&c.want);
    return c.failed;
}

// What the op does when the model is asked rather than trained.
static int conform_asked(const tr_case_list *list, int index, const tr_case *the_case) {
    tr_case asked;
    int failed = 0;
    if (test_asked(the_case, TR_REWRITE_LOGITS, &asked)) {
        failed += conform_case(list, index, &asked, false, 0x1p-23);
    }
    if (asked.op != the_case->op) { // a loss
        test_asked(the_case, TR_REWRITE_ALL_LOGITS, &asked);
        failed += conform_case(list, index, &asked, false, 0x1p-23);
    }
    return failed;
}

// Both formats are one source, too. Of the CPU's kernels, a build with sanitizers takes
// those of f16 from the release build; large cases go through the same tiles as of f32.
static bool is_tried(const tr_case *the_case, int index, tr_dtype half) {
    if (!TEST_SANITIZED) {
        return true;
    }
    if (backend == TR_BACKEND_CPU) {
        return half == TR_BF16 && (index % 2 == 0 || !is_large(the_case));
    }
    return index % 2 == (half == TR_F16);
}

static int conform_half(const tr_case_list *list, int index, const tr_case *the_case,
                        tr_dtype half) {
    tr_case same = *the_case;
    double step = half == TR_BF16 ? 0x1p-7 : 0x1p-10;
    if (the_case->half_tolerance == 0 || !is_tried(the_case, index, half)) {
        return 0;
    }
    for (int i = 0; i < same.in_count; i++) {
        bool changes = same.in[i].desc.dtype == TR_F32 && !(same.always_f32 >> i & 1);
        same.in[i].desc.dtype = changes ? half : same.in[i].desc.dtype;
    }
    same.name = tr_dtype_name(half);
    same.tolerance = the_case->half_tolerance * step;
    same.gradient_tolerance = 0;
    return conform_case(list, index, &same, true, step);
}

// A case in all types: in f32, as it is asked, and in 16 bits but for `without`.
static int conform_types(const tr_case_list *list, int index, const tr_case *the_case,
                         tr_dtype without) {
    int failed = conform_case(list, index, the_case, true, 0x1p-23);
    failed += conform_asked(list, index, the_case);
    if (without != TR_BF16) {
        failed += conform_half(list, index, the_case, TR_BF16);
    }
    if (without != TR_F16) {
        failed += conform_half(list, index, the_case, TR_F16);
    }
    return failed;
}

int test_conform_on(const tr_case_list *list, tr_backend_id on, int64_t most_bytes,
                    tr_dtype without, int *large) {
    tr_case the_case;
    int failed = 0;
    backend = on;
    *large = 0;
    for (int i = 0; list->get(i, &the_case); i++) {
        if (bytes_of(&the_case) > most_bytes) {
            *large += 1;
            continue;
        }
        failed += conform_types(list, i, &the_case, without);
    }
    return failed;
}

int test_conform(const tr_case_list *list) {
    tr_case the_case;
    int failed = 0, index = 0;
    backend = TR_BACKEND_CPU;
    for (; list->get(index, &the_case); index++) {
        failed += conform_types(list, index, &the_case, TR_NONE);
    }
    assert_true(index > 0);
    return failed;
}

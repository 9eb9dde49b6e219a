// The conformance runner finds what it is there to find: an op y = 2 x whose kernel for
// this processor has one fault at a time.
#include "ops/conformance.h"
#include "ops/operand.h"

#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

typedef enum fault {
    NO_FAULT,
    OFF_IN_VALUE,
    LAST_UNWRITTEN,
    INPUT_WRITTEN,
    NEVER_ADDS,
    ALWAYS_ADDS,
    OTHER_BITS_EACH_TIME,
    OTHER_BITS_RECOMPUTED,
    WRONG_WITH_THREE_THREADS,
    WRONG_WHEN_PREPARED_FOR_BOTH,
    NOT_A_NUMBER,
    WRONG_DERIVATIVE, // of the reference too
    NO_DERIVATIVE,
    SHAPES_UNCHECKED,
    WRONG_WHEN_ASKED, // outside of training
    FAULTS,           // those below break the rules of memory, which ASan ends at once
    WRITES_BEHIND = FAULTS,
    WRITES_BEFORE,
    WRITES_BEHIND_WORKSPACE,
    ALL_FAULTS
} fault;

enum { ELEMENTS = 19 };

static int launches; // a kernel of the test that is not a function of its arguments

static fault fault_of(const void *attr) {
    fault value;
    memcpy(&value, attr, sizeof value);
    return value;
}

static double factor(const tr_op_desc *desc, fault f) {
    switch (f) {
    case OFF_IN_VALUE:
        return 2.001;
    case WRONG_WITH_THREE_THREADS:
        return desc->target.workers == 3 ? 2.001 : 2;
    case WRONG_WHEN_PREPARED_FOR_BOTH:
        return desc->fresh & desc->accumulate ? 2.001 : 2;
    case OTHER_BITS_EACH_TIME:
        return 2 + 0x1p-22 * (launches++ % 2);
    case NOT_A_NUMBER:
        return NAN;
    default:
        return 2;
    }
}

static void scale(const tr_op_desc *desc, const tr_launch *launch, double by, bool add,
                  int64_t count) {
    const float *x = launch->in[0];
    float *y = launch->out[0];
    (void)desc;
    for (int64_t i = 0; i < count; i++) {
        y[i] = (float)(by * x[i]) + (add ? y[i] : 0);
    }
}

static void launch_faulty(const tr_op_desc *desc, const tr_launch *launch) {
    fault f = fault_of(desc->attr);
    float *y = launch->out[0], *workspace = launch->workspace;
    bool add = launch->accumulate & 1;
    add = (add || f == ALWAYS_ADDS) && f != NEVER_ADDS;
    scale(desc, launch, factor(desc, f), add, ELEMENTS - (f == LAST_UNWRITTEN));
    if (f == INPUT_WRITTEN) {
        ((float *)(uintptr_t)launch->in[0])[0] += 1;
    }
    y[f == WRITES_BEHIND ? ELEMENTS : 0] += f == WRITES_BEHIND;
    y[f == WRITES_BEFORE ? -1 : 0] *= f == WRITES_BEFORE ? 0 : 1;
    workspace[f == WRITES_BEHIND_WORKSPACE ? ELEMENTS : 0] = 0;
}

// An op that no backend knows has one kernel. As a reference it is right, but for its
// derivative; asked for as the kernel of this processor it has the fault.
static void launch_twice(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    if (desc->target.level < 0) {
        scale(desc, launch, 2, launch->accumulate, ELEMENTS);
    } else {
        launch_faulty(desc, launch);
    }
}

static void launch_backward(const tr_op_desc *desc, void *state,
                            const tr_launch *launch) {
    (void)state;
    if (desc->target.level < 0) {
        scale(desc, launch, fault_of(desc->attr) == WRONG_DERIVATIVE ? 2.1 : 2,
              launch->accumulate, ELEMENTS);
    } else {
        launch_faulty(desc, launch);
    }
}

static void launch_again(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    (void)state;
    scale(desc, launch, fault_of(desc->attr) == OTHER_BITS_RECOMPUTED ? 2.0000005 : 2,
          false, ELEMENTS);
}

static size_t workspace(const tr_op_desc *desc, const void *state) {
    (void)desc, (void)state;
    return ELEMENTS * sizeof(float);
}

static const tr_kernel twice_kernel = {.name = "twice",
                                       .supports = tr__desc_f32,
                                       .workspace = workspace,
                                       .launch = launch_twice};
static const tr_kernel backward_kernel = {.name = "twice_backward",
                                          .supports = tr__desc_f32,
                                          .workspace = workspace,
                                          .launch = launch_backward};
static const tr_kernel again_kernel = {
    .name = "twice_again", .supports = tr__desc_f32, .launch = launch_again};

static tr_status infer(const tr_op_node *node, tr_tensor_desc *out, int *out_count,
                       tr_error *err) {
    if (fault_of(node->attr) == SHAPES_UNCHECKED) {
        out[0] = node->in[0];
        *out_count = 1;
        return TR_OK;
    }
    return tr__operand_same(node, 1, out, out_count, err);
}

static const tr_op twice_backward = {.name = "twice_backward",
                                     .attr_bytes = sizeof(fault),
                                     .infer = infer,
                                     .reference = &backward_kernel};
static const tr_op twice_again = {.name = "twice_again",
                                  .attr_bytes = sizeof(fault),
                                  .infer = infer,
                                  .reference = &again_kernel};

static int backward(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]) {
    rules[0] = (tr_rule){
        .op = &twice_backward, .in = {TR_GRAD_OUT(0)}, .out = {TR_GRAD_IN(0)}};
    memcpy(rules[0].attr, node->attr, sizeof(fault));
    return fault_of(node->attr) == NO_DERIVATIVE ? 0 : 1;
}

static bool recompute(const tr_op_node *node, tr_rule *rule) {
    *rule = (tr_rule){.op = &twice_again, .in = {TR_IN(0)}, .out = {TR_OUT(0)}};
    memcpy(rule->attr, node->attr, sizeof(fault));
    return fault_of(node->attr) == NO_FAULT ||
           fault_of(node->attr) == OTHER_BITS_RECOMPUTED;
}

static const tr_op twice = {.name = "twice",
                            .attr_bytes = sizeof(fault),
                            .infer = infer,
                            .backward = backward,
                            .recompute = recompute,
                            .reference = &twice_kernel};

static bool ask(tr_graph *graph, const tr_rewrite_node *node, tr_value *results) {
    const fault wrong = OFF_IN_VALUE;
    bool changes = fault_of(node->attr) == WRONG_WHEN_ASKED;
    return tr_rewrite_as(graph, node, &twice, changes ? &wrong : node->attr, results);
}

static const tr_rewrite rows[] = {{TR_REWRITE_ASKED, &twice, NULL, ask}, {0}};

static fault listed; // what the only case of the list below has

static bool get(int index, tr_case *out) {
    *out = (tr_case){
        .name = "twice",
        .op = &twice,
        .rewrites = rows,
        .in_count = 1,
        .in = {{.desc = {TR_F32, {1, {ELEMENTS}}}}},
        .tolerance = 1e-6,
        .gradient_tolerance = 1e-3,
    };
    memcpy(out->attr, &listed, sizeof listed);
    return index == 0;
}

static const tr_case_list list = {"twice", get};

// Without the messages, which are the point of the runner but not of this test.
static int failures(fault f) {
    listed = f;
    int kept = dup(STDERR_FILENO), nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    assert_true(kept >= 0 && nowhere >= 0);
    dup2(nowhere, STDERR_FILENO);
    int failed = test_conform(&list) + test_conform_refusals(&list);
    dup2(kept, STDERR_FILENO);
    close(kept);
    close(nowhere);
    return failed;
}

static void a_sound_op_passes(void **state) {
    (void)state;
    assert_int_equal(failures(NO_FAULT), 0);
}

static void every_fault_is_found(void **state) {
    (void)state;
#if defined(__SANITIZE_ADDRESS__)
    const int last = FAULTS;
#else
    const int last = ALL_FAULTS;
#endif
    for (int f = NO_FAULT + 1; f < last; f++) {
        if (failures((fault)f) == 0) {
            fail_msg("fault %d is not found", f);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sound_op_passes),
        cmocka_unit_test(every_fault_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

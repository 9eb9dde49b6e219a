// Under AddressSanitizer a process ends at the launch of an own op's kernel that reads
// or writes one element beside its operands, wherever they lie in their block.
#include "base/poison.h"
#include "own_model.h"
#include "samples.h"
#include "trial.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef enum mistake { NONE, READS_ON, READS_BEFORE, WRITES_ON } mistake;

static mistake made;

static tr_status infer(const tr_op_node *node, tr_tensor_desc *out, int *out_count,
                       tr_error *err) {
    (void)err;
    out[0] = node->in[0];
    *out_count = 1;
    return TR_OK;
}

static bool is_f32(const tr_op_desc *desc) {
    return desc->in[0].dtype == TR_F32;
}

// y = 2 x, which is its own backward.
static void launch_twice(const tr_op_desc *desc, void *state, const tr_launch *launch) {
    const float *x = launch->in[0];
    float *y = launch->out[0];
    int64_t count = tr_shape_count(desc->in[0].shape);
    (void)state;
    for (int64_t i = 0; i < count; i++) {
        y[i] = (launch->accumulate & 1 ? y[i] : 0) + 2 * x[i];
    }
    if (made == READS_ON) {
        y[0] += x[count] * 0;
    } else if (made == READS_BEFORE) {
        y[0] += x[-1] * 0;
    } else if (made == WRITES_ON) {
        y[count] = 0;
    }
}

static const tr_kernel kernel = {
    .name = "twice", .supports = is_f32, .launch = launch_twice};
static const tr_op twice_backward = {
    .name = "twice_backward", .infer = infer, .reference = &kernel};

static int rules(const tr_op_node *node, tr_rule rules[TR_OP_RULES_MAX]) {
    (void)node;
    rules[0] = (tr_rule){
        .op = &twice_backward, .in = {TR_GRAD_OUT(0)}, .out = {TR_GRAD_IN(0)}};
    return 1;
}

static const tr_op twice = {
    .name = "twice", .infer = infer, .backward = rules, .reference = &kernel};

static void build_twice(tr_graph *graph, const void *config) {
    tr_value x = tr_graph_input(graph, 0);
    (void)config;
    tr_value y = tr_graph_op(graph, &twice, NULL, &x, 1, NULL);
    tr_graph_output(graph, tr_relu(graph, y));
}

// A step of 4 samples, 16 wide: no operand ends within 64 bytes of which the rest is
// nobody's.
static void make_step(void) {
    own_model own;
    samples s;
    trial t;
    own_model_make(&own, false, 0);
    own.units[1] = (tr_model_unit){"middle", "twice", "middle.", build_twice, NULL};
    samples_features(&s, 40, OWN_FEATURES, OWN_CLASSES, 5);
    run_options options = {
        .text = "{\"train_batch_size\": 8, \"train_micro_batch_size_per_gpu\": 4, "
                "\"steps\": 1, \"execution\": {\"threads\": 1}}",
        .own_model = &own.model,
        .own_train = s.dataset};
    trial_open(&t, &options);
    trial_steps(&t, 1, NULL);
    trial_close(&t);
    samples_free(&s);
}

#ifdef TR_POISONS

// The status of a process that makes the step, and what it says.
static int step_with(mistake with, char *says, size_t bytes) {
    int pipes[2], status = 0;
    assert_int_equal(pipe(pipes), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(pipes[1], STDERR_FILENO);
        close(pipes[0]);
        close(pipes[1]);
        made = with;
        make_step();
        _exit(0);
    }
    close(pipes[1]);
    size_t length = 0;
    for (;;) {
        char rest[4096];
        bool full = length == bytes - 1;
        ssize_t got = read(pipes[0], full ? rest : says + length,
                           full ? sizeof rest : bytes - 1 - length);
        if (got <= 0) {
            break;
        }
        length += full ? 0 : (size_t)got;
    }
    says[length] = '\0';
    close(pipes[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void test_bounds(void **state) {
    static char says[1 << 16];
    (void)state;
    assert_int_equal(step_with(NONE, says, sizeof says), 0);
    for (int m = READS_ON; m <= WRITES_ON; m++) {
        assert_int_not_equal(step_with((mistake)m, says, sizeof says), 0);
        if (!strstr(says, "use-after-poison") || !strstr(says, "launch_twice")) {
            fail_msg("%d: %.2000s", m, says);
        }
    }
}

#else

static void test_bounds(void **state) {
    (void)state;
    make_step();
    skip();
}

#endif

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bounds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

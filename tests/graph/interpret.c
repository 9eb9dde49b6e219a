#include "graph/interpret.h"

#include "base/rng.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SEED = 11, GRADIENT_STREAM = 1000 };

static tr_tensor_desc concrete(const test_run *run, tr_value value) {
    tr_tensor_desc desc = tr_graph_desc(run->graph, value);
    for (int i = 0; i < desc.shape.rank; i++) {
        if (desc.shape.dim[i] == TR_BATCH) {
            desc.shape.dim[i] = run->rows;
        }
    }
    return desc;
}

int64_t test_run_bytes(const test_run *run, tr_value value) {
    return tr_tensor_bytes(concrete(run, value));
}

void *test_run_value(const test_run *run, tr_value value, int micro) {
    return value == TR_NO_VALUE
               ? NULL
               : run->memory[(size_t)value * (size_t)run->micros + (size_t)micro];
}

// Is there one tensor for all micro-batches?
static bool is_one(const test_run *run, tr_value value) {
    const tr_value_info *info = &run->graph->values[value];
    if (info->kind == TR_VALUE_GRAD) {
        return is_one(run, (tr_value)info->index);
    }
    return info->kind == TR_VALUE_PARAM || info->wave || info->sums;
}

// ---- what comes in

static void draw(const test_run *run, tr_value value, int micro, uint64_t stream) {
    tr_tensor_desc desc = concrete(run, value);
    int64_t count = tr_shape_count(desc.shape), first = micro * count;
    if (desc.dtype == TR_F32) {
        tr__fill_normal(test_run_value(run, value, micro), first, count, 0, 1, SEED,
                        stream);
        return;
    }
    int32_t *targets = test_run_value(run, value, micro);
    for (int64_t i = 0; i < count; i++) {
        targets[i] =
            (int32_t)tr__draw_below(4, (uint64_t)(first + i), SEED, stream) - 1;
    }
}

static void draw_inputs(const test_run *run) {
    for (size_t v = 0; v < run->values; v++) {
        tr_value_kind kind = run->graph->values[v].kind;
        int times = is_one(run, (tr_value)v) ? 1 : run->micros;
        bool drawn =
            kind == TR_VALUE_INPUT || kind == TR_VALUE_DATA || kind == TR_VALUE_PARAM;
        for (int micro = 0; drawn && micro < times; micro++) {
            draw(run, (tr_value)v, micro, (uint64_t)v);
        }
    }
}

void test_run_begin(test_run *run, tr_graph *graph, const tr_derivation *derived,
                    int64_t rows, int micros) {
    size_t values = graph->value_count;
    *run = (test_run){graph, derived, rows, micros, NULL, values};
    run->memory = calloc(values * (size_t)micros, sizeof *run->memory);
    assert_non_null(run->memory);
    for (size_t v = 0; v < values; v++) {
        void **memory = &run->memory[v * (size_t)micros];
        for (int micro = 0; micro < micros; micro++) {
            bool shared = micro > 0 && is_one(run, (tr_value)v);
            int64_t bytes = test_run_bytes(run, (tr_value)v);
            memory[micro] = shared ? memory[0] : calloc(1, (size_t)bytes + 1);
            assert_non_null(memory[micro]);
        }
    }
    draw_inputs(run);
}

void test_run_end(test_run *run) {
    for (size_t v = 0; v < run->values; v++) {
        int times = is_one(run, (tr_value)v) ? 1 : run->micros;
        for (int micro = 0; micro < times; micro++) {
            free(test_run_value(run, (tr_value)v, micro));
        }
    }
    free(run->memory);
}

// ---- launches

static void run_kernel(tr_op_desc *desc, tr_launch *launch, uint64_t sample) {
    const tr_kernel *kernel = desc->op->reference;
    const tr_run_context context = {
        .seed = 5, .step = 3, .sample = sample, .unit = 2, .loss_seed = 0.125f};
    void *state = NULL;
    assert_true(kernel->supports(desc));
    assert_null(kernel->prepare);
    size_t bytes = kernel->workspace ? kernel->workspace(desc, state) : 0;
    launch->workspace = aligned_alloc(64, (bytes + 64) / 64 * 64);
    launch->run = &context;
    assert_non_null(launch->workspace);
    kernel->launch(desc, state, launch);
    free(launch->workspace);
}

static void run_call(const test_run *run, const tr_call *call, int micro) {
    tr_op_desc desc = {.op = call->op,
                       .in_count = call->in_count,
                       .out_count = call->out_count,
                       .target = {.workers = 1}};
    tr_launch launch = {.accumulate = call->accumulate | (micro ? call->first : 0)};
    memcpy(desc.attr, call->attr, sizeof desc.attr);
    desc.accumulate = launch.accumulate;
    desc.fresh = ~launch.accumulate;
    for (int i = 0; i < call->in_count; i++) {
        desc.in[i] = concrete(run, call->in[i]);
        launch.in[i] = test_run_value(run, call->in[i], micro);
    }
    for (int i = 0; i < call->out_count; i++) {
        desc.out[i] = concrete(run, call->out[i]);
        launch.out[i] = test_run_value(run, call->out[i], micro);
    }
    run_kernel(&desc, &launch, (uint64_t)(micro * run->rows));
}

static bool is_loss(const tr_call *call) {
    return (call->op->flags & TR_OP_LOSS) != 0;
}

void test_run_forward(test_run *run) {
    for (int s = 0; s < run->graph->segment_count; s++) {
        for (int micro = 0; micro < run->micros; micro++) {
            for (size_t n = 0; n < run->graph->node_count; n++) {
                const tr_call *node = &run->graph->nodes[n];
                if (node->segment == s && !is_loss(node)) {
                    run_call(run, node, micro);
                }
            }
        }
    }
}

// ---- the derived backward

static bool is_read_output(const test_run *run, tr_value value) {
    for (int i = 0; i < run->graph->output_count; i++) {
        if (run->graph->output[i] == value) {
            return run->derived->reads_output[i];
        }
    }
    return false;
}

static void spoil(const test_run *run, tr_value value, int micro) {
    memset(test_run_value(run, value, micro), 0xFF,
           (size_t)test_run_bytes(run, value)); // NaN
}

static void make_again(const test_run *run, int micro) {
    for (size_t n = 0; n < run->graph->node_count; n++) {
        tr_call node = run->graph->nodes[n];
        for (int i = 0; i < node.out_count; i++) {
            const tr_value_info *info = &run->graph->values[node.out[i]];
            node.out[i] = info->wave || info->sums ? TR_NO_VALUE : node.out[i];
        }
        if (run->derived->needed[n]) {
            run_call(run, &node, micro);
        }
    }
}

// `all` but what passes outside of the unit, or all that is not saved.
static void spoil_values(const test_run *run, int micro, bool all) {
    for (size_t v = 0; v < run->values; v++) {
        const tr_value_info *info = &run->graph->values[v];
        bool kept = info->kind == TR_VALUE_NODE
                        ? info->wave || info->sums ||
                              is_read_output(run, (tr_value)v) ||
                              (!all && run->derived->saved[v])
                        : info->kind != TR_VALUE_INPUT ||
                              run->derived->reads_input[info->index] || all;
        if (!kept) {
            spoil(run, (tr_value)v, micro);
        }
    }
}

void test_run_forget(test_run *run, bool again) {
    for (int micro = 0; micro < run->micros; micro++) {
        if (again) {
            spoil_values(run, micro, true);
            make_again(run, micro);
        }
        spoil_values(run, micro, false);
    }
}

void test_run_backward(test_run *run) {
    for (int i = 0; i < run->graph->output_count; i++) {
        tr_value grad = run->derived->output_grad[i];
        for (int micro = 0; grad != TR_NO_VALUE && micro < run->micros; micro++) {
            draw(run, grad, micro, GRADIENT_STREAM + (uint64_t)i);
        }
    }
    for (int s = run->graph->segment_count - 1; s >= 0; s--) {
        for (int micro = 0; micro < run->micros; micro++) {
            for (size_t i = 0; i < run->derived->backward_count; i++) {
                if (run->derived->backward[i].segment == s) {
                    run_call(run, &run->derived->backward[i], micro);
                }
            }
        }
    }
}

// ---- the obvious backward

typedef struct obvious {
    const test_run *run;
    const tr_call *node;
    float **grad;
    void *temp[TR_OP_TEMPS_MAX];
    tr_tensor_desc temp_desc[TR_OP_TEMPS_MAX];
} obvious;

// What a rule's reference stands for.
static void *look_up(obvious *o, tr_ref ref, tr_tensor_desc *desc) {
    const tr_call *node = o->node;
    bool is_in = ref.kind == TR_REF_IN || ref.kind == TR_REF_GRAD_IN;
    bool is_out = ref.kind == TR_REF_OUT || ref.kind == TR_REF_GRAD_OUT;
    if (ref.kind == TR_REF_TEMP) {
        *desc = o->temp_desc[ref.index];
        return o->temp[ref.index];
    }
    tr_value value = is_in    ? node->in[ref.index]
                     : is_out ? node->out[ref.index]
                              : TR_NO_VALUE;
    bool none = value == TR_NO_VALUE || (ref.kind == TR_REF_GRAD_IN &&
                                         (node->op->no_gradient >> ref.index & 1));
    *desc = none ? (tr_tensor_desc){0} : concrete(o->run, value);
    if (none) {
        return NULL;
    }
    bool is_grad = ref.kind == TR_REF_GRAD_IN || ref.kind == TR_REF_GRAD_OUT;
    return is_grad ? o->grad[value] : test_run_value(o->run, value, 0);
}

static void make_temp(obvious *o, const tr_rule *rule, int index) {
    tr_tensor_desc desc = rule->temp[index];
    for (int i = 0; i < desc.shape.rank; i++) {
        desc.shape.dim[i] =
            desc.shape.dim[i] == TR_BATCH ? o->run->rows : desc.shape.dim[i];
    }
    o->temp_desc[index] = desc;
    o->temp[index] = calloc(1, (size_t)tr_tensor_bytes(desc) + 1);
    assert_non_null(o->temp[index]);
}

static void add_copy(obvious *o, const tr_rule *rule) {
    tr_tensor_desc desc;
    const float *from = look_up(o, rule->in[0], &desc);
    float *to = look_up(o, rule->out[0], &desc);
    for (int64_t i = 0; i < tr_shape_count(desc.shape); i++) {
        to[i] += from[i];
    }
}

static void run_rule(obvious *o, const tr_rule *rule) {
    tr_op_desc desc = {.op = rule->op, .target = {.workers = 1}, .accumulate = ~0u};
    tr_launch launch = {.accumulate = ~0u};
    memcpy(desc.attr, rule->attr, sizeof desc.attr);
    for (int i = 0; i < TR_OP_IN_MAX; i++) {
        launch.in[i] = look_up(o, rule->in[i], &desc.in[i]);
        desc.in_count = rule->in[i].kind ? i + 1 : desc.in_count;
    }
    for (int i = 0; i < TR_OP_OUT_MAX; i++) {
        if (rule->out[i].kind == TR_REF_TEMP) {
            make_temp(o, rule, rule->out[i].index);
        }
        launch.out[i] = look_up(o, rule->out[i], &desc.out[i]);
        desc.out_count = rule->out[i].kind ? i + 1 : desc.out_count;
    }
    run_kernel(&desc, &launch, 0);
}

static void run_rules(obvious *o) {
    const tr_call *node = o->node;
    tr_tensor_desc in[TR_OP_IN_MAX], out[TR_OP_OUT_MAX];
    tr_rule rules[TR_OP_RULES_MAX] = {0};
    for (int i = 0; i < node->in_count; i++) {
        in[i] = tr_graph_desc(o->run->graph, node->in[i]);
    }
    for (int i = 0; i < node->out_count; i++) {
        out[i] = tr_graph_desc(o->run->graph, node->out[i]);
    }
    tr_op_node view = {.op = node->op,
                       .attr = node->attr,
                       .in_count = node->in_count,
                       .out_count = node->out_count,
                       .in = in,
                       .out = out};
    int count = node->op->backward(&view, rules);
    for (int i = 0; i < count; i++) {
        if (rules[i].op) {
            run_rule(o, &rules[i]);
        } else {
            add_copy(o, &rules[i]);
        }
    }
    for (int i = 0; i < TR_OP_TEMPS_MAX; i++) {
        free(o->temp[i]);
    }
}

void test_run_obvious(test_run *run, float **grad) {
    for (size_t v = 0; v < run->values; v++) {
        grad[v] = calloc(1, (size_t)test_run_bytes(run, (tr_value)v) + 1);
        assert_non_null(grad[v]);
    }
    for (int i = 0; i < run->graph->output_count; i++) {
        tr_value value = run->graph->output[i];
        int64_t count = tr_shape_count(concrete(run, value).shape);
        tr__fill_normal(grad[value], 0, count, 0, 1, SEED,
                        GRADIENT_STREAM + (uint64_t)i);
    }
    for (size_t n = run->graph->node_count; n-- > 0;) {
        obvious o = {.run = run, .node = &run->graph->nodes[n], .grad = grad};
        run_rules(&o);
    }
}

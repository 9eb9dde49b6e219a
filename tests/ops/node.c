#include "ops/node.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

// Streams of random numbers, one for each thing that is filled.
enum { STREAM_IN = 0, STREAM_GRAD_OUT = 16, STREAM_BASE = 32, STREAM_SUMS = 48 };

tr_op_node test_node_symbolic(const test_node *node, tr_tensor_desc in[TR_OP_IN_MAX],
                              tr_tensor_desc out[TR_OP_OUT_MAX]) {
    for (int i = 0; i < TR_OP_IN_MAX; i++) {
        in[i] = node->in[i].desc;
    }
    for (int i = 0; i < TR_OP_OUT_MAX; i++) {
        out[i] = node->out[i].desc;
    }
    return (tr_op_node){
        .op = node->the_case->op,
        .attr = node->the_case->attr,
        .in_count = node->the_case->in_count,
        .out_count = node->out_count,
        .in = in,
        .out = out,
    };
}

void test_node_open(test_node *node, const tr_case *the_case) {
    *node = (test_node){.the_case = the_case};
    for (int i = 0; i < the_case->in_count; i++) {
        if (the_case->in[i].desc.dtype != TR_NONE) {
            test_tensor_take(&node->in[i], the_case->in[i].desc);
            test_tensor_fill_input(&node->in[i], &the_case->in[i],
                                   STREAM_IN + (uint64_t)i);
        }
    }
    tr_tensor_desc in[TR_OP_IN_MAX], out[TR_OP_OUT_MAX];
    tr_error err = {0};
    tr_op_node view = test_node_symbolic(node, in, out);
    if (the_case->op->infer(&view, out, &node->out_count, &err) != TR_OK) {
        fail_msg("%s: the shape rule refuses the case: %s", the_case->name,
                 err.message);
    }
    for (int i = 0; i < node->out_count; i++) {
        test_tensor_take(&node->out[i], out[i]);
    }
}

void test_node_open_like(test_node *node, const test_node *from) {
    *node = (test_node){
        .the_case = from->the_case, .out_count = from->out_count, .spot = from->spot};
    for (int i = 0; i < TR_OP_IN_MAX; i++) {
        test_tensor_copy(&node->in[i], &from->in[i]);
    }
    for (int i = 0; i < TR_OP_OUT_MAX; i++) {
        test_tensor_copy(&node->out[i], &from->out[i]);
    }
}

static void give_all(test_tensor *tensors, int count) {
    for (int i = 0; i < count; i++) {
        test_tensor_give(&tensors[i]);
    }
}

void test_node_put_spot(test_node *node, test_spot spot) {
    node->spot = spot;
    if (spot.there && !spot.of_gradient) {
        test_tensor_put(&node->in[spot.operand], spot.element, spot.value);
    }
}

void test_node_close(test_node *node) {
    give_all(node->in, TR_OP_IN_MAX);
    give_all(node->out, TR_OP_OUT_MAX);
    give_all(node->grad_in, TR_OP_IN_MAX);
    give_all(node->grad_out, TR_OP_OUT_MAX);
    give_all(node->temp, TR_OP_TEMPS_MAX);
}

static void apply(test_node *node, const test_operands *operands, const test_way *way) {
    const char *broken = test_apply(operands, way);
    node->broken = node->broken ? node->broken : broken;
}

static test_tensor *if_there(test_tensor *tensor) {
    return tensor->desc.dtype == TR_NONE ? NULL : tensor;
}

// Sums of a loss and tensors of a whole wave are only ever added to, others where the
// case says so.
static bool is_added_to(const test_node *node, int i) {
    const tr_op *op = node->the_case->op;
    return (i == 0 && op->flags & TR_OP_LOSS) ||
           (op->wave_outputs | node->the_case->added) >> i & 1;
}

// The outputs before a run that makes them.
static void clear_out(test_node *node, uint32_t which) {
    for (int i = 0; i < node->out_count; i++) {
        if (which & 1u << i) {
            test_tensor_take(&node->out[i], node->out[i].desc);
            if (is_added_to(node, i)) {
                test_tensor_fill(&node->out[i], 0.5, STREAM_SUMS);
            }
        }
    }
}

void test_node_forward(test_node *node, const test_way *way) {
    test_operands o = {
        .op = node->the_case->op,
        .attr = node->the_case->attr,
        .in_count = node->the_case->in_count,
        .out_count = node->out_count,
    };
    clear_out(node, UINT32_MAX);
    for (int i = 0; i < o.in_count; i++) {
        o.in[i] = if_there(&node->in[i]);
    }
    for (int i = 0; i < o.out_count; i++) {
        o.out[i] = way->unwanted_out & 1u << i ? NULL : if_there(&node->out[i]);
    }
    if (way->in_place) {
        int under = o.op->in_place - 1;
        test_tensor_copy(&node->out[0], &node->in[under]);
        node->out[0].there = false;
        o.in[under] = &node->out[0];
    }
    apply(node, &o, way);
}

// ---- rules

static test_tensor *resolve(test_node *node, tr_ref ref) {
    switch (ref.kind) {
    case TR_REF_IN:
        return if_there(&node->in[ref.index]);
    case TR_REF_OUT:
        return if_there(&node->out[ref.index]);
    case TR_REF_GRAD_IN:
        return if_there(&node->grad_in[ref.index]);
    case TR_REF_GRAD_OUT:
        return if_there(&node->grad_out[ref.index]);
    case TR_REF_TEMP:
        return if_there(&node->temp[ref.index]);
    default:
        return NULL;
    }
}

static void take_temporaries(test_node *node, const tr_rule *rule) {
    for (int i = 0; i < TR_OP_OUT_MAX; i++) {
        if (rule->out[i].kind == TR_REF_TEMP) {
            int index = rule->out[i].index;
            assert_int_not_equal(rule->temp[index].dtype, TR_NONE);
            test_tensor_take(&node->temp[index], rule->temp[index]);
        }
    }
}

static void copy_gradient(const test_tensor *from, test_tensor *to) {
    assert_true(tr_shape_equal(from->desc.shape, to->desc.shape));
    for (int64_t i = 0; i < tr_shape_count(to->desc.shape); i++) {
        double before = to->there ? test_tensor_at(to, i) : 0;
        test_tensor_put(to, i, before + test_tensor_at(from, i));
    }
    to->there = true;
}

// The results of a rule must have the shapes that its op's shape rule gives.
static void check_shapes(const tr_rule *rule, test_operands *o) {
    tr_tensor_desc in[TR_OP_IN_MAX] = {{0}}, out[TR_OP_OUT_MAX] = {{0}};
    tr_error err = {0};
    int count = 0;
    for (int i = 0; i < o->in_count; i++) {
        in[i] = o->in[i] ? o->in[i]->desc : in[i];
    }
    tr_op_node view = {
        .op = rule->op, .attr = rule->attr, .in_count = o->in_count, .in = in};
    if (rule->op->infer(&view, out, &count, &err) != TR_OK) {
        fail_msg("a rule uses %s wrongly: %s", rule->op->name, err.message);
    }
    for (int i = 0; i < TR_OP_OUT_MAX; i++) {
        if (o->out[i]) {
            assert_true(i < count);
            assert_int_equal(out[i].dtype, o->out[i]->desc.dtype);
            assert_true(tr_shape_equal(out[i].shape, o->out[i]->desc.shape));
        }
    }
    o->out_count = count;
}

static void run_rule(test_node *node, const test_way *way, const tr_rule *rule) {
    test_operands o = {.op = rule->op, .attr = rule->attr};
    bool wanted = false;
    take_temporaries(node, rule);
    for (int i = 0; i < TR_OP_IN_MAX; i++) {
        o.in[i] = resolve(node, rule->in[i]);
        o.in_count = rule->in[i].kind != TR_REF_NONE ? i + 1 : o.in_count;
        assert_true(!o.in[i] || o.in[i]->there); // reads only what was written
    }
    for (int i = 0; i < TR_OP_OUT_MAX; i++) {
        o.out[i] = resolve(node, rule->out[i]);
        wanted = wanted || o.out[i];
    }
    if (wanted && !rule->op) {
        copy_gradient(o.in[0], o.out[0]);
    } else if (wanted) {
        check_shapes(rule, &o);
        apply(node, &o, way);
    }
}

// unwanted: bits of the inputs whose gradients nobody wants.
static int wanted_rules(const test_node *node, uint32_t unwanted,
                        tr_rule rules[TR_OP_RULES_MAX]) {
    tr_tensor_desc in[TR_OP_IN_MAX], out[TR_OP_OUT_MAX];
    tr_op_node view = test_node_symbolic(node, in, out);
    view.unwanted = unwanted;
    memset(rules, 0, TR_OP_RULES_MAX * sizeof *rules);
    int count = view.op->backward ? view.op->backward(&view, rules) : 0;
    assert_true(count >= 0 && count <= TR_OP_RULES_MAX);
    return count;
}

static int backward_rules(const test_node *node, tr_rule rules[TR_OP_RULES_MAX]) {
    return wanted_rules(node, 0, rules);
}

static uint32_t bit_if(tr_ref ref, tr_ref_kind kind) {
    return ref.kind == kind ? 1u << ref.index : 0;
}

uint32_t test_node_grads_written(const test_node *node) {
    tr_rule rules[TR_OP_RULES_MAX];
    int count = backward_rules(node, rules);
    uint32_t written = 0;
    for (int r = 0; r < count; r++) {
        for (int i = 0; i < TR_OP_OUT_MAX; i++) {
            written |= bit_if(rules[r].out[i], TR_REF_GRAD_IN);
        }
    }
    return written;
}

// What is read before it is written, and in `*written` what is written.
static uint32_t grads_out(const test_node *node, uint32_t *written) {
    tr_rule rules[TR_OP_RULES_MAX];
    int count = backward_rules(node, rules);
    uint32_t read = 0;
    *written = 0;
    for (int r = 0; r < count; r++) {
        for (int i = 0; i < TR_OP_IN_MAX; i++) {
            read |= bit_if(rules[r].in[i], TR_REF_GRAD_OUT) & ~*written;
        }
        for (int i = 0; i < TR_OP_OUT_MAX; i++) {
            *written |= bit_if(rules[r].out[i], TR_REF_GRAD_OUT);
        }
    }
    return read;
}

uint32_t test_node_grads_read(const test_node *node) {
    uint32_t written;
    return grads_out(node, &written);
}

uint32_t test_node_grads_used(const test_node *node) {
    uint32_t written, read = grads_out(node, &written);
    return read | written;
}

void test_node_grad_start(const test_node *node, int i, test_tensor *grad) {
    test_tensor_take(grad, node->out[i].desc);
    test_tensor_fill(grad, 1, STREAM_GRAD_OUT + (uint64_t)i);
    if (node->spot.there && node->spot.of_gradient && node->spot.operand == i) {
        test_tensor_put(grad, node->spot.element, node->spot.value);
    }
}

// rules: those before the one that has the reference, of which one writes a temporary.
static tr_tensor_desc described(const test_node *node, const tr_rule *rules, int count,
                                tr_ref ref) {
    switch (ref.kind) {
    case TR_REF_IN:
    case TR_REF_GRAD_IN:
        return node->in[ref.index].desc;
    case TR_REF_OUT:
    case TR_REF_GRAD_OUT:
        return node->out[ref.index].desc;
    case TR_REF_TEMP:
        while (count > 0 && rules[count - 1].temp[ref.index].dtype == TR_NONE) {
            count--;
        }
        return count > 0 ? rules[count - 1].temp[ref.index] : (tr_tensor_desc){0};
    default:
        return (tr_tensor_desc){0};
    }
}

// What the gradient of input i is: as the shape rule of the op that makes it says; that
// of a parameter is f32.
static tr_tensor_desc gradient_desc(const test_node *node, int i) {
    tr_rule rules[TR_OP_RULES_MAX];
    int count = backward_rules(node, rules);
    for (int r = 0; r < count; r++) {
        tr_tensor_desc in[TR_OP_IN_MAX] = {{0}}, out[TR_OP_OUT_MAX] = {{0}};
        tr_op_node view = {.op = rules[r].op, .attr = rules[r].attr, .in = in};
        int outs = 0;
        for (int k = 0; k < TR_OP_IN_MAX; k++) {
            in[k] = described(node, rules, r, rules[r].in[k]);
            view.in_count = rules[r].in[k].kind != TR_REF_NONE ? k + 1 : view.in_count;
        }
        if (!view.op || view.op->infer(&view, out, &outs, NULL) != TR_OK) {
            continue;
        }
        for (int k = 0; k < outs; k++) {
            tr_ref ref = rules[r].out[k];
            if (ref.kind == TR_REF_GRAD_IN && ref.index == i) {
                return out[k];
            }
        }
    }
    return node->in[i].desc;
}

void test_node_start_backward(test_node *node, const test_way *way,
                              const double *base) {
    uint32_t read = test_node_grads_read(node), used = test_node_grads_used(node);
    uint32_t written = test_node_grads_written(node) & ~way->unwanted_in;
    give_all(node->grad_in, TR_OP_IN_MAX);
    give_all(node->grad_out, TR_OP_OUT_MAX);
    for (int i = 0; i < node->out_count; i++) {
        if (read & 1u << i || (way->given && used & 1u << i)) {
            test_node_grad_start(node, i, &node->grad_out[i]);
        } else if (used & 1u << i) {
            test_tensor_take(&node->grad_out[i], node->out[i].desc);
        }
    }
    for (int i = 0; i < node->the_case->in_count; i++) {
        if (written & 1u << i && node->in[i].desc.dtype != TR_NONE) {
            test_tensor_take(&node->grad_in[i], gradient_desc(node, i));
            if (way->accumulate) {
                test_tensor_fill(&node->grad_in[i], base ? base[i] : 1,
                                 STREAM_BASE + (uint64_t)i);
            }
        }
    }
}

void test_node_run_backward(test_node *node, const test_way *way) {
    tr_rule rules[TR_OP_RULES_MAX];
    int count = wanted_rules(node, way->unwanted_in, rules);
    if (node->the_case->op->flags & TR_OP_LOSS) {
        clear_out(node, 1);
    }
    for (int r = 0; r < count; r++) {
        run_rule(node, way, &rules[r]);
    }
}

void test_node_backward(test_node *node, const test_way *way, const double *base) {
    test_node_start_backward(node, way, base);
    test_node_run_backward(node, way);
}

uint32_t test_node_recompute(test_node *node, const test_way *way) {
    tr_tensor_desc in[TR_OP_IN_MAX], out[TR_OP_OUT_MAX];
    tr_rule rule = {0};
    tr_op_node view = test_node_symbolic(node, in, out);
    if (!view.op->recompute || !view.op->recompute(&view, &rule)) {
        return 0;
    }
    uint32_t cheap = 0;
    for (int i = 0; i < TR_OP_OUT_MAX; i++) {
        cheap |= bit_if(rule.out[i], TR_REF_OUT);
    }
    clear_out(node, cheap);
    run_rule(node, way, &rule);
    return cheap;
}

#include "graph/op_probe.h"

#include "base/hash.h"
#include "base/memory.h"
#include "base/rng.h"

#include <string.h>

enum { GUARD_LEAST = 4096, ALIGNED = 64, SEED = 20 };
enum { STREAM_IN = 0, STREAM_GRAD = 16 };

const tr_run_context tr__probe_context = {
    .seed = 7, .step = 5, .sample = 11, .rows = INT64_MAX, .loss_seed = 0.375f};

// ---- tensors

double tr__box_get(const tr_box *box, int64_t i) {
    return box->desc.dtype == TR_F64 ? ((const double *)(const void *)box->data)[i]
                                     : ((const float *)(const void *)box->data)[i];
}

void tr__box_put(tr_box *box, int64_t i, double x) {
    if (box->desc.dtype == TR_F64) {
        ((double *)(void *)box->data)[i] = x;
    } else {
        ((float *)(void *)box->data)[i] = (float)x;
    }
}

static void give(tr_box *box) {
    tr__free(box->block);
    *box = (tr_box){0};
}

static tr_status take_bytes(tr_box *box, size_t bytes, unsigned char fill,
                            tr_error *err) {
    tr_tensor_desc desc = box->desc;
    size_t guard = bytes > GUARD_LEAST ? (bytes + ALIGNED - 1) / ALIGNED * ALIGNED
                                       : (size_t)GUARD_LEAST;
    size_t all = bytes + 2 * guard + ALIGNED; // to begin at a multiple of that
    give(box);
    unsigned char *block = tr__calloc(all, 1);
    if (!block) {
        return tr_fail(err, TR_MEMORY, "no memory to check an op");
    }
    memset(block, fill, all);
    size_t off = ALIGNED - (size_t)((uintptr_t)block % ALIGNED);
    *box = (tr_box){.desc = desc,
                    .block = block,
                    .data = block + off + guard,
                    .bytes = bytes,
                    .guard = guard};
    return TR_OK;
}

// Gives back what the box had.
static tr_status take(tr_box *box, tr_tensor_desc desc, unsigned char fill,
                      tr_error *err) {
    box->desc = desc;
    return take_bytes(box, (size_t)tr_tensor_bytes(desc), fill, err);
}

static bool is_intact(const tr_box *box, unsigned char fill) {
    bool intact = true;
    for (size_t i = 1; box->block && i <= box->guard; i++) {
        intact = intact && box->data[-(ptrdiff_t)i] == fill &&
                 box->data[box->bytes + i - 1] == fill;
    }
    return intact;
}

static bool is_real(tr_tensor_desc desc) {
    return desc.dtype == TR_F32 || desc.dtype == TR_F64;
}

static void draw(tr_box *box, uint64_t stream) {
    float x;
    for (int64_t i = 0; i < tr_shape_count(box->desc.shape); i++) {
        tr__fill_uniform(&x, i, 1, -1.5f, 1.5f, SEED, stream);
        tr__box_put(box, i, x);
    }
    box->there = true;
}

// ---- the node

static tr_op_node node_of(const tr_probe *p, tr_tensor_desc in[TR_OP_IN_MAX],
                          tr_tensor_desc out[TR_OP_OUT_MAX]) {
    for (int i = 0; i < TR_OP_IN_MAX; i++) {
        in[i] = p->in[i].desc;
    }
    for (int i = 0; i < TR_OP_OUT_MAX; i++) {
        out[i] = p->out[i].desc;
    }
    return (tr_op_node){.op = p->op,
                        .attr = p->attr,
                        .in_count = p->in_count,
                        .out_count = p->out_count,
                        .in = in,
                        .out = out};
}

static tr_status fill_input(tr_probe *p, int i, const tr_op_check_input *in,
                            tr_error *err) {
    tr_status status = take(&p->in[i], in->desc, p->fill, err);
    if (status == TR_OK && in->values) {
        memcpy(p->in[i].data, in->values, p->in[i].bytes);
        p->in[i].there = true;
    } else if (status == TR_OK && is_real(in->desc)) {
        draw(&p->in[i], STREAM_IN + (uint64_t)i);
    } else if (status == TR_OK) {
        status = tr_fail(err, TR_USAGE,
                         "%s: input %d is of %s, whose values a check "
                         "has to be given",
                         p->op->name, i, tr_dtype_name(in->desc.dtype));
    }
    return status;
}

tr_status tr__probe_open(tr_probe *p, const tr_op_check_input *in, tr_error *err) {
    tr_tensor_desc ins[TR_OP_IN_MAX], outs[TR_OP_OUT_MAX] = {{0}}, none[TR_OP_OUT_MAX];
    tr_status status = TR_OK;
    for (int i = 0; i < p->in_count && status == TR_OK; i++) {
        if (in[i].desc.dtype != TR_NONE) {
            status = fill_input(p, i, &in[i], err);
        }
    }
    tr_op_node node = node_of(p, ins, none);
    if (status == TR_OK) {
        status = p->op->infer(&node, outs, &p->out_count, err);
    }
    for (int i = 0; i < p->out_count && status == TR_OK; i++) {
        status = take(&p->out[i], outs[i], p->fill, err);
    }
    return status;
}

static void give_all(tr_box *boxes, int count) {
    for (int i = 0; i < count; i++) {
        give(&boxes[i]);
    }
}

void tr__probe_close(tr_probe *p) {
    give_all(p->in, TR_OP_IN_MAX);
    give_all(p->out, TR_OP_OUT_MAX);
    give_all(p->grad_in, TR_OP_IN_MAX);
    give_all(p->grad_out, TR_OP_OUT_MAX);
    give_all(p->temp, TR_OP_TEMPS_MAX);
}

// ---- one launch

typedef struct operands {
    const tr_op *op;
    const void *attr;
    int in_count, out_count;
    tr_box *in[TR_OP_IN_MAX], *out[TR_OP_OUT_MAX]; // NULL: absent, not wanted
} operands;

static void describe(const operands *o, tr_op_desc *desc, tr_launch *launch) {
    *desc = (tr_op_desc){.op = o->op,
                         .in_count = o->in_count,
                         .out_count = o->out_count,
                         .target = {.workers = 1, .level = -1}};
    *launch = (tr_launch){.run = &tr__probe_context};
    if (o->op->attr_bytes > 0 && o->attr) {
        memcpy(desc->attr, o->attr, o->op->attr_bytes);
    }
    for (int i = 0; i < o->in_count; i++) {
        if (o->in[i]) {
            desc->in[i] = o->in[i]->desc;
            launch->in[i] = o->in[i]->data;
        }
    }
    for (int i = 0; i < o->out_count; i++) {
        if (o->out[i]) {
            desc->out[i] = o->out[i]->desc;
            launch->out[i] = o->out[i]->data;
            launch->accumulate |= o->out[i]->there ? 1u << i : 0;
        }
    }
    desc->accumulate = launch->accumulate;
    desc->fresh = ~launch->accumulate;
}

static uint64_t inputs_hash(const operands *o) {
    uint64_t hash = 0;
    for (int i = 0; i < o->in_count; i++) {
        hash = o->in[i] ? tr__hash_more(hash, o->in[i]->data, o->in[i]->bytes) : hash;
    }
    return hash;
}

static tr_status look(const operands *o, const tr_box *workspace, uint64_t before,
                      unsigned char fill, tr_error *err) {
    for (int i = 0; i < o->in_count; i++) {
        if (o->in[i] && !is_intact(o->in[i], fill)) {
            return tr_fail(err, TR_DIFFERENT, "%s writes outside of its input %d",
                           o->op->name, i);
        }
    }
    for (int i = 0; i < o->out_count; i++) {
        if (o->out[i] && !is_intact(o->out[i], fill)) {
            return tr_fail(err, TR_DIFFERENT, "%s writes outside of its result %d",
                           o->op->name, i);
        }
    }
    if (!is_intact(workspace, fill)) {
        return tr_fail(err, TR_DIFFERENT, "%s writes outside of its workspace",
                       o->op->name);
    }
    return inputs_hash(o) == before
               ? TR_OK
               : tr_fail(err, TR_DIFFERENT, "%s writes to an input", o->op->name);
}

static tr_status launch_prepared(const operands *o, const tr_op_desc *desc, void *state,
                                 tr_launch *launch, unsigned char fill, tr_error *err) {
    const tr_kernel *kernel = o->op->reference;
    tr_box workspace = {0};
    size_t bytes = kernel->workspace ? kernel->workspace(desc, state) : 0;
    uint64_t before = inputs_hash(o);
    tr_status failed = TR_OK;
    tr_status status = take_bytes(&workspace, bytes, fill, err);
    if (status == TR_OK) {
        launch->workspace = workspace.data;
        launch->failed = &failed;
        kernel->launch(desc, state, launch);
        status = failed == TR_OK ? look(o, &workspace, before, fill, err)
                                 : tr_fail(err, failed, "%s failed", o->op->name);
    }
    give(&workspace);
    return status;
}

static tr_status launch_one(const operands *o, unsigned char fill, tr_error *err) {
    const tr_kernel *kernel = o->op->reference;
    tr_op_desc desc;
    tr_launch launch;
    void *state = NULL;
    describe(o, &desc, &launch);
    if (!kernel || !kernel->supports(&desc)) {
        return tr_fail(err, TR_USAGE, "%s: its reference does not support these inputs",
                       o->op->name);
    }
    tr_status status = kernel->prepare ? kernel->prepare(&desc, &state, err) : TR_OK;
    if (status == TR_OK) {
        status = launch_prepared(o, &desc, state, &launch, fill, err);
    }
    if (kernel->release) {
        kernel->release(state);
    }
    for (int i = 0; i < o->out_count; i++) {
        if (o->out[i]) {
            o->out[i]->there = true;
        }
    }
    return status;
}

static tr_box *if_there(tr_box *box) {
    return box->desc.dtype == TR_NONE ? NULL : box;
}

tr_status tr__probe_forward(tr_probe *p, tr_error *err) {
    operands o = {.op = p->op,
                  .attr = p->attr,
                  .in_count = p->in_count,
                  .out_count = p->out_count};
    for (int i = 0; i < p->in_count; i++) {
        o.in[i] = if_there(&p->in[i]);
    }
    for (int i = 0; i < p->out_count; i++) {
        bool added =
            (i == 0 && p->op->flags & TR_OP_LOSS) || p->op->wave_outputs >> i & 1;
        memset(p->out[i].data, added ? 0 : p->fill, p->out[i].bytes);
        p->out[i].there = added;
        o.out[i] = if_there(&p->out[i]);
    }
    return launch_one(&o, p->fill, err);
}

// ---- rules

static tr_box *resolve(tr_probe *p, tr_ref ref) {
    tr_box *const boxes[] = {[TR_REF_IN] = p->in,
                             [TR_REF_OUT] = p->out,
                             [TR_REF_GRAD_IN] = p->grad_in,
                             [TR_REF_GRAD_OUT] = p->grad_out,
                             [TR_REF_TEMP] = p->temp};
    return ref.kind == TR_REF_NONE ? NULL : if_there(&boxes[ref.kind][ref.index]);
}

static int rules_of(const tr_probe *p, tr_rule rules[TR_OP_RULES_MAX]) {
    tr_tensor_desc in[TR_OP_IN_MAX], out[TR_OP_OUT_MAX];
    tr_op_node node = node_of(p, in, out);
    memset(rules, 0, TR_OP_RULES_MAX * sizeof *rules);
    return p->op->backward ? p->op->backward(&node, rules) : 0;
}

tr_status tr__probe_rules(const tr_probe *p, uint32_t *written, uint32_t *read,
                          tr_error *err) {
    tr_rule rules[TR_OP_RULES_MAX];
    int count = rules_of(p, rules);
    *written = *read = 0;
    if (count < 0 || count > TR_OP_RULES_MAX) {
        return tr_fail(err, TR_DIFFERENT, "%s has %d rules", p->op->name, count);
    }
    for (int r = 0; r < count; r++) {
        for (int i = 0; i < TR_OP_OUT_MAX; i++) {
            tr_ref to = rules[r].out[i];
            *written |= to.kind == TR_REF_GRAD_IN ? 1u << to.index : 0;
        }
        for (int i = 0; i < TR_OP_IN_MAX; i++) {
            tr_ref from = rules[r].in[i];
            *read |= from.kind == TR_REF_GRAD_OUT ? 1u << from.index : 0;
        }
    }
    return TR_OK;
}

static void copy_gradient(const tr_box *from, tr_box *to) {
    for (int64_t i = 0; i < tr_shape_count(to->desc.shape); i++) {
        tr__box_put(to, i, (to->there ? tr__box_get(to, i) : 0) + tr__box_get(from, i));
    }
    to->there = true;
}

static tr_status run_rule(tr_probe *p, const tr_rule *rule, tr_error *err) {
    operands o = {.op = rule->op, .attr = rule->attr};
    tr_status status = TR_OK;
    bool wanted = false;
    for (int i = 0; i < TR_OP_OUT_MAX && status == TR_OK; i++) {
        tr_ref to = rule->out[i];
        if (to.kind == TR_REF_TEMP) {
            status = take(&p->temp[to.index], rule->temp[to.index], p->fill, err);
        }
        o.out[i] = resolve(p, to);
        o.out_count = to.kind != TR_REF_NONE ? i + 1 : o.out_count;
        wanted = wanted || o.out[i];
    }
    for (int i = 0; i < TR_OP_IN_MAX; i++) {
        o.in[i] = resolve(p, rule->in[i]);
        o.in_count = rule->in[i].kind != TR_REF_NONE ? i + 1 : o.in_count;
    }
    if (status != TR_OK || !wanted) {
        return status;
    }
    if (!rule->op) {
        copy_gradient(o.in[0], o.out[0]);
        return TR_OK;
    }
    return launch_one(&o, p->fill, err);
}

static tr_status start_gradients(tr_probe *p, bool add, tr_error *err) {
    uint32_t written, read;
    tr_status status = tr__probe_rules(p, &written, &read, err);
    for (int i = 0; i < p->out_count && status == TR_OK; i++) {
        if (read >> i & 1 && is_real(p->out[i].desc)) {
            status = take(&p->grad_out[i], p->out[i].desc, p->fill, err);
            if (status == TR_OK) {
                draw(&p->grad_out[i], STREAM_GRAD + (uint64_t)i);
            }
        }
    }
    for (int i = 0; i < p->in_count && status == TR_OK; i++) {
        if (written >> i & 1 && is_real(p->in[i].desc)) {
            status = take(&p->grad_in[i], p->in[i].desc, p->fill, err);
            p->grad_in[i].there = add;
            for (int64_t k = 0;
                 add && status == TR_OK && k < tr_shape_count(p->in[i].desc.shape);
                 k++) {
                tr__box_put(&p->grad_in[i], k, 1);
            }
        }
    }
    return status;
}

tr_status tr__probe_backward(tr_probe *p, bool add, tr_error *err) {
    tr_rule rules[TR_OP_RULES_MAX];
    int count = rules_of(p, rules);
    tr_status status = start_gradients(p, add, err);
    if (p->op->flags & TR_OP_LOSS) {
        memset(p->out[0].data, 0, p->out[0].bytes);
        p->out[0].there = true;
    }
    for (int r = 0; r < count && status == TR_OK; r++) {
        status = run_rule(p, &rules[r], err);
    }
    return status;
}

// Nodes of a rank's own: what stands for a value where another form of it is needed,
// and sums over ranks.
#include "graph/splitter.h"
#include "ops/nn/all_reduce/all_reduce.h"
#include "ops/nn/bias/bias.h"
#include "ops/nn/token_parts/token_parts.h"

#include <string.h>

tr_value tr__split_value(tr_splitter *s, const tr_call *like, tr_tensor_desc desc) {
    return tr__graph_value(
        s->graph,
        (tr_value_info){.desc = desc, .kind = TR_VALUE_NODE, .segment = like->segment});
}

tr_value tr__split_value_part(tr_splitter *s, const tr_call *like,
                              tr_tensor_desc desc) {
    tr_value value = tr__split_value(s, like, desc);
    if (value != TR_NO_VALUE) {
        tr__split_info(s, value)->part = true;
    }
    return value;
}

// A node in the place of `like`.
static void put(tr_splitter *s, const tr_call *like, const tr_op *op, const void *attr,
                const tr_value in[2], tr_value out) {
    tr_call call = {.op = op,
                    .in_count = in[1] == TR_NO_VALUE ? 1 : 2,
                    .out_count = 1,
                    .in = {in[0], in[1]},
                    .out = {out},
                    .segment = like->segment,
                    .origin = like->origin};
    if (attr) {
        memcpy(call.attr, attr, op->attr_bytes);
    }
    tr__graph_keep_node(s->graph, &call);
}

static void put_tokens(tr_splitter *s, const tr_call *like, const tr_op *op,
                       bool shared, tr_value in, tr_value out) {
    const tr_token_parts_attr attr = {.axes = s->walk->axes,
                                      .shared = shared,
                                      .ranks = s->walk->ranks,
                                      .rank = s->walk->rank};
    put(s, like, op, &attr, (tr_value[2]){in, TR_NO_VALUE}, out);
}

// Is it there already, and of this segment? What passes from segment to segment is
// kept.
static bool is_made(const tr_splitter *s, const tr_call *like, tr_value made) {
    return made != TR_NO_VALUE && tr__split_info(s, made)->segment == like->segment;
}

static tr_tensor_desc part_of(const tr_splitter *s, tr_tensor_desc whole) {
    whole.shape.dim[1] /= s->walk->ranks;
    return whole;
}

tr_value tr__split_part(tr_splitter *s, const tr_call *like, tr_value value) {
    if (!is_made(s, like, s->part[value])) {
        tr_tensor_desc desc = part_of(s, tr__split_info(s, value)->desc);
        s->part[value] = tr__split_value_part(s, like, desc);
        put_tokens(s, like, &tr__op_own_part, false, value, s->part[value]);
    }
    return s->part[value];
}

tr_value tr__split_all(tr_splitter *s, const tr_call *like, tr_value value,
                       bool shared) {
    tr_value *made = shared ? &s->shared[value] : &s->whole[value];
    bool cut = s->cut_tokens[value];
    if (!cut && !shared) {
        return value;
    }
    if (!is_made(s, like, *made)) {
        *made = tr__split_value(s, like, tr__split_info(s, value)->desc);
        if (cut) {
            put_tokens(s, like, &tr__op_all_gather, shared, value, *made);
        } else {
            const tr_all_reduce_attr attr = {.axes = s->walk->axes};
            put(s, like, &tr__op_all_reduce_gradient, &attr,
                (tr_value[2]){value, TR_NO_VALUE}, *made);
        }
    }
    return *made;
}

void tr__split_sum(tr_splitter *s, const tr_call *like, tr_value from, tr_value to) {
    const tr_all_reduce_attr attr = {.axes = s->walk->axes};
    put(s, like, &tr__op_all_reduce, &attr, (tr_value[2]){from, TR_NO_VALUE}, to);
}

void tr__split_sum_tokens(tr_splitter *s, const tr_call *like, tr_value from,
                          tr_value to) {
    tr_value sum = tr__split_value(s, like, tr__split_info(s, from)->desc);
    put_tokens(s, like, &tr__op_reduce_scatter, false, from, sum);
    put_tokens(s, like, &tr__op_own_part, false, sum, to);
}

tr_value tr__split_columns(tr_splitter *s, const tr_call *like, tr_value value,
                           const tr_columns_attr *columns) {
    tr_tensor_desc desc = tr__split_info(s, value)->desc;
    desc.shape.dim[desc.shape.rank - 1] = columns->count;
    tr_value made = tr__split_value_part(s, like, desc);
    put(s, like, &tr__op_take_columns, columns, (tr_value[2]){value, TR_NO_VALUE},
        made);
    return made;
}

void tr__split_bias(tr_splitter *s, const tr_call *like, tr_value x, tr_value bias,
                    tr_value y) {
    put(s, like, &tr__op_bias, NULL, (tr_value[2]){x, bias}, y);
}

// Nodes of a rank's own: what stands for a value where another form of it is needed,
// and sums over ranks.
#include "graph/splitter.h"
#include "ops/nn/all_reduce/all_reduce.h"
#include "ops/nn/bias/bias.h"
#include "ops/nn/token_parts/token_parts.h"

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
static void put_tokens(tr_splitter *s, const tr_call *like, const tr_op *op,
                       bool shared, tr_value in, tr_value out) {
    const tr_token_parts_attr attr = {.axes = s->walk->axes,
                                      .shared = shared,
                                      .ranks = s->walk->ranks,
                                      .rank = s->walk->rank};
    tr__graph_put_node(s->graph, like, op, &attr, &in, 1, out);
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
            tr__graph_put_node(s->graph, like, &tr__op_all_reduce_gradient, &attr,
                               &value, 1, *made);
        }
    }
    return *made;
}

void tr__split_sum(tr_splitter *s, const tr_call *like, tr_value from, tr_value to) {
    const tr_all_reduce_attr attr = {.axes = s->walk->axes};
    tr__graph_put_node(s->graph, like, &tr__op_all_reduce, &attr, &from, 1, to);
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
    tr__graph_put_node(s->graph, like, &tr__op_take_columns, columns, &value, 1, made);
    return made;
}

void tr__split_bias(tr_splitter *s, const tr_call *like, tr_value x, tr_value bias,
                    tr_value y) {
    tr__graph_put_node(s->graph, like, &tr__op_bias, NULL, (tr_value[2]){x, bias}, 2,
                       y);
}

// Parameters of which this rank has a part; those that are stacked and of which more
// ranks have some alike than others are written apart.
#include "graph/splitter.h"

#include "ops/operand.h"

#include <string.h>

// The dimension of the parameter, of which the family says the blocks, or one, where it
// is stacked.
static tr_division division_of(const tr_param_info *param, int dim, const tr_family *f,
                               bool stacked) {
    tr_division is = {.blocks = 1, .block = {param->shape.dim[dim]}, .inner = 1};
    for (int d = dim + 1; d < param->shape.rank; d++) {
        is.inner *= param->shape.dim[d];
    }
    if (!stacked && f && f->blocks > 0) {
        is.blocks = f->blocks;
        memcpy(is.block, f->block, sizeof is.block);
    }
    return is;
}

// repeats: how many ranks have the same part.
static void cut_param(tr_splitter *s, tr_param_info *param, int dim,
                      const tr_division *is, int64_t repeats) {
    int64_t parts = s->walk->ranks / repeats, part = s->walk->rank / repeats;
    int64_t times = tr_shape_count(param->shape) / tr__division_all(is);
    param->split = true;
    param->repeats = repeats;
    param->whole_shape = param->shape;
    param->cut = *is;
    param->lies = tr__division_lies(is, parts, part);
    param->room = times * tr__division_part(is, parts, 0);
    param->shape.dim[dim] = tr__division_part(is, parts, part) / is->inner;
}

// One lies right behind the other: the last has the room that others leave. Behind
// unequal parts lies an element more: so all ranks have something to clear there, and
// their plans the same steps. Returns what their value has along the dimension.
static int64_t make_room(tr_splitter *s, size_t first, size_t end, int dim) {
    int64_t elements = 0, room = 0;
    bool uneven = false;
    for (size_t p = first; p < end; p++) {
        tr_param_info *param = &s->graph->params[p];
        int64_t own = tr_shape_count(param->shape);
        elements += param->shape.dim[dim];
        room += param->room - own;
        uneven = uneven || param->room * (s->walk->ranks / param->repeats) !=
                               tr_shape_count(param->whole_shape);
        param->room = own + (p + 1 == end ? room + uneven : 0);
    }
    return elements;
}

// The value of those from `first` on, which others lie in front of.
static tr_value add_value(tr_splitter *s, tr_value of, size_t first) {
    tr_value_info info = *tr__split_info(s, of);
    tr_param_info *param = &s->graph->params[first];
    info.index = (int)first;
    param->stacked = false;
    param->value = tr__graph_value(s->graph, info);
    return param->value;
}

void tr__split_params(tr_splitter *s, tr_value value, int dim, const tr_family *f) {
    size_t first, end, next;
    tr__split_stack(s, value, &first, &end);
    bool stacked = end - first > 1;
    for (size_t p = first; p < end; p++) {
        tr_param_info *param = &s->graph->params[p];
        const tr_division is = division_of(param, dim, f, stacked);
        cut_param(s, param, dim, &is, tr__split_repeat(f, (int)(p - first)));
    }
    for (size_t p = first; p < end && value != TR_NO_VALUE; p = next) {
        for (next = p + 1; next < end && s->graph->params[next].repeats ==
                                             s->graph->params[p].repeats;) {
            next++;
        }
        value = p == first ? value : add_value(s, value, p);
        if (value != TR_NO_VALUE) {
            tr__split_info(s, value)->desc.shape.dim[dim] = make_room(s, p, next, dim);
        }
    }
}

// ---- apart

bool tr__split_mixed(const tr_splitter *s, const tr_call *node, const tr_split *way) {
    bool stacked = false;
    for (int i = 0; i < node->in_count; i++) {
        size_t first, end;
        if (node->in[i] != TR_NO_VALUE && way->in[i].dim >= 0 &&
            tr__split_is_param(s, node->in[i]) && way->taken == 0) {
            tr__split_stack(s, node->in[i], &first, &end);
            stacked = stacked || end - first > 1;
        }
    }
    int f = stacked && node->out[0] != TR_NO_VALUE ? s->family_of[node->out[0]] : -1;
    return f >= 0 && s->families[f].blocks > 0 &&
           tr__split_alike_end(&s->families[f], 0) < s->families[f].blocks;
}

tr_value tr__split_taken(const tr_splitter *s, tr_value value, const tr_split *way) {
    const tr_param_info *param = &s->graph->params[tr__split_info(s, value)->index];
    int dim = way->in[way->taken - 1].dim;
    for (int64_t at = 0; at < way->range[0].first; param++) {
        at += param->whole_shape.dim[dim];
    }
    while (param->value == TR_NO_VALUE) {
        param--; // it lies behind this one
    }
    return param->value;
}

// The node's operands of the blocks [b, end): its parameters, and columns of what is
// cut as its result is, from `first` on.
static void take_operands(tr_splitter *s, tr_call *node, const tr_call *old, int b,
                          const tr_columns_attr *columns) {
    for (int i = 0; i < node->in_count; i++) {
        tr_value value = old->in[i];
        if (value != TR_NO_VALUE && tr__split_is_param(s, value)) {
            const tr_param_info *first =
                &s->graph->params[tr__split_info(s, value)->index];
            node->in[i] = first->split ? first[b].value : node->in[i];
        } else if (value != TR_NO_VALUE && s->family_of[value] >= 0) {
            node->in[i] = tr__split_columns(s, old, value, columns);
        }
    }
}

void tr__split_write_apart(tr_splitter *s, const tr_call *old, const tr_call *node) {
    const tr_family *f = &s->families[s->family_of[node->out[0]]];
    int dim = s->dim_of[node->out[0]];
    tr_columns_attr columns = {.scale = 1};
    tr_call join = {.op = &tr__op_join_columns,
                    .out_count = 1,
                    .out = {node->out[0]},
                    .segment = node->segment,
                    .origin = node->origin};
    for (int b = 0, end; b < f->blocks; b = end) {
        tr_call part = *node;
        tr_tensor_desc desc = tr__split_info(s, node->out[0])->desc;
        end = tr__split_alike_end(f, b);
        desc.shape.dim[dim] = 0;
        for (int k = b; k < end; k++) {
            int64_t first;
            desc.shape.dim[dim] += tr__split_own(s, f, k, f->block[k], &first);
        }
        columns.first += columns.count;
        columns.count = (int32_t)desc.shape.dim[dim];
        take_operands(s, &part, old, b, &columns);
        part.out[0] = tr__split_value_part(s, node, desc);
        tr__graph_keep_node(s->graph, &part);
        join.in[join.in_count++] = part.out[0];
    }
    tr__graph_keep_node(s->graph, &join);
}

#include "plan/flow/choices.h"

#include "base/checked.h"
#include "base/memory.h"
#include "plan/units/compiler.h"

#include <string.h>

// One unit while a choice is looked at: the derivation's own steps, but for the bytes
// and the work alone.
typedef struct look {
    tr_compiler compiler;
    tr_compile_request request;
    const tr_graph *graph;
    const tr_derivation *derived;
    bool *dropped, *kept, *made; // [forward values]
    bool *needed;                // [nodes]
    tr_recompute_choice *out;
} look;

bool tr__unit_recomputes(const tr_plan *plan, int unit) {
    return unit < plan->unit_count - 1 && plan->units[unit].program->segments == 1;
}

uint32_t tr__unit_classes(const tr_plan *plan, int unit) {
    const tr_unit_program *program = plan->units[unit].program;
    uint32_t classes = 0;
    for (size_t v = 0; v < program->derived.forward_values; v++) {
        classes |= tr__recompute_classes(program->graph, (tr_value)v);
    }
    return classes;
}

static bool is_of_micro_batch(const look *l, tr_value value) {
    if (value == TR_NO_VALUE || (size_t)value >= l->derived->forward_values) {
        return false;
    }
    const tr_value_info *info = &l->graph->values[value];
    return info->kind == TR_VALUE_NODE && !info->wave && !info->sums &&
           !tr__graph_hands_on(l->graph, value);
}

static void add_cost(look *l, const tr_call *call, int sign) {
    tr_cost cost = tr__call_cost(&l->compiler, call);
    l->out->flops += sign * cost.flops;
    l->out->traffic += sign * (cost.bytes + cost.prepare);
}

// As the backward asks for it: kept, or recomputed after what it is made from.
static void need(look *l, tr_value value) {
    tr_call call;
    if (!is_of_micro_batch(l, value) || l->kept[value] || l->made[value]) {
        return;
    }
    if (!l->dropped[value]) {
        l->kept[value] = true;
        return;
    }
    tr__recompute_call(l->graph, l->dropped, value, &call);
    for (int i = 0; i < call.in_count; i++) {
        need(l, call.in[i]);
    }
    for (int i = 0; i < call.out_count; i++) {
        if (call.out[i] != TR_NO_VALUE) {
            l->made[call.out[i]] = true;
        }
    }
    add_cost(l, &call, 1);
}

static void need_node(look *l, int index, int sign) {
    if (l->needed[index]) {
        return;
    }
    const tr_call *node = &l->graph->nodes[index];
    l->needed[index] = true;
    add_cost(l, node, sign);
    for (int i = 0; i < node->in_count; i++) {
        const tr_value_info *info =
            node->in[i] == TR_NO_VALUE ? NULL : &l->graph->values[node->in[i]];
        if (info && info->kind == TR_VALUE_NODE && !info->wave) {
            need_node(l, info->node, sign);
        }
    }
}

// Adds what it costs to run the nodes that lead to `kept` (NULL: nothing is) and, with
// `forward`, to what the unit hands on; or takes it off.
static void run_nodes(look *l, const bool *kept, bool forward, int sign) {
    memset(l->needed, 0, l->graph->node_count * sizeof *l->needed);
    for (size_t v = 0; v < l->derived->forward_values; v++) {
        const tr_value_info *info = &l->graph->values[v];
        bool handed_on = info->kind == TR_VALUE_NODE &&
                         (info->wave || tr__graph_hands_on(l->graph, (tr_value)v));
        if ((forward && handed_on) ||
            (kept && kept[v] && is_of_micro_batch(l, (tr_value)v))) {
            need_node(l, info->node, sign);
        }
    }
}

// A forward also does less where what nobody keeps leads nowhere else.
static void look_at(look *l, bool whole) {
    size_t values = l->derived->forward_values;
    for (size_t v = 0; v < values; v++) {
        if (l->derived->read[v]) {
            need(l, (tr_value)v);
        }
    }
    run_nodes(l, l->derived->read, true, -1); // as it would be with everything kept
    run_nodes(l, whole ? NULL : l->kept, true, 1);
    if (whole) {
        run_nodes(l, l->kept, false, 1);
    }
    for (size_t v = 0; v < values && !whole; v++) {
        int64_t bytes = l->kept[v] ? tr__value_bytes(&l->compiler, (tr_value)v) : 0;
        l->out->kept += tr__round_up(bytes, TR_ALIGNMENT);
    }
}

tr_status tr__unit_choice(const tr_plan *plan, int unit, uint32_t ops, bool units,
                          tr_recompute_choice *out, tr_error *err) {
    const tr_plan_request *r = &plan->request;
    tr_unit_program *program = plan->units[unit].program;
    bool whole = units && tr__unit_recomputes(plan, unit);
    look l = {.graph = program->graph, .derived = &program->derived, .out = out};
    size_t values = l.derived->forward_values;
    l.request = (tr_compile_request){
        .micro_batch = r->micro_batch, .target = plan->target, .plan = r};
    l.compiler = (tr_compiler){.request = &l.request,
                               .unit = program,
                               .graph = program->graph,
                               .batch = &plan->batch,
                               .err = err};
    l.dropped = tr__calloc(values, sizeof *l.dropped);
    l.kept = tr__calloc(values, sizeof *l.kept);
    l.made = tr__calloc(values, sizeof *l.made);
    l.needed = tr__calloc(l.graph->node_count, sizeof *l.needed);
    *out = (tr_recompute_choice){.ops = ops, .units = units};
    bool good =
        l.dropped && l.kept && l.made && l.needed &&
        tr__recompute_choose(l.graph, values, l.derived->read,
                             whole ? ops & TR_RECOMPUTE_DEFAULT : ops, l.dropped);
    if (good) {
        look_at(&l, whole);
    }
    tr__free(l.dropped);
    tr__free(l.kept);
    tr__free(l.made);
    tr__free(l.needed);
    return good ? TR_OK : tr_fail(err, TR_MEMORY, "no memory to weigh recomputation");
}

// ---- rows of choices

// Units [first, end), those of one program weighed once.
typedef struct range {
    const tr_plan *plan;
    int first, end;
} range;

static int users(const range *r, const tr_unit_program *program) {
    int count = 0;
    for (int u = tr__plan_next(r->plan, r->first); u < r->end;
         u = tr__plan_next(r->plan, u + 1)) {
        count += r->plan->units[u].program == program;
    }
    return count;
}

static bool is_first_user(const range *r, int unit) {
    for (int u = tr__plan_next(r->plan, r->first); u < unit;
         u = tr__plan_next(r->plan, u + 1)) {
        if (r->plan->units[u].program == r->plan->units[unit].program) {
            return false;
        }
    }
    return true;
}

static tr_status weigh(const range *r, uint32_t ops, bool units,
                       tr_recompute_choice *out, tr_error *err) {
    tr_status status = TR_OK;
    *out =
        (tr_recompute_choice){.ops = ops ? ops : TR_RECOMPUTE_NOTHING, .units = units};
    for (int u = tr__plan_next(r->plan, r->first); u < r->end && status == TR_OK;
         u = tr__plan_next(r->plan, u + 1)) {
        tr_recompute_choice one;
        if (!is_first_user(r, u)) {
            continue;
        }
        int times = users(r, r->plan->units[u].program);
        status = tr__unit_choice(r->plan, u, ops, units, &one, err);
        out->kept += times * one.kept;
        out->flops += times * one.flops;
        out->traffic += times * one.traffic;
    }
    return status;
}

// Does `a`, seen from `from`, save more bytes per flop than `b`?
static bool is_better(const tr_recompute_choice *from, const tr_recompute_choice *a,
                      const tr_recompute_choice *b) {
    double bytes_a = (double)(from->kept - a->kept), flops_a = a->flops - from->flops;
    double bytes_b = (double)(from->kept - b->kept), flops_b = b->flops - from->flops;
    return bytes_a * flops_b > bytes_b * flops_a;
}

// The class that is to be added next; `found`: one saves bytes.
static tr_status add_class(const range *r, const tr_recompute_choice *from,
                           tr_recompute_choice *best, bool *found, tr_error *err) {
    uint32_t have = from->ops & TR_RECOMPUTE_ALL;
    tr_status status = TR_OK;
    *found = false;
    for (uint32_t bit = 1; bit & TR_RECOMPUTE_ALL && status == TR_OK; bit <<= 1) {
        tr_recompute_choice next;
        if (have & bit) {
            continue;
        }
        status = weigh(r, have | bit, false, &next, err);
        if (status == TR_OK && next.kept < from->kept &&
            (!*found || is_better(from, &next, best))) {
            *best = next;
            *found = true;
        }
    }
    return status;
}

static bool any_recomputes(const range *r) {
    for (int u = tr__plan_next(r->plan, r->first); u < r->end;
         u = tr__plan_next(r->plan, u + 1)) {
        if (tr__unit_recomputes(r->plan, u)) {
            return true;
        }
    }
    return false;
}

static tr_status choose(const range *r, tr_recompute_choice *out, int *count,
                        tr_error *err) {
    tr_recompute_choice whole;
    bool found = true;
    *count = 1;
    tr_status status = weigh(r, 0, false, &out[0], err);
    while (status == TR_OK && found && *count < TR_RECOMPUTE_CHOICES_MAX - 1) {
        status = add_class(r, &out[*count - 1], &out[*count], &found, err);
        *count += status == TR_OK && found;
    }
    if (status == TR_OK) {
        status = weigh(r, TR_RECOMPUTE_DEFAULT, true, &whole, err);
    }
    if (status == TR_OK && any_recomputes(r) && whole.kept < out[0].kept) {
        out[(*count)++] = whole;
    }
    return status;
}

tr_status tr__unit_choices(const tr_plan *plan, int unit,
                           tr_recompute_choice out[TR_RECOMPUTE_CHOICES_MAX],
                           int *count, tr_error *err) {
    return choose(&(range){plan, unit, unit + 1}, out, count, err);
}

tr_status tr_plan_recompute_choices(const tr_plan *plan,
                                    tr_recompute_choice out[TR_RECOMPUTE_CHOICES_MAX],
                                    int *count, tr_error *err) {
    if (plan->request.inference) {
        return tr_fail(err, TR_USAGE, "a plan without a backward recomputes nothing");
    }
    return choose(&(range){plan, 0, plan->unit_count}, out, count, err);
}

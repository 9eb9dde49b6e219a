#include "plan/proof/gradients.h"

#include "base/checked.h"
#include "plan/units/offsets.h"

static const tr_meaning zeros = {.kind = TR_MEANS_ZEROS};

// ---- scopes

static const tr_maker *maker_of(const tr_proof *p, size_t param, size_t i) {
    const tr_proof_tables *t = &p->tables;
    return &t->makers[t->made_by[t->of_param[param] + i]];
}

static size_t makers_of(const tr_proof *p, size_t param) {
    return p->tables.of_param[param + 1] - p->tables.of_param[param];
}

// User `at` of a slice, counted from the last unit, whose backward comes first; -1.
static int32_t user_of(const tr_proof *p, size_t param, int64_t at) {
    int32_t last = -1;
    for (size_t i = makers_of(p, param); i-- > 0;) {
        int32_t unit = maker_of(p, param, i)->unit;
        at -= unit != last;
        last = unit;
        if (at < 0) {
            return unit;
        }
    }
    return -1;
}

static int64_t users_of(const tr_proof *p, size_t param) {
    int64_t count = 0;
    while (user_of(p, param, count) >= 0) {
        count++;
    }
    return count;
}

// How many scopes a step has.
int64_t tr__scopes_of(const tr_proof *p, int32_t flat) {
    const tr_plan_request *r = &p->plan->request;
    const tr_flat *f = &p->plan->flats[flat];
    int64_t waves = tr__ceil_div(r->accumulation_steps, r->wave);
    if (!tr__flat_grads_pass(p->plan, flat)) {
        return 1;
    }
    return waves *
           (tr__flat_leaves_by_use(p->plan, flat) ? users_of(p, f->first_param) : 1);
}

tr_scope tr__scope_find(const tr_proof *p, int32_t flat, int64_t at) {
    const tr_plan_request *r = &p->plan->request;
    const tr_flat *f = &p->plan->flats[flat];
    int64_t all = r->accumulation_steps;
    if (!tr__flat_grads_pass(p->plan, flat)) {
        return (tr_scope){0, all, -1};
    }
    bool by_use = tr__flat_leaves_by_use(p->plan, flat);
    int64_t users = by_use ? tr__max_i64(users_of(p, f->first_param), 1) : 1;
    int64_t first = at / users * r->wave;
    return (tr_scope){first, tr__min_i64(first + r->wave, all),
                      by_use ? user_of(p, f->first_param, at % users) : -1};
}

tr_meaning tr__gradient_sum(const tr_proof *p, size_t param, tr_scope in,
                            int64_t base) {
    tr_meaning sum = {.kind = TR_MEANS_SUM,
                      .of = (int32_t)param,
                      .version = p->version,
                      .index = in.end - 1,
                      .base = base};
    for (size_t i = 0; i < makers_of(p, param); i++) {
        const tr_maker *maker = maker_of(p, param, i);
        for (int64_t j = in.first; j < in.end; j++) {
            if (in.unit < 0 || in.unit == maker->unit) {
                sum.sum += tr__contribution(maker->unit, maker->segment, j);
                sum.terms++;
            }
        }
    }
    return sum;
}

// ---- elements of a flat buffer: those of parameters, and gaps between them

tr_element_runs tr__runs_in(const tr_proof *p, int32_t flat, int64_t first,
                            int64_t count) {
    return (tr_element_runs){p->plan, flat, first, first + count,
                             p->plan->flats[flat].first_param};
}

bool tr__runs_next(tr_element_runs *r, tr_element_run *out) {
    const tr_flat *flat = &r->plan->flats[r->flat];
    if (r->next >= r->end) {
        return false;
    }
    for (; r->param < flat->end_param; r->param++) { // by offset
        const tr_plan_param *param = &r->plan->params[r->param];
        if (param->flat != r->flat || param->offset + param->count <= r->next) {
            continue;
        }
        bool gap = param->offset > r->next;
        int64_t end = gap ? param->offset : param->offset + param->count;
        end = tr__min_i64(end, r->end);
        *out = (tr_element_run){r->next, end - r->next, gap ? -1 : (int64_t)r->param};
        r->next = end;
        return true;
    }
    *out = (tr_element_run){r->next, r->end - r->next, -1};
    r->next = r->end;
    return true;
}

tr_bytes tr__run_bytes(const tr_kept *kept, const tr_element_run *at) {
    int64_t first = kept->base + tr__packed_bytes(kept->element, at->first);
    return (tr_bytes){kept->buffer, first,
                      first + tr__packed_bytes(kept->element, at->count)};
}

// ---- gradients, wherever they lie

// Complete in the scope, on this rank alone.
void tr__gradient_own(tr_proof *p, int32_t flat, const tr_kept *kept, int64_t first,
                      int64_t count, tr_scope in) {
    tr_element_runs all = tr__runs_in(p, flat, first, count);
    tr_element_run at;
    while (p->status == TR_OK && tr__runs_next(&all, &at)) {
        tr_meaning want = at.param < 0
                              ? zeros
                              : tr__gradient_sum(p, (size_t)at.param, in, kept->base);
        tr__bytes_read(p, tr__run_bytes(kept, &at), &want);
    }
}

// The scope whose gradient is there. Stages take waves that overlap, so of what leaves
// by use another wave's may come first. (No scope comes twice: each backward adds to it
// once.) *scope: the one that is due, and stays so where there is no other.
static void find_scope(tr_proof *p, int32_t flat, const tr_kept *kept,
                       tr_scope *scope) {
    const tr_flat *f = &p->plan->flats[flat];
    const tr_plan_param *param = &p->plan->params[f->first_param];
    tr_element_run all = {param->offset, param->count, (int64_t)f->first_param};
    tr_meaning found;
    tr__bytes_look(p, tr__run_bytes(kept, &all), &found);
    int64_t users = tr__max_i64(users_of(p, f->first_param), 1);
    int64_t first = found.index / p->plan->request.wave * users; // of its wave's scopes
    for (int64_t k = first; k >= 0 && k < first + users; k++) {
        tr_scope other = tr__scope_find(p, flat, k);
        tr_meaning sum = tr__gradient_sum(p, f->first_param, other, kept->base);
        if (sum.sum == found.sum && sum.terms == found.terms) {
            *scope = other;
        }
    }
}

void tr__gradient_scoped(tr_proof *p, int32_t flat, const tr_kept *kept, int64_t first,
                         int64_t count, int64_t at) {
    tr_scope scope = tr__scope_find(p, flat, at);
    bool overlap = p->plan->chunks.stages > 1 && count > 0;
    if (overlap && tr__flat_leaves_by_use(p->plan, flat)) {
        find_scope(p, flat, kept, &scope);
    }
    tr__gradient_own(p, flat, kept, first, count, scope);
}

void tr__gradient_as(tr_proof *p, int32_t flat, const tr_kept *kept, int64_t first,
                     int64_t count, const tr_meaning *means) {
    tr_element_runs all = tr__runs_in(p, flat, first, count);
    tr_element_run at;
    while (p->status == TR_OK && tr__runs_next(&all, &at)) {
        tr__bytes_read(p, tr__run_bytes(kept, &at), at.param < 0 ? &zeros : means);
    }
}

// before: NULL: what was there does not count.
void tr__gradient_leave(tr_proof *p, int32_t flat, const tr_kept *kept, int64_t first,
                        int64_t count, const tr_meaning *before,
                        const tr_meaning *means) {
    tr_element_runs all = tr__runs_in(p, flat, first, count);
    tr_element_run at;
    while (p->status == TR_OK && tr__runs_next(&all, &at)) {
        tr_bytes bytes = tr__run_bytes(kept, &at);
        const tr_meaning *leave = at.param < 0 ? &zeros : means;
        if (before) {
            tr__bytes_change(p, bytes, at.param < 0 ? &zeros : before, leave);
        } else {
            tr__bytes_write(p, bytes, leave);
        }
    }
}

tr_meaning tr__gradient_total(const tr_proof *p, int32_t flat, int64_t scopes,
                              int64_t base) {
    return (tr_meaning){.kind = TR_MEANS_TOTAL,
                        .of = flat,
                        .version = p->version,
                        .index = scopes,
                        .base = base};
}

// ---- gradients of which several ranks make a part each

static bool uses(const tr_proof *p, int u, int32_t flat) {
    const tr_plan_unit *unit = &p->plan->units[u];
    int k = 0;
    while (k < unit->program->flat_count && unit->flats[k] != flat) {
        k++;
    }
    return k < unit->program->flat_count;
}

// Stage number `at` of those that use it, in the order of their first users; -1.
static int64_t stage_with(const tr_proof *p, int32_t flat, int64_t at) {
    for (int u = 0; u < p->plan->unit_count; u++) {
        int64_t stage = tr__plan_stage_of(p->plan, u);
        bool first = uses(p, u, flat);
        for (int before = 0; before < u && first; before++) {
            first =
                tr__plan_stage_of(p->plan, before) != stage || !uses(p, before, flat);
        }
        at -= first;
        if (at < 0) {
            return stage;
        }
    }
    return -1;
}

int64_t tr__gradient_stages(const tr_proof *p, int32_t flat) {
    int64_t count = 0;
    while (stage_with(p, flat, count) >= 0) {
        count++;
    }
    return count;
}

int64_t tr__gradient_parts(const tr_proof *p, int32_t flat) {
    tr_axes summed = p->plan->flats[flat].axes.summed;
    return summed == TR_ON_PIPELINE ? tr__gradient_stages(p, flat)
                                    : tr__mesh_members(&p->plan->request.mesh, summed);
}

tr_gradient_hop tr__gradient_hop(const tr_proof *p, int32_t flat) {
    int64_t to = p->step->payload.exchange.to;
    tr_gradient_hop hop = {.number = 1, .last = tr__gradient_stages(p, flat) - 1};
    while (hop.number < hop.last && stage_with(p, flat, hop.number) != to) {
        hop.number++;
    }
    hop.from = stage_with(p, flat, hop.number - 1);
    hop.to = stage_with(p, flat, hop.number);
    hop.upper = p->plan->request.mesh.at[TR_AXIS_PIPELINE] == hop.to;
    return hop;
}

tr_meaning tr__gradient_tied(const tr_proof *p, int32_t flat, int64_t base,
                             int64_t parts, bool whole) {
    tr_meaning total = tr__gradient_total(p, flat, tr__scopes_of(p, flat), base);
    total.terms = (int32_t)(2 * parts + whole);
    return total;
}

void tr__gradient_read(tr_proof *p, int32_t flat, const tr_kept *kept, int64_t first,
                       int64_t count, int32_t version) {
    if (p->plan->flats[flat].axes.summed == 0) {
        tr__gradient_of_stage(p, flat, kept, first, count, version);
        return;
    }
    int64_t parts = tr__gradient_parts(p, flat);
    tr_meaning tied = tr__gradient_tied(p, flat, kept->base, parts, true);
    tied.version = version;
    tr__gradient_as(p, flat, kept, first, count, &tied);
}

// With one rank, what has not been handed on is complete where it was made.
void tr__gradient_of_stage(tr_proof *p, int32_t flat, const tr_kept *kept,
                           int64_t first, int64_t count, int32_t version) {
    const tr_flat *f = &p->plan->flats[flat];
    bool own = tr__data_ranks(&p->plan->request) == 1 && !f->offloaded;
    tr_meaning total = tr__gradient_total(p, flat, tr__scopes_of(p, flat), kept->base);
    total.version = version;
    bool stays = tr__plan_stage(p->plan) == 0 && tr__data_ranks(&p->plan->request) > 1;
    if (stays && version == p->version && p->walked.brought[flat] == 0 && count > 0) {
        tr__proof_wrong(p, "needs the gradient of %s of all ranks", f->name);
    } else if (own) {
        tr__gradient_own(p, flat, kept, first, count, tr__scope_find(p, flat, 0));
    } else {
        tr__gradient_as(p, flat, kept, first, count, &total);
    }
}

// What a step names for a gradient that passes, of elements [first, first + count).
tr_kept tr__gradient_passing(tr_proof *p, tr_operand_role role, int64_t first,
                             int64_t count, int64_t room, int64_t element) {
    tr_bytes bytes = tr__role_bytes(p, role, tr__round_up(room * element, TR_ALIGNMENT),
                                    TR_SPACE_DEVICE);
    return (tr_kept){bytes.buffer, first, count, {1, element}, -first * element, {0}};
}

// Does the step write its sums? Else it adds to them.
bool tr__gradient_is_written(const tr_proof *p) {
    bool written = false;
    for (size_t i = 0; i < p->step->payload.operand_count; i++) {
        const tr_step_operand *operand = tr__step_operand(p->plan, p->step, i);
        written = written || (operand->contributes && operand->mode == TR_ACCESS_WRITE);
    }
    return written;
}

bool tr__gradient_is_of_flat(tr_proof *p) {
    return tr__proof_trains_flat(p, "is of the gradient of what is frozen");
}

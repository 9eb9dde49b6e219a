// Rules of the steps that make gradients, measure them, and add them up.
#include "base/checked.h"
#include "plan/proof/gradients.h"

static const tr_meaning zeros = {.kind = TR_MEANS_ZEROS}, nothing;

// ---- made, and added up

// What nobody makes must be zeros, where gradients lie in memory that was another's.
// Who reads them finds out whether these are the right ones.
void tr__rule_clear_gradients(tr_proof *p) {
    for (size_t i = 0; i < p->step->payload.operand_count; i++) {
        const tr_step_operand *at = tr__step_operand(p->plan, p->step, i);
        tr__bytes_change(p, (tr_bytes){at->buffer, at->first, at->end}, &nothing,
                         &zeros);
    }
}

void tr__rule_clear_statistics(tr_proof *p) {
    if (p->stopped) { // nothing is noted for a step that is dropped
        tr__proof_wrong(p, "is done by a rank that was stopped");
    } else if (p->walked.cleared) {
        tr__proof_wrong(p, "is there twice");
    } else {
        p->walked.cleared = true;
        tr__bytes_write(p, tr__statistics_bytes(p, 0, p->plan->statistics.norm),
                        &zeros);
    }
}

// Gradients of a segment of the first micro-batch, where a step measures them.
typedef struct measured {
    int32_t flat, buffer;
    int64_t first, base;  // of the bytes that the step reads; of element 0
    size_t makers, end;   // of the segment
    tr_meaning_kind kind; // of a gradient
} measured;

static measured measured_of(const tr_proof *p) {
    const tr_plan_step *step = p->step;
    const tr_proof_tables *t = &p->tables;
    const tr_step_operand *grads = tr__step_find(p->plan, step, TR_OPERAND_INPUT);
    size_t segment = (size_t)t->segments[step->unit] + (size_t)step->segment;
    bool accumulates = tr__plan_accumulates(p->plan);
    measured m = {.flat = p->plan->units[step->unit].flats[0],
                  .buffer = grads ? grads->buffer : -1,
                  .first = grads ? grads->first : -1,
                  .makers = t->of_segment[segment],
                  .end = t->of_segment[segment + 1],
                  .kind = accumulates ? TR_MEANS_GRADIENT : TR_MEANS_SUM};
    tr_kept kept = tr__kept_sums(p, m.flat);
    m.base = m.buffer == kept.buffer && !accumulates ? kept.base : 0;
    return m;
}

// The gradient that maker `i` makes.
static tr_bytes gradient_of(const tr_proof *p, const measured *m, size_t i) {
    const tr_plan_param *param = &p->plan->params[p->tables.makers[i].param];
    int64_t at = m->base + param->offset * (int64_t)sizeof(float);
    return (tr_bytes){m->buffer, at, at + param->count * (int64_t)sizeof(float)};
}

static bool is_of_own(const tr_proof *p, const measured *m, size_t i) {
    int32_t param = p->tables.makers[i].param;
    return param >= 0 && p->plan->params[param].flat == m->flat;
}

// The piece whose gradients the step measures: that of the first of them; -1: none.
static int32_t find_piece(const tr_proof *p, const measured *m) {
    int32_t piece = -1;
    for (size_t i = m->makers; i < m->end && piece < 0; i++) {
        bool first = is_of_own(p, m, i) && gradient_of(p, m, i).first == m->first;
        piece = first ? p->tables.makers[i].piece : -1;
    }
    return piece;
}

// What the piece makes of the gradient of a parameter, perhaps in several parts.
static tr_meaning made_by(const tr_proof *p, const measured *m, int32_t piece,
                          int32_t param) {
    const tr_plan_step *step = p->step;
    tr_meaning made = {
        .kind = m->kind, .of = param, .version = p->version, .base = m->base};
    for (size_t i = m->makers; i < m->end; i++) {
        const tr_maker *maker = &p->tables.makers[i];
        if (maker->piece == piece && maker->param == param) {
            made.terms++;
            made.sum += tr__contribution(step->unit, step->segment, 0);
        }
    }
    return made;
}

// Right after a piece of the first micro-batch's backward, which alone makes these
// gradients, and before any other micro-batch adds to them.
void tr__rule_micro_norm(tr_proof *p) {
    const tr_plan_step *step = p->step;
    if (!tr__plan_runs(p->plan, step->unit) || step->segment < 0 ||
        step->segment >= p->plan->units[step->unit].program->segments) {
        tr__proof_wrong(p, "is of what the model has not");
        return;
    }
    measured m = measured_of(p);
    int32_t piece = find_piece(p, &m);
    if (piece < 0) {
        tr__proof_wrong(p, "measures no gradient that its unit makes");
        return;
    }
    for (size_t i = m.makers; i < m.end; i++) {
        const tr_maker *maker = &p->tables.makers[i];
        if (maker->piece == piece && is_of_own(p, &m, i)) {
            const tr_meaning first = made_by(p, &m, piece, maker->param);
            tr__bytes_read(p, gradient_of(p, &m, i), &first);
        }
    }
    tr__role_kernels(p);
    tr__statistics_add(p, TR_STATISTICS_SQUARES,
                       tr__contribution(step->unit, step->segment, piece));
}

// One run of a flat buffer: the gradient of one micro-batch, or zeros, is added to the
// sums.
static void fold_run(tr_proof *p, tr_bytes from, tr_bytes to, int64_t param,
                     int64_t base) {
    bool writes = tr__gradient_is_written(p);
    tr_meaning found, sum = zeros, made;
    tr__bytes_look(p, from, &made);
    if (param < 0) {
        tr__bytes_read(p, from, &zeros);
        writes ? tr__bytes_write(p, to, &zeros)
               : tr__bytes_change(p, to, &zeros, &zeros);
        return;
    }
    tr_meaning want = made;
    bool some = made.kind == TR_MEANS_GRADIENT && made.of == param &&
                made.version == p->version && made.index == p->step->micro &&
                made.terms == 1;
    if (!some) {
        want = zeros; // of a parameter of another segment
    }
    tr__bytes_read(p, from, &want);
    tr__bytes_look(p, to, &found);
    bool begun =
        found.kind == TR_MEANS_SUM && found.of == param && found.version == p->version;
    if (begun == writes) {
        tr__proof_wrong(p,
                        writes ? "overwrites the sum of the gradient of %s"
                               : "adds to the sum of the gradient of %s before "
                                 "anything is there",
                        p->plan->params[param].name);
        return;
    }
    sum = begun ? found
                : (tr_meaning){.kind = TR_MEANS_SUM,
                               .of = (int32_t)param,
                               .version = p->version,
                               .base = base};
    sum.terms += some;
    sum.sum += some ? made.sum : 0;
    sum.index = some ? p->step->micro : sum.index;
    if (begun) {
        tr__bytes_change(p, to, &found, &sum);
    } else {
        tr__bytes_write(p, to, &sum);
    }
}

void tr__rule_accumulate(tr_proof *p) {
    if (!tr__gradient_is_of_flat(p)) {
        return;
    }
    const tr_flat *f = &p->plan->flats[p->step->unit];
    tr_kept from =
        tr__gradient_passing(p, TR_OPERAND_INPUT, 0, f->count, f->count, sizeof(float));
    tr_kept to = tr__kept_sums(p, p->step->unit);
    if (tr__role_buffer(p, TR_OPERAND_OUTPUT) >= 0) {
        to = tr__gradient_passing(p, TR_OPERAND_OUTPUT, 0, f->count, f->count,
                                  tr__sum_bytes(p->plan));
    }
    tr_element_runs all = tr__runs_in(p, p->step->unit, 0, f->count);
    tr_element_run at;
    while (p->status == TR_OK && tr__runs_next(&all, &at)) {
        fold_run(p, tr__run_bytes(&from, &at), tr__run_bytes(&to, &at), at.param,
                 to.base);
        tr__bytes_forget(p, tr__run_bytes(&from, &at));
    }
    if (p->plan->request.sums == TR_I64) {
        tr__statistics_note(p, TR_STATISTICS_TOO_LARGE);
        tr__statistics_note(p, TR_STATISTICS_NOT_FINITE);
    }
}

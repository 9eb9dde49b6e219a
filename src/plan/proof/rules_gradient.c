// Rules of the steps that work on gradients: what is made of a parameter by all its
// users on all micro-batches of a scope, handed on, and added up over ranks and scopes.
//
// A scope is what is handed on at once: the step; or, where gradients leave after each
// wave, a wave; of a slice of a tied tensor, one of its users in the wave.
#include "base/checked.h"
#include "ops/gradient_squares/gradient_squares.h"
#include "plan/offsets.h"
#include "plan/proof/proof.h"

static const tr_meaning zeros = {.kind = TR_MEANS_ZEROS}, nothing;

static int64_t blocks_of(int64_t elements) {
    return tr__ceil_div(elements, TR_SHARD_ELEMENTS);
}

// ---- scopes
// ----------------------------------------------------------------------------

typedef struct scope {
    int64_t first, end; // micro-batches
    int32_t unit;       // -1: all users
} scope;

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
static int64_t scopes_of(const tr_proof *p, int32_t flat) {
    const tr_plan_request *r = &p->plan->request;
    const tr_flat *f = &p->plan->flats[flat];
    int64_t waves = tr__ceil_div(r->accumulation_steps, r->wave);
    if (!tr__flat_grads_pass(p->plan, flat)) {
        return 1;
    }
    return waves * (f->slice ? users_of(p, f->first_param) : 1);
}

static scope find_scope(const tr_proof *p, int32_t flat, int64_t at) {
    const tr_plan_request *r = &p->plan->request;
    const tr_flat *f = &p->plan->flats[flat];
    int64_t all = r->accumulation_steps;
    if (!tr__flat_grads_pass(p->plan, flat)) {
        return (scope){0, all, -1};
    }
    int64_t users = f->slice ? tr__max_i64(users_of(p, f->first_param), 1) : 1;
    int64_t first = at / users * r->wave;
    return (scope){first, tr__min_i64(first + r->wave, all),
                   f->slice ? user_of(p, f->first_param, at % users) : -1};
}

// The sum of a parameter's gradient, complete in the scope on this rank.
static tr_meaning sum_in(const tr_proof *p, size_t param, scope in, int64_t base) {
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

typedef struct run {
    int64_t first, count; // elements
    int64_t param;        // -1: a gap
} run;

typedef struct runs {
    const tr_plan *plan;
    int32_t flat;
    int64_t next, end; // elements
    size_t param;
} runs;

static runs runs_in(const tr_proof *p, int32_t flat, int64_t first, int64_t count) {
    return (runs){p->plan, flat, first, first + count,
                  p->plan->flats[flat].first_param};
}

static bool next_run(runs *r, run *out) {
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
        *out = (run){r->next, end - r->next, gap ? -1 : (int64_t)r->param};
        r->next = end;
        return true;
    }
    *out = (run){r->next, r->end - r->next, -1};
    r->next = r->end;
    return true;
}

static tr_bytes run_bytes(const tr_kept *kept, const run *at) {
    int64_t first = kept->base + at->first * kept->element;
    return (tr_bytes){kept->buffer, first, first + at->count * kept->element};
}

// ---- gradients, wherever they lie
// -----------------------------------------------------------

// Complete in the scope, on this rank alone.
static void read_own(tr_proof *p, int32_t flat, const tr_kept *kept, int64_t first,
                     int64_t count, scope in) {
    runs all = runs_in(p, flat, first, count);
    run at;
    while (p->status == TR_OK && next_run(&all, &at)) {
        tr_meaning want =
            at.param < 0 ? zeros : sum_in(p, (size_t)at.param, in, kept->base);
        tr__bytes_read(p, run_bytes(kept, &at), &want);
    }
}

static void read_as(tr_proof *p, int32_t flat, const tr_kept *kept, int64_t first,
                    int64_t count, const tr_meaning *means) {
    runs all = runs_in(p, flat, first, count);
    run at;
    while (p->status == TR_OK && next_run(&all, &at)) {
        tr__bytes_read(p, run_bytes(kept, &at), at.param < 0 ? &zeros : means);
    }
}

// before: NULL: what was there does not count.
static void leave_as(tr_proof *p, int32_t flat, const tr_kept *kept, int64_t first,
                     int64_t count, const tr_meaning *before, const tr_meaning *means) {
    runs all = runs_in(p, flat, first, count);
    run at;
    while (p->status == TR_OK && next_run(&all, &at)) {
        tr_bytes bytes = run_bytes(kept, &at);
        const tr_meaning *leave = at.param < 0 ? &zeros : means;
        if (before) {
            tr__bytes_change(p, bytes, at.param < 0 ? &zeros : before, leave);
        } else {
            tr__bytes_write(p, bytes, leave);
        }
    }
}

static tr_meaning total_of(const tr_proof *p, int32_t flat, int64_t scopes,
                           int64_t base) {
    return (tr_meaning){.kind = TR_MEANS_TOTAL,
                        .of = flat,
                        .version = p->version,
                        .index = scopes,
                        .base = base};
}

// With one rank, what has not been handed on is complete where it was made.
void tr__gradient_read(tr_proof *p, int32_t flat, const tr_kept *kept, int64_t first,
                       int64_t count, int32_t version) {
    const tr_flat *f = &p->plan->flats[flat];
    bool own = p->plan->request.ranks == 1 && !f->leaves;
    tr_meaning total = total_of(p, flat, scopes_of(p, flat), kept->base);
    total.version = version;
    bool stays = tr__plan_stage(p->plan) == 0 && p->plan->request.ranks > 1;
    if (stays && version == p->version && p->walked.brought[flat] == 0 && count > 0) {
        tr__proof_wrong(p, "needs the gradient of %s of all ranks", f->name);
    } else if (own) {
        read_own(p, flat, kept, first, count, find_scope(p, flat, 0));
    } else {
        read_as(p, flat, kept, first, count, &total);
    }
}

// What a step names for a gradient that passes, of elements [first, first + count).
static tr_kept passing(tr_proof *p, tr_slot slot, int64_t first, int64_t count,
                       int64_t room, int64_t element) {
    tr_bytes bytes = tr__slot_bytes(p, slot, tr__round_up(room * element, TR_ALIGNMENT),
                                    TR_SPACE_DEVICE);
    return (tr_kept){bytes.buffer, first, count, element, -first * element, {0}};
}

// Does the step write its sums? Else it adds to them.
static bool is_first(const tr_proof *p) {
    return p->step->writes & tr__slot_bit(TR_SLOT_OUTPUT);
}

static bool is_of_flat(tr_proof *p) {
    bool inside = p->step->unit >= 0 && p->step->unit < (int64_t)p->plan->flat_count &&
                  p->kind == TR_SEQUENCE_TRAIN;
    if (!inside) {
        tr__proof_wrong(p, "is of what the model has not");
    }
    return inside;
}

// ---- made, and added up
// -----------------------------------------------------------------

// What nobody makes must be zeros, where gradients lie in memory that was another's.
static void clear_gradient(tr_proof *p) {
    const tr_flat *f = &p->plan->flats[p->step->unit];
    tr_kept to = passing(p, TR_SLOT_OUTPUT, 0, f->count, f->count, sizeof(float));
    runs all = runs_in(p, p->step->unit, 0, f->count);
    run at;
    while (p->status == TR_OK && next_run(&all, &at)) {
        if (at.param < 0 || p->step->whole) {
            tr__bytes_change(p, run_bytes(&to, &at), &nothing, &zeros);
        }
    }
}

void tr__rule_clear(tr_proof *p) {
    if (p->step->part == TR_PART_GRAD) {
        if (is_of_flat(p)) {
            clear_gradient(p);
        }
    } else if (p->stopped) { // the walk has just noted it there
        tr__proof_wrong(p, "forgets that somebody has asked for an end");
    } else if (p->walked.cleared) {
        tr__proof_wrong(p, "is there twice");
    } else {
        p->walked.cleared = true;
        tr__bytes_write(p, tr__record_bytes(p, 0, p->plan->record.partials), &zeros);
    }
}

// An entry of the statistics that the step brings up to date.
static void note_flag(tr_proof *p, tr_record_flag flag) {
    tr_meaning found,
        noted = {.kind = TR_MEANS_FLAG, .of = flag, .version = p->version};
    tr_bytes bytes = tr__record_bytes(p, flag, 1);
    tr__bytes_look(p, bytes, &found);
    bool again = tr__meaning_equal(&found, &noted);
    tr__bytes_change(p, bytes, again ? &noted : &zeros, &noted);
}

// Squares of a part of the batch's gradients are added up, one after the other.
static void add_squares(tr_proof *p, tr_record_flag flag, uint64_t contribution) {
    tr_bytes bytes = tr__record_bytes(p, flag, 1);
    tr_meaning found, sum;
    tr__bytes_look(p, bytes, &found);
    sum = found.kind == TR_MEANS_FIRST_SQUARES ? found : zeros;
    tr_meaning more = {.kind = TR_MEANS_FIRST_SQUARES,
                       .terms = sum.terms + 1,
                       .sum = sum.sum + contribution};
    tr__bytes_change(p, bytes, &sum, &more);
}

// Right after the first micro-batch's backward, and before any other adds to it.
void tr__rule_gauge(tr_proof *p) {
    const tr_plan_step *step = p->step;
    const tr_proof_tables *t = &p->tables;
    if (step->unit < 0 || step->unit >= p->plan->unit_count || step->segment < 0 ||
        step->segment >= p->plan->units[step->unit].program->segments ||
        step->binding < 0) {
        tr__proof_wrong(p, "is of what the model has not");
        return;
    }
    int32_t flat = p->plan->units[step->unit].flats[0];
    int32_t buffer = p->plan->bindings[step->binding].grad[0];
    tr_kept kept = tr__kept_sums(p, flat);
    bool folds = tr__plan_folds(p->plan);
    kept.base = buffer == kept.buffer && !folds ? kept.base : 0;
    size_t segment = (size_t)(t->segments[step->unit] + step->segment);
    for (size_t i = t->of_segment[segment]; i < t->of_segment[segment + 1]; i++) {
        const tr_plan_param *param = &p->plan->params[t->makers[i].param];
        if (param->flat != flat) {
            continue;
        }
        tr_meaning first = {.kind = folds ? TR_MEANS_GRADIENT : TR_MEANS_SUM,
                            .of = t->makers[i].param,
                            .version = p->version,
                            .terms = 1,
                            .sum = tr__contribution(step->unit, step->segment, 0),
                            .base = kept.base};
        int64_t at = kept.base + param->offset * (int64_t)sizeof(float);
        tr__bytes_read(
            p, (tr_bytes){buffer, at, at + param->count * (int64_t)sizeof(float)},
            &first);
    }
    add_squares(p, TR_RECORD_SQUARES, tr__contribution(step->unit, step->segment, 0));
}

// Of a tied tensor, when all its users have been through the first wave, and before it
// is handed on or another wave adds to it.
void tr__rule_gauge_tied(tr_proof *p) {
    if (!is_of_flat(p)) {
        return;
    }
    int32_t flat = p->step->unit;
    const tr_plan_request *r = &p->plan->request;
    int64_t count = p->plan->flats[flat].count;
    tr_kept kept = tr__kept_sums(p, flat);
    if (tr__flat_grads_pass(p->plan, flat)) {
        kept = passing(p, TR_SLOT_INPUT, 0, count, count, sizeof(float));
    }
    scope wave = {0, tr__min_i64(r->wave, r->accumulation_steps), -1};
    read_own(p, flat, &kept, 0, count, wave);
    add_squares(p, TR_RECORD_TIED_SQUARES, tr__contribution(flat, 0, 0));
}

// One run of a flat buffer: the gradient of one micro-batch, or zeros, is added to the
// sums.
static void fold_run(tr_proof *p, tr_bytes from, tr_bytes to, int64_t param,
                     int64_t base) {
    bool writes = is_first(p);
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

void tr__rule_fold(tr_proof *p) {
    if (!is_of_flat(p)) {
        return;
    }
    const tr_flat *f = &p->plan->flats[p->step->unit];
    tr_kept from = passing(p, TR_SLOT_INPUT, 0, f->count, f->count, sizeof(float));
    tr_kept to = tr__kept_sums(p, p->step->unit);
    if (p->step->buffer[TR_SLOT_OUTPUT] >= 0) {
        to = passing(p, TR_SLOT_OUTPUT, 0, f->count, f->count, tr__sum_bytes(p->plan));
    }
    runs all = runs_in(p, p->step->unit, 0, f->count);
    run at;
    while (p->status == TR_OK && next_run(&all, &at)) {
        fold_run(p, run_bytes(&from, &at), run_bytes(&to, &at), at.param, to.base);
        tr__bytes_forget(p, run_bytes(&from, &at));
    }
    if (p->plan->request.sums == TR_I64) {
        note_flag(p, TR_RECORD_TOO_LARGE);
        note_flag(p, TR_RECORD_NOT_FINITE);
    }
}

// ---- handed on
// --------------------------------------------------------------------------

static void exchange(tr_proof *p) { // messages pass through it
    int32_t staging = p->plan->staging;
    tr__bytes_work(p, (tr_bytes){staging, 0, p->plan->buffers[staging].bytes});
}

void tr__rule_reduce(tr_proof *p) {
    if (!is_of_flat(p)) {
        return;
    }
    int32_t flat = p->step->unit;
    const tr_flat *f = &p->plan->flats[flat];
    int64_t element = tr__sum_bytes(p->plan), at = p->walked.reduced[flat]++;
    bool passes = tr__flat_grads_pass(p->plan, flat);
    if (p->plan->request.ranks < 2 || at >= scopes_of(p, flat)) {
        tr__proof_wrong(p, "is there too often");
        return;
    }
    tr_kept from = passes ? passing(p, TR_SLOT_INPUT, 0, f->count, f->count, element)
                          : tr__kept_sums(p, flat);
    read_own(p, flat, &from, 0, f->count, find_scope(p, flat, at));
    exchange(p);
    if (passes) {
        tr__bytes_forget(p, tr__kept_bytes(p, &from, 0, f->count));
    }
    tr_kept to = tr__kept_sums(p, flat);
    if (passes && f->leaves) {
        to = passing(p, TR_SLOT_OUTPUT, f->first, f->own,
                     tr__min_i64(f->shard, f->count), element);
        tr_meaning handed = total_of(p, flat, at, to.base);
        handed.kind = TR_MEANS_HANDED;
        tr_meaning none = handed;
        none.index--;
        leave_as(p, flat, &to, f->first, f->own, is_first(p) ? NULL : &none, &handed);
        return;
    }
    tr_meaning before = total_of(p, flat, at, to.base);
    tr_meaning total = total_of(p, flat, at + 1, to.base);
    if (is_first(p) != (at == 0)) {
        tr__proof_wrong(p, at == 0 ? "adds to sums that are not there"
                                   : "overwrites the sum of the scopes before");
        return;
    }
    leave_as(p, flat, &to, f->first, f->own, at == 0 ? NULL : &before, &total);
}

void tr__rule_gather_gradient(tr_proof *p) {
    if (!is_of_flat(p)) {
        return;
    }
    int32_t flat = p->step->unit;
    const tr_flat *f = &p->plan->flats[flat];
    tr_kept sums = tr__kept_sums(p, flat);
    tr_meaning total = total_of(p, flat, 1, sums.base);
    int64_t behind = f->first + f->own;
    if (p->walked.brought[flat]++ > 0) {
        tr__proof_wrong(p, "is there twice");
        return;
    }
    exchange(p);
    leave_as(p, flat, &sums, f->first, f->own, &total, &total); // all is being written
    leave_as(p, flat, &sums, 0, tr__min_i64(f->first, f->count), NULL, &total);
    leave_as(p, flat, &sums, behind, f->count - behind, NULL, &total);
}

// Elements of what leaves: the sum over ranks of a scope; with one rank, what it has
// made in it; or, complete, what stays on the device until then.
static void read_leaving(tr_proof *p, int64_t first, int64_t count) {
    int32_t flat = p->step->unit;
    const tr_flat *f = &p->plan->flats[flat];
    int64_t element = tr__sum_bytes(p->plan), at = p->walked.evicted[flat];
    bool ranks = p->plan->request.ranks > 1;
    if (!tr__flat_grads_pass(p->plan, flat)) {
        tr_kept sums = tr__kept_sums(p, flat);
        tr_meaning total = total_of(p, flat, 1, sums.base);
        if (tr__plan_stage(p->plan) == 0 && p->walked.brought[flat] == 0 && count > 0 &&
            !p->stopped) {
            tr__proof_wrong(p, "takes the gradient of %s before all ranks have it",
                            f->name);
        }
        read_as(p, flat, &sums, first, count, &total);
        return;
    }
    tr_kept from = ranks ? passing(p, TR_SLOT_INPUT, f->first, f->own,
                                   tr__min_i64(f->shard, f->count), element)
                         : passing(p, TR_SLOT_INPUT, 0, f->count, f->count, element);
    tr_meaning handed = total_of(p, flat, at, from.base);
    handed.kind = TR_MEANS_HANDED;
    if (ranks) {
        read_as(p, flat, &from, first, count, &handed);
    } else {
        read_own(p, flat, &from, first, count, find_scope(p, flat, at));
    }
}

static void unfold(tr_proof *p) { // pieces of sums of another type, as f32
    bool folds = tr__plan_folds(p->plan);
    tr__slot_work(p, folds ? TR_CONVERT_ELEMENTS * (int64_t)sizeof(float) : 0);
}

// Where the squares of a flat buffer's gradients are among the statistics.
static tr_bytes squares_bytes(const tr_proof *p, int32_t flat) {
    return tr__record_bytes(p, p->plan->record.partials + p->plan->flats[flat].squares,
                            blocks_of(p->plan->flats[flat].own));
}

static void write_squares(tr_proof *p, int32_t flat) {
    tr_meaning squares = {.kind = TR_MEANS_SQUARES, .of = flat, .version = p->version};
    tr__bytes_write(p, squares_bytes(p, flat), &squares);
}

void tr__rule_square(tr_proof *p) {
    if (is_of_flat(p)) {
        const tr_flat *f = &p->plan->flats[p->step->unit];
        read_leaving(p, f->first, f->own);
        write_squares(p, p->step->unit);
        unfold(p);
    }
}

void tr__rule_evict(tr_proof *p) {
    if (!is_of_flat(p)) {
        return;
    }
    int32_t flat = p->step->unit;
    const tr_flat *f = &p->plan->flats[flat];
    tr_kept to = tr__kept_part(p, flat, TR_PART_GRAD);
    int64_t at = p->walked.evicted[flat];
    if (!f->leaves || at >= scopes_of(p, flat)) {
        tr__proof_wrong(p, "is there too often");
        return;
    }
    read_leaving(p, to.first, to.count);
    if (tr__flat_grads_pass(p->plan, flat)) {
        tr__bytes_forget(p, (tr_bytes){p->step->buffer[TR_SLOT_INPUT], 0,
                                       to.count * tr__sum_bytes(p->plan)});
    }
    p->walked.evicted[flat]++;
    if (tr__is_in_file(p, &to)) { // on its way there
        int64_t room = p->plan->buffers[to.buffer].bytes;
        to.buffer = tr__slot_bytes(p, TR_SLOT_OUTPUT, room, TR_SPACE_HOST).buffer;
    }
    tr_meaning before = total_of(p, flat, at, to.base);
    tr_meaning total = total_of(p, flat, at + 1, to.base);
    bool writes = is_first(p);
    if (writes != (at == 0) || (at > 0 && p->plan->request.sums != TR_I64)) {
        tr__proof_wrong(p, writes ? "overwrites the sum of the scopes before"
                                  : "adds what has to come complete");
        return;
    }
    leave_as(p, flat, &to, to.first, to.count, writes ? NULL : &before, &total);
}

// ---- statistics
// -------------------------------------------------------------------------

void tr__rule_norm(tr_proof *p) {
    if (p->walked.normed && !p->stopped) {
        tr__proof_wrong(p, "is there twice");
        return;
    }
    p->walked.normed = true;
    for (int32_t f = 0; f < (int32_t)p->plan->flat_count && p->status == TR_OK; f++) {
        const tr_flat *flat = &p->plan->flats[f];
        tr_kept kept = tr__kept_part(p, f, TR_PART_GRAD);
        if (!tr__is_in_file(p, &kept)) { // else they were taken on their way
            tr__gradient_read(p, f, &kept, flat->first, flat->own, p->version);
            write_squares(p, f);
        }
    }
    note_flag(p, TR_RECORD_ASKED);
    for (int flag = TR_RECORD_SECONDS; flag <= TR_RECORD_PEAK; flag++) {
        note_flag(p, (tr_record_flag)flag);
    }
    unfold(p);
}

static void read_flag(tr_proof *p, tr_record_flag flag) {
    tr_meaning found,
        noted = {.kind = TR_MEANS_FLAG, .of = flag, .version = p->version};
    tr_bytes bytes = tr__record_bytes(p, flag, 1);
    bool always = flag == TR_RECORD_ASKED ||
                  (flag >= TR_RECORD_SECONDS && flag <= TR_RECORD_PEAK);
    tr__bytes_look(p, bytes, &found);
    tr__bytes_read(p, bytes, always || found.kind == TR_MEANS_FLAG ? &noted : &zeros);
}

// Of the first micro-batch, wherever something is to be measured.
static void read_first_squares(tr_proof *p) {
    const tr_proof_tables *t = &p->tables;
    tr_meaning want = zeros, tied = zeros;
    bool measures = p->plan->request.measure != TR_MEASURE_NEVER;
    int32_t unit = -1, segment = -1;
    for (size_t i = 0; i < t->maker_count && measures; i++) {
        const tr_maker *m = &t->makers[i];
        const tr_flat *flat = &p->plan->flats[p->plan->params[m->param].flat];
        bool own = p->plan->params[m->param].flat == p->plan->units[m->unit].flats[0];
        if (flat->gauged && own && (m->unit != unit || m->segment != segment)) {
            want.kind = TR_MEANS_FIRST_SQUARES;
            want.terms++;
            want.sum += tr__contribution(m->unit, m->segment, 0);
            unit = m->unit;
            segment = m->segment;
        }
    }
    for (int32_t f = 0; f < (int32_t)p->plan->flat_count && measures; f++) {
        if (p->plan->flats[f].tied && p->plan->flats[f].gauged) {
            tied.kind = TR_MEANS_FIRST_SQUARES;
            tied.terms++;
            tied.sum += tr__contribution(f, 0, 0);
        }
    }
    tr__bytes_read(p, tr__record_bytes(p, TR_RECORD_SQUARES, 1), &want);
    tr__bytes_read(p, tr__record_bytes(p, TR_RECORD_TIED_SQUARES, 1), &tied);
}

static void read_losses(tr_proof *p) {
    tr_meaning loss = {.kind = TR_MEANS_LOSS,
                       .terms = p->tables.loss.terms,
                       .sum = p->tables.loss.sum};
    for (loss.index = 0; loss.index < p->plan->request.accumulation_steps;
         loss.index++) {
        int64_t first = p->plan->record.sums + loss.index * TR_SUMS;
        tr__bytes_read(p, tr__record_bytes(p, first, TR_SUMS), &loss);
    }
}

static void read_squares(tr_proof *p) {
    for (int32_t f = 0; f < (int32_t)p->plan->flat_count && p->status == TR_OK; f++) {
        tr_meaning squares = {.kind = TR_MEANS_SQUARES, .of = f, .version = p->version};
        tr__bytes_read(p, squares_bytes(p, f), &squares);
    }
}

void tr__statistics_read(tr_proof *p) {
    for (int flag = 0; flag < TR_RECORD_FLAGS; flag++) {
        if (flag != TR_RECORD_SQUARES && flag != TR_RECORD_TIED_SQUARES) {
            read_flag(p, (tr_record_flag)flag);
        }
    }
    read_first_squares(p);
    read_losses(p);
    read_squares(p);
}

void tr__rule_gather_statistics(tr_proof *p) {
    const tr_meaning all = {.kind = TR_MEANS_STATISTICS, .version = p->version};
    int32_t buffer = p->plan->record.buffer;
    tr__statistics_read(p);
    exchange(p);
    tr__bytes_write(p, (tr_bytes){buffer, 0, p->plan->buffers[buffer].bytes}, &all);
}

void tr__rule_decide(tr_proof *p) {
    const tr_meaning all = {.kind = TR_MEANS_STATISTICS, .version = p->version};
    int32_t buffer = p->plan->record.buffer;
    if (p->plan->request.ranks == 1) {
        tr__statistics_read(p);
    } else {
        tr__bytes_read(p, (tr_bytes){buffer, 0, p->plan->buffers[buffer].bytes}, &all);
    }
}

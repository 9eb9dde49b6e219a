// Rules of the update: of pieces of flat buffers, in place or staged, in one phase or
// in two.
#include "base/checked.h"
#include "ops/flat/exact_sums/exact_sums.h"
#include "ops/optimizers/optimizer_measure.h"
#include "plan/flow/work.h"
#include "plan/proof/proof.h"
#include "plan/units/offsets.h"

int32_t tr__rule_version(const tr_proof *p) {
    bool left = p->settles || p->step->guard == TR_GUARD_DEFERRED;
    return p->version - left;
}

// Its numbers (rate, clipping) are those that the executor has decided on.
static bool is_decided(tr_proof *p) {
    bool decided = p->applied || p->step->guard == TR_GUARD_DEFERRED;
    if (!decided) {
        tr__proof_wrong(p, "comes before the update is decided on");
    }
    return decided;
}

static bool changes_flat(tr_proof *p) {
    if (p->step->count < 0) {
        tr__proof_wrong(p, "is of less than no elements");
    }
    return tr__proof_trains_flat(p, "changes what is frozen");
}

// Where a piece of a part is: in its place, or staged. Its first byte is the piece's.
static tr_bytes find_piece(tr_proof *p, tr_part part, tr_kept *kept) {
    const tr_plan_step *step = p->step;
    *kept = tr__kept_part(p, step->unit, part);
    tr_bytes none = {-1, 0, 0},
             bytes = tr__kept_bytes(p, kept, step->first, step->count);
    if (step->count == 0 || p->status != TR_OK) {
        return none;
    }
    if (tr__is_in_file(p, kept)) {
        int64_t room = tr__staged_bytes(kept, step->count);
        kept->base = kept->means.base = -tr__packed_bytes(kept->element, step->first);
        kept->buffer = tr__role_bytes(p, (tr_operand_role)(TR_OPERAND_PART + part),
                                      room, TR_SPACE_HOST)
                           .buffer;
        bytes =
            (tr_bytes){kept->buffer, 0, tr__packed_bytes(kept->element, step->count)};
    }
    return bytes;
}

// What is staged and not changed has been read for this step alone.
static void let_go(tr_proof *p, const tr_kept *kept, tr_part part, tr_bytes bytes) {
    if (kept->buffer != tr__kept_part(p, p->step->unit, part).buffer) {
        tr__bytes_forget(p, bytes);
    }
}

static void read_gradient(tr_proof *p) {
    tr_kept kept;
    tr_bytes bytes = find_piece(p, TR_PART_GRAD, &kept);
    if (bytes.buffer >= 0) {
        tr__gradient_read(p, p->step->unit, &kept, p->step->first, p->step->count,
                          tr__rule_version(p));
        let_go(p, &kept, TR_PART_GRAD, bytes);
    }
}

static void read_params(tr_proof *p) {
    tr_kept kept;
    tr_bytes bytes = find_piece(p, TR_PART_PARAM, &kept);
    kept.means.version = tr__rule_version(p);
    tr__bytes_read(p, bytes, &kept.means);
    let_go(p, &kept, TR_PART_PARAM, bytes);
}

// The first phase of two moves the states on, and the second takes them so.
static void change_states(tr_proof *p, bool measures) {
    for (int s = 0; s < tr__flat_states(p->plan, &p->plan->flats[p->step->unit]); s++) {
        tr_kept kept;
        tr_bytes bytes = find_piece(p, (tr_part)(TR_PART_STATE + s), &kept);
        tr_meaning before = kept.means, leave = kept.means;
        before.version = tr__rule_version(p);
        leave.version = before.version + 1;
        if (measures) {
            leave.kind = TR_MEANS_MOVED_STATE;
        } else if (p->plan->request.tensor_norms) {
            before = leave;
            before.kind = TR_MEANS_MOVED_STATE;
        }
        tr__bytes_change(p, bytes, &before, &leave);
    }
}

static void change_params(tr_proof *p) {
    tr_kept kept;
    tr_bytes bytes = find_piece(p, TR_PART_PARAM, &kept);
    tr_meaning before = kept.means, leave = kept.means;
    before.version = tr__rule_version(p);
    leave.version = before.version + 1;
    tr__bytes_change(p, bytes, &before, &leave);
    // Other ranks have updated their parts of it, too.
    int stage = tr__plan_stage(p->plan);
    bool shared = stage == 1 || stage == 2;
    p->others[p->step->unit] = shared ? before.version : leave.version;
    if (tr__plan_is_half(p->plan)) {
        bytes = find_piece(p, TR_PART_COPY, &kept);
        leave = kept.means;
        leave.version = before.version + 1;
        tr__bytes_write(p, bytes, &leave);
    }
}

tr_space tr__norms_place(const tr_proof *p) {
    const tr_plan_request *r = &p->plan->request;
    bool host = r->discrete && r->optimizer_placement != TR_SPACE_DEVICE;
    return host ? TR_SPACE_HOST : TR_SPACE_DEVICE;
}

void tr__rule_update(tr_proof *p) {
    if (!is_decided(p) || !changes_flat(p)) {
        return;
    }
    tr_meaning norms = {.kind = TR_MEANS_NORMS, .version = p->version};
    if (p->plan->request.tensor_norms && p->step->count > 0) {
        int64_t bytes = (int64_t)p->plan->param_count * (int64_t)sizeof(tr_squares);
        tr_bytes totals =
            tr__role_bytes(p, TR_OPERAND_NORMS, bytes, tr__norms_place(p));
        tr__bytes_read(p, totals, &norms);
    }
    read_gradient(p);
    change_states(p, false);
    change_params(p);
    tr__role_convert(p);
}

// ---- norms of tensors

static int64_t ranks_of(const tr_proof *p) {
    return tr__plan_stage(p->plan) > 0 ? tr__data_ranks(&p->plan->request) : 1;
}

static tr_bytes find_all_measures(tr_proof *p, tr_operand_role role) {
    int64_t bytes = p->plan->norms.parts * (int64_t)sizeof(tr_squares);
    return tr__role_bytes(p, role, bytes, tr__norms_place(p));
}

static tr_bytes find_measures(const tr_proof *p, tr_bytes all, int32_t flat) {
    int64_t first = p->plan->flats[flat].parts;
    int64_t end = first + tr__norms_parts(p->plan, &p->plan->flats[flat]);
    return (tr_bytes){all.buffer, first * (int64_t)sizeof(tr_squares),
                      end * (int64_t)sizeof(tr_squares)};
}

// What a rank measures of a flat buffer: elements from first_of on, so many.
static int64_t first_of(const tr_proof *p, int32_t flat) {
    return tr__plan_stage(p->plan) > 0 ? p->plan->flats[flat].first : 0;
}

static int64_t elements_of(const tr_proof *p, int32_t flat) {
    const tr_flat *f = &p->plan->flats[flat];
    return f->frozen ? 0 : tr__plan_stage(p->plan) > 0 ? f->own : f->count;
}

static tr_meaning measures(const tr_proof *p, int32_t flat, int64_t elements) {
    return (tr_meaning){.kind = TR_MEANS_MEASURES,
                        .of = flat,
                        .version = p->version,
                        .index = elements};
}

static void read_measures(tr_proof *p, tr_bytes all) {
    for (int32_t f = 0; f < (int32_t)p->plan->flat_count && p->status == TR_OK; f++) {
        tr_meaning want = measures(p, f, elements_of(p, f));
        if (want.index > 0) {
            tr__bytes_read(p, find_measures(p, all, f), &want);
        }
    }
}

void tr__rule_direction_norms(tr_proof *p) {
    if (!is_decided(p) || !changes_flat(p)) {
        return;
    }
    const tr_plan_step *step = p->step;
    int64_t *done = &p->walked.measured[step->unit];
    int64_t first = first_of(p, step->unit);
    tr_bytes all = find_all_measures(p, TR_OPERAND_NORMS);
    tr_bytes bytes = find_measures(p, all, step->unit);
    if (step->first != first + *done ||
        step->count > elements_of(p, step->unit) - *done) {
        tr__proof_wrong(p, "measures other elements than the next");
        return;
    }
    tr_meaning before = measures(p, step->unit, *done);
    tr_meaning after = measures(p, step->unit, *done + step->count);
    *done += step->count;
    read_params(p);
    read_gradient(p);
    change_states(p, true);
    if (step->count > 0 && before.index > 0) {
        tr__bytes_change(p, bytes, &before, &after);
    } else if (step->count > 0) {
        tr__bytes_write(p, bytes, &after);
    } else { // it names them, and measures nothing
        tr__payload_touch(p, bytes, true);
    }
    tr__role_convert(p);
}

static int64_t sums_bytes(const tr_proof *p) {
    return 2 * (int64_t)p->plan->param_count * TR_EXACT_WORDS *
           (int64_t)sizeof(int64_t);
}

// The ranks that have measured parts of this stage's tensors.
static tr_axes measurers_of(const tr_proof *p) {
    return (ranks_of(p) > 1 ? TR_ON_DATA : 0) |
           (p->plan->request.mesh.size[TR_AXIS_TENSOR] > 1 ? TR_ON_TENSOR : 0);
}

static tr_meaning tensor_sums(const tr_proof *p, bool all) {
    return (tr_meaning){
        .kind = TR_MEANS_TENSOR_SUMS, .version = p->version, .index = all};
}

// Elements [*first, *end) of a parameter that this rank has measured; of what several
// ranks of a stage have alike, one rank's count.
static void find_counted(const tr_proof *p, const tr_plan_param *param, int64_t *first,
                         int64_t *end) {
    const tr_flat *flat = &p->plan->flats[param->flat];
    int64_t begin = first_of(p, param->flat);
    const tr_mesh *mesh = &p->plan->request.mesh;
    bool first_of_repeats =
        !flat->repeated || mesh->at[TR_AXIS_TENSOR] % mesh->repeats == 0;
    bool own = (flat->axes.split & TR_ON_TENSOR) ? first_of_repeats
                                                 : mesh->at[TR_AXIS_TENSOR] == 0;
    *first = tr__max_i64(begin, param->offset);
    *end =
        tr__min_i64(begin + elements_of(p, param->flat), param->offset + param->count);
    *end = own ? *end : *first;
}

// Each tensor's parts go into its own norms, once.
static void check_tensor_runs(tr_proof *p) {
    const tr_norms_layout *norms = &p->plan->norms;
    int64_t run = 0;
    for (size_t i = 0; i < p->plan->param_count && p->status == TR_OK; i++) {
        const tr_plan_param *param = &p->plan->params[i];
        const tr_flat *flat = &p->plan->flats[param->flat];
        int64_t first, end, begin = first_of(p, param->flat);
        find_counted(p, param, &first, &end);
        if (first >= end) {
            continue;
        }
        const tr_parts_run *at = &norms->runs[run++];
        int64_t blocks = (end - 1) / TR_SHARD_ELEMENTS - first / TR_SHARD_ELEMENTS + 1;
        int64_t part = flat->parts + param->place + first / TR_SHARD_ELEMENTS -
                       begin / TR_SHARD_ELEMENTS;
        if (run > norms->run_count || at->first != part || at->count != blocks ||
            at->total != param->tensor) {
            tr__proof_wrong(p, "adds up other parts of parameter %d", (int)i);
        }
    }
    if (run != norms->run_count) {
        tr__proof_wrong(p, "adds up parts of no parameter");
    }
}

void tr__rule_tensor_sums(tr_proof *p) {
    tr_meaning own = tensor_sums(p, measurers_of(p) == 0);
    tr_bytes measured = find_all_measures(p, TR_OPERAND_INPUT);
    tr__payload_touch(p, measured, false); // some flat buffers have nothing here
    read_measures(p, measured);
    check_tensor_runs(p);
    tr__bytes_write(
        p, tr__role_bytes(p, TR_OPERAND_OUTPUT, sums_bytes(p), tr__norms_place(p)),
        &own);
}

// Sums of all ranks of the group: this rank's part of them, or all parts.
void tr__rule_exchange_norms(tr_proof *p) {
    const tr_exchange *e = &p->step->payload.exchange;
    bool reduces = e->kind == TR_COMM_REDUCE;
    int64_t words = sums_bytes(p) / (int64_t)sizeof(int64_t), first, count;
    tr_meaning own = tensor_sums(p, false), all = tensor_sums(p, true);
    if (e->group != measurers_of(p) || e->count != words ||
        e->type != tr__exchange_type(TR_I64)) {
        tr__proof_wrong(p, "adds up something else than what ranks have measured");
        return;
    }
    int32_t buffer = tr__role_buffer(p, TR_OPERAND_OUTPUT);
    tr__comm_part(e->count, e->shard, (int)tr__exchange_member(p->plan, e), &first,
                  &count);
    tr_bytes whole = {buffer, 0, sums_bytes(p)};
    tr_bytes part = {buffer, first * (int64_t)sizeof(int64_t),
                     (first + count) * (int64_t)sizeof(int64_t)};
    tr__exchange_work(p, e->group);
    tr__bytes_read(p, reduces ? whole : part, reduces ? &own : &all);
    tr__bytes_write(p, reduces ? part : whole, &all);
}

void tr__rule_tensor_norms(tr_proof *p) {
    int64_t totals = (int64_t)p->plan->param_count * (int64_t)sizeof(tr_squares);
    tr_meaning all = tensor_sums(p, true);
    tr_meaning norms = {.kind = TR_MEANS_NORMS, .version = p->version};
    tr__bytes_read(
        p, tr__role_bytes(p, TR_OPERAND_INPUT, sums_bytes(p), tr__norms_place(p)),
        &all);
    tr__bytes_write(p, tr__role_bytes(p, TR_OPERAND_OUTPUT, totals, tr__norms_place(p)),
                    &norms);
}

// ---- matrices as wholes

// Ranks of the tensor axis that share the matrices of the step's flat buffer.
static int64_t sharers_of(const tr_proof *p) {
    bool split = p->plan->flats[p->step->unit].split;
    return split ? p->plan->request.mesh.size[TR_AXIS_TENSOR] : 1;
}

// Which directions are there.
typedef enum directions {
    OWN,    // those of this data rank's elements
    OF_ALL, // of all that this rank has of the matrices, a part where ranks share them
    WHOLE,  // of whole matrices, of which each sharer's part lies behind the one before
} directions;

static tr_kept directions_in(tr_proof *p, tr_operand_role role, directions which) {
    const tr_flat *f = &p->plan->flats[p->step->unit];
    bool host = f->offloaded && p->plan->request.discrete;
    int64_t count = f->count * sharers_of(p);
    tr_kept kept = {.count = count, .element = {1, sizeof(float)}};
    which = which == OF_ALL && sharers_of(p) == 1 ? WHOLE : which;
    kept.buffer = tr__role_bytes(p, role, tr__packed_bytes(kept.element, count),
                                 host ? TR_SPACE_HOST : TR_SPACE_DEVICE)
                      .buffer;
    kept.means = (tr_meaning){.kind = TR_MEANS_DIRECTION,
                              .of = p->step->unit,
                              .version = p->version,
                              .index = (int32_t)which};
    return kept;
}

// Where this rank's begin, in elements.
static int64_t own_directions(const tr_proof *p) {
    int64_t rank = p->plan->request.mesh.at[TR_AXIS_TENSOR];
    return sharers_of(p) > 1 ? rank * p->plan->flats[p->step->unit].count : 0;
}

void tr__rule_direction(tr_proof *p) {
    if (!is_decided(p) || !changes_flat(p)) {
        return;
    }
    tr_kept to =
        directions_in(p, TR_OPERAND_DIRECTION, ranks_of(p) == 1 ? OF_ALL : OWN);
    read_gradient(p);
    change_states(p, false);
    int64_t first = own_directions(p) + p->step->first;
    tr__bytes_write(p, tr__kept_bytes(p, &to, first, p->step->count), &to.means);
    tr__role_convert(p);
}

void tr__rule_gather_directions(tr_proof *p) {
    if (!is_decided(p) || !changes_flat(p)) {
        return;
    }
    const tr_flat *f = &p->plan->flats[p->step->unit];
    bool sharers = p->step->payload.exchange.group == TR_ON_TENSOR && sharers_of(p) > 1;
    int64_t begin = own_directions(p);
    tr_kept from = directions_in(p, TR_OPERAND_OUTPUT, sharers ? OF_ALL : OWN);
    tr_kept to = directions_in(p, TR_OPERAND_OUTPUT, sharers ? WHOLE : OF_ALL);
    tr__exchange_work(p, sharers ? TR_ON_TENSOR : TR_ON_DATA);
    tr__bytes_read(p,
                   sharers ? tr__kept_bytes(p, &from, begin, f->count)
                           : tr__kept_bytes(p, &from, begin + f->first, f->own),
                   &from.means);
    tr__bytes_write(p,
                    sharers ? tr__kept_bytes(p, &to, 0, to.count)
                            : tr__kept_bytes(p, &to, begin, f->count),
                    &to.means);
}

// Gradients and states have gone into the directions: all elements of its matrices.
void tr__rule_orthogonal(tr_proof *p) {
    if (!is_decided(p) || !changes_flat(p)) {
        return;
    }
    tr_kept from = directions_in(p, TR_OPERAND_DIRECTION, WHOLE);
    tr__bytes_read(p, tr__kept_bytes(p, &from, 0, from.count), &from.means);
    change_params(p);
    tr__role_kernels(p);
}

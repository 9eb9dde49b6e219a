// Where things lie: operands of steps, parts of flat buffers, the statistics of the
// step.
#include "plan/proof/proof.h"

#include "base/checked.h"
#include "ops/flat/accumulate/accumulate.h"
#include "plan/flow/residency.h"
#include "plan/flow/work.h"
#include "plan/units/offsets.h"

int32_t tr__role_buffer(const tr_proof *p, tr_operand_role role) {
    const tr_step_operand *operand = tr__step_find(p->plan, p->step, role);
    bool passes = operand && p->plan->buffers[operand->buffer].sequence >= 0;
    return passes ? operand->buffer : -1;
}

tr_bytes tr__role_bytes(tr_proof *p, tr_operand_role role, int64_t bytes,
                        tr_space space) {
    const char *name = tr__operand_role_name(role);
    int32_t buffer = tr__role_buffer(p, role);
    tr_bytes none = {-1, 0, 0};
    if (p->status != TR_OK || (bytes == 0 && buffer < 0)) {
        return none;
    }
    const tr_buffer *b = buffer < 0 ? NULL : &p->plan->buffers[buffer];
    if (!b) {
        tr__proof_wrong(p, "names no buffer for its %s", name);
    } else if (b->space != space) {
        tr__proof_wrong(p, "names buffer %d for its %s, which is in %s memory",
                        (int)buffer, name, tr_space_name(b->space));
    } else if (b->bytes < bytes) {
        tr__proof_wrong(p, "names buffer %d for its %s, of %lld bytes: it needs %lld",
                        (int)buffer, name, (long long)b->bytes, (long long)bytes);
    } else {
        return (tr_bytes){buffer, 0, bytes};
    }
    return none;
}

void tr__role_work(tr_proof *p, int64_t bytes) {
    tr__bytes_work(p, tr__role_bytes(p, TR_OPERAND_TEMP, bytes, TR_SPACE_DEVICE));
}

// The host's launches do not reach the memory of a discrete device.
void tr__role_convert(tr_proof *p) {
    bool accumulates = tr__plan_accumulates(p->plan);
    bool host = p->plan->request.discrete && p->step->stream == TR_STREAM_HOST;
    int64_t bytes = accumulates ? TR_CONVERT_ELEMENTS * (int64_t)sizeof(float) : 0;
    tr__bytes_work(p, tr__role_bytes(p, TR_OPERAND_TEMP, bytes,
                                     host ? TR_SPACE_HOST : TR_SPACE_DEVICE));
}

void tr__role_kernels(tr_proof *p) {
    const tr_payload *payload = &p->step->payload;
    bool host = p->plan->request.discrete && p->step->stream == TR_STREAM_HOST;
    int64_t most = 0;
    for (size_t i = 0; i < payload->op_count; i++) {
        const tr_op_launch *launch = &p->plan->launches[payload->op + i];
        const tr_prepared_op *op = &p->plan->prepared[launch->op];
        bool works = op->kernel && op->kernel->workspace;
        int64_t bytes = works ? (int64_t)op->kernel->workspace(&op->desc, NULL) : 0;
        most = tr__max_i64(most, bytes);
    }
    most = tr__round_up(most, TR_ALIGNMENT);
    tr__bytes_work(p, tr__role_bytes(p, TR_OPERAND_TEMP, most,
                                     host ? TR_SPACE_HOST : TR_SPACE_DEVICE));
}

// What is sent in place is this rank's part of what is received.
static bool is_in_its_place(const tr_proof *p) {
    const tr_step_operand *send = tr__step_operand(p->plan, p->step, TR_EXCHANGE_SEND);
    const tr_step_operand *all =
        tr__step_operand(p->plan, p->step, TR_EXCHANGE_RECEIVE);
    bool within = send->buffer == all->buffer && send->first >= all->first &&
                  send->end <= all->end;
    return within || !p->step->payload.exchange.in_place;
}

// Messages pass through it; devices need none.
static void work_in_staging(tr_proof *p) {
    tr_comm_room room = tr__plan_room(p->plan);
    tr_bytes own = {.buffer = p->plan->staging};
    tr__comm_channel_staging(&room, tr__stream_channel(p->step->stream), &own.first,
                             &own.end);
    if (!p->plan->request.peers || p->step->stream == TR_STREAM_DATA) {
        tr__bytes_work(p, own);
    }
}

void tr__exchange_pair(tr_proof *p, int64_t from, int64_t to) {
    const tr_exchange *e = &p->step->payload.exchange;
    if (!is_in_its_place(p)) {
        tr__proof_wrong(p, "sends another part than its own of what it receives");
    } else if (e->group != TR_ON_PIPELINE || e->from != from || e->to != to) {
        tr__proof_wrong(p, "is of other ranks than those of stages %lld and %lld",
                        (long long)from, (long long)to);
    } else {
        work_in_staging(p);
    }
}

void tr__exchange_work(tr_proof *p, tr_axes group) {
    if (!is_in_its_place(p)) {
        tr__proof_wrong(p, "sends another part than its own of what it receives");
        return;
    }
    if (tr__exchange_is_pair(&p->step->payload.exchange)) {
        tr__proof_wrong(p, "is between two ranks, and not between all of its group");
        return;
    }
    if (p->step->payload.exchange.group != group) {
        tr__proof_wrong(p, "is of the ranks on the axes \"%s\", and not on \"%s\"",
                        tr__axes_name(p->step->payload.exchange.group),
                        tr__axes_name(group));
        return;
    }
    tr_comm_group ranks = {0, 0, 0};
    tr_status status = tr__mesh_group(&p->plan->request.mesh, group, &ranks, NULL);
    if (status != TR_OK || ranks.count < 2) {
        tr__proof_wrong(p, "has no other rank to exchange with");
        return;
    }
    work_in_staging(p);
}

// ---- parts of flat buffers

static tr_kept keep(const tr_proof *p, int32_t flat, const tr_flat_range *range,
                    tr_block_size element, tr_meaning_kind kind) {
    tr_kept kept = {.buffer = range->buffer,
                    .first = range->first,
                    .count = range->count,
                    .element = element,
                    .base = -tr__packed_bytes(element, range->first)};
    bool frozen = p->plan->flats[flat].frozen; // of one version for ever
    kept.means = (tr_meaning){.kind = kind,
                              .of = flat,
                              .version = frozen ? 0 : p->version,
                              .base = kept.base};
    return kept;
}

tr_kept tr__kept_part(const tr_proof *p, int32_t flat, tr_part part) {
    const tr_flat *f = &p->plan->flats[flat];
    tr_block_size f32 = {1, sizeof(float)}, used = {1, tr__param_bytes(p->plan)};
    tr_block_size sum = {1, tr__sum_bytes(p->plan)};
    int state = (int)part - TR_PART_STATE;
    const tr_optimizer_state *row = NULL;
    tr_kept kept;
    switch (part) {
    case TR_PART_PARAM:
        return keep(p, flat, &f->master, f32,
                    tr__plan_is_half(p->plan) ? TR_MEANS_MASTERS : TR_MEANS_PARAMETERS);
    case TR_PART_COPY:
        return keep(p, flat, &f->copy, used, TR_MEANS_PARAMETERS);
    case TR_PART_GRAD:
        return keep(p, flat, &f->grad, sum, TR_MEANS_TOTAL);
    default:
        row = f->apart ? &p->plan->request.apart_states[state]
                       : &p->plan->request.states[state];
        kept = keep(p, flat, &f->state[state], tr__state_format(row->type)->packing,
                    TR_MEANS_STATE);
        kept.means.index = state;
        return kept;
    }
}

tr_kept tr__kept_params(const tr_proof *p, int32_t flat) {
    tr_block_size element = {1, tr__param_bytes(p->plan)};
    return keep(p, flat, &p->plan->flats[flat].param, element, TR_MEANS_PARAMETERS);
}

tr_kept tr__kept_sums(const tr_proof *p, int32_t flat) {
    tr_block_size element = {1, tr__sum_bytes(p->plan)};
    return keep(p, flat, &p->plan->flats[flat].sums, element, TR_MEANS_TOTAL);
}

tr_bytes tr__kept_bytes(tr_proof *p, const tr_kept *kept, int64_t first,
                        int64_t count) {
    if (first < kept->first || count < 0 || first + count > kept->first + kept->count) {
        tr__proof_wrong(p,
                        "takes elements [%lld, %lld) of a part of which this rank has "
                        "[%lld, %lld)",
                        (long long)first, (long long)first + count,
                        (long long)kept->first, (long long)kept->first + kept->count);
        return (tr_bytes){-1, 0, 0};
    }
    if (first % kept->element.elements != 0) {
        tr__proof_wrong(p, "begins within a block of elements");
        return (tr_bytes){-1, 0, 0};
    }
    int64_t begin = kept->base + tr__packed_bytes(kept->element, first);
    return (tr_bytes){kept->buffer, begin,
                      begin + tr__packed_bytes(kept->element, count)};
}

int64_t tr__staged_bytes(const tr_kept *kept, int64_t count) {
    return tr__round_up(tr__packed_bytes(kept->element, count), TR_NVME_ALIGNMENT);
}

bool tr__is_in_file(const tr_proof *p, const tr_kept *kept) {
    return kept->buffer >= 0 && p->plan->buffers[kept->buffer].space == TR_SPACE_NVME;
}

tr_bytes tr__statistics_bytes(const tr_proof *p, int64_t first, int64_t count) {
    const tr_statistics_layout *layout = &p->plan->statistics;
    int64_t at = tr_mesh_rank(&p->plan->request.mesh) * layout->doubles + first;
    return (tr_bytes){layout->buffer, at * (int64_t)sizeof(double),
                      (at + count) * (int64_t)sizeof(double)};
}

tr_bytes tr__state_bytes(const tr_proof *p, const tr_plan_state *state) {
    return (tr_bytes){p->plan->units[state->unit].states, state->offset,
                      state->offset + tr_tensor_bytes(state->desc)};
}

// Which rule is a step's.
#include "plan/proof/proof.h"

// Parameters and gradients of flat buffers have rules for their ways; any other copy
// takes along what is there.
static void rule_fetch(tr_proof *p) {
    (p->step->subject == TR_OF_FLAT ? tr__rule_fetch : tr__rule_copy)(p);
}

static void rule_evict(tr_proof *p) {
    (p->step->subject == TR_OF_FLAT ? tr__rule_evict : tr__rule_copy)(p);
}

// The stream, and the rule. (The host's stream: of what lives on the host.)
typedef struct kind_rule {
    tr_stream stream;
    void (*rule)(tr_proof *);
} kind_rule;

static const kind_rule rules[TR_STEP_KINDS] = {
    [TR_STEP_load] = {TR_STREAM_DATA, tr__rule_load},
    [TR_STEP_read] = {TR_STREAM_NVME, tr__rule_read},
    [TR_STEP_fetch] = {TR_STREAM_COPY, rule_fetch},
    [TR_STEP_gather] = {TR_STREAM_COMM, tr__rule_gather},
    [TR_STEP_forward] = {TR_STREAM_COMPUTE, tr__rule_forward},
    [TR_STEP_pack] = {TR_STREAM_COMPUTE, tr__rule_pack},
    [TR_STEP_merge] = {TR_STREAM_COMPUTE, tr__rule_merge},
    [TR_STEP_recompute] = {TR_STREAM_COMPUTE, tr__rule_recompute},
    [TR_STEP_backward] = {TR_STREAM_COMPUTE, tr__rule_backward},
    [TR_STEP_micro_norm] = {TR_STREAM_COMPUTE, tr__rule_micro_norm},
    [TR_STEP_micro_norm_tied] = {TR_STREAM_COMPUTE, tr__rule_micro_norm_tied},
    [TR_STEP_accumulate] = {TR_STREAM_COMPUTE, tr__rule_accumulate},
    [TR_STEP_reduce] = {TR_STREAM_COMM, tr__rule_reduce},
    [TR_STEP_gradient_squares] = {TR_STREAM_HOST, tr__rule_gradient_squares},
    [TR_STEP_evict] = {TR_STREAM_COPY, rule_evict},
    [TR_STEP_add] = {TR_STREAM_HOST, tr__rule_add},
    [TR_STEP_write] = {TR_STREAM_NVME, tr__rule_write},
    [TR_STEP_unload] = {TR_STREAM_DATA, tr__rule_unload},
    [TR_STEP_clear] = {TR_STREAM_COMPUTE, tr__rule_clear},
    [TR_STEP_norm] = {TR_STREAM_COMPUTE, tr__rule_norm},
    [TR_STEP_direction_norms] = {TR_STREAM_HOST, tr__rule_direction_norms},
    [TR_STEP_tensor_norms] = {TR_STREAM_COMPUTE, tr__rule_tensor_norms},
    [TR_STEP_update] = {TR_STREAM_HOST, tr__rule_update},
    [TR_STEP_track] = {TR_STREAM_COMPUTE, tr__rule_track},
    [TR_STEP_report] = {TR_STREAM_DATA, tr__rule_report},
    [TR_STEP_decide] = {TR_STREAM_DATA, tr__rule_decide},
};

// Is what the step works on on the host, or staged there? Gradients that go on to the
// file are measured on the device.
static bool is_on_host(const tr_proof *p) {
    int32_t f = p->step->unit;
    if (f < 0 || f >= (int64_t)p->plan->flat_count || !p->plan->flats[f].offloaded) {
        return false;
    }
    tr_kept grads = tr__kept_part(p, f, TR_PART_GRAD);
    return p->step->kind != TR_STEP_gradient_squares || !tr__is_in_file(p, &grads);
}

// Does the host exchange what lies on the host, while devices exchange the rest?
static bool is_exchanged_by_host(const tr_proof *p) {
    bool norms = p->step->part == TR_PART_NORMS;
    return p->plan->request.peers && p->step->kind == TR_STEP_gather &&
           (p->step->part == TR_PART_STATISTICS ||
            (norms && tr__norms_place(p) == TR_SPACE_HOST));
}

// Does it add what devices have reduced, in their queue?
static bool adds_reduced(const tr_proof *p) {
    int32_t f = p->step->unit;
    return p->plan->request.peers && p->step->kind == TR_STEP_add && f >= 0 &&
           f < (int64_t)p->plan->flat_count && !p->plan->flats[f].offloaded;
}

static tr_stream stream_of(const tr_proof *p) {
    tr_stream stream = rules[p->step->kind].stream;
    if (is_exchanged_by_host(p)) {
        return TR_STREAM_DATA;
    }
    if (adds_reduced(p)) {
        return TR_STREAM_COMM;
    }
    return stream == TR_STREAM_HOST && !is_on_host(p) ? TR_STREAM_COMPUTE : stream;
}

static void name_buffers(tr_proof *p) {
    for (size_t i = 0; i < p->step->payload.operand_count; i++) {
        const tr_step_operand *operand = tr__step_operand(p->plan, p->step, i);
        if (operand->buffer != -1) {
            tr__tenants_name(p, operand->buffer);
        } else if (tr__operand_bytes(operand) > 0) {
            tr__proof_wrong(p, "names no buffer for its operand %zu", i);
        }
    }
}

static void check_there(tr_proof *p, int32_t buffer) {
    if (buffer >= 0 && p->plan->buffers[buffer].sequence >= 0 && p->held[buffer].gone) {
        tr__proof_wrong(p, "names buffer %d, whose memory another buffer has taken",
                        (int)buffer);
    }
}

// All that the step names is there at once.
static void check_named(tr_proof *p) {
    for (size_t i = 0; i < p->step->payload.operand_count && p->status == TR_OK; i++) {
        check_there(p, tr__step_operand(p->plan, p->step, i)->buffer);
    }
}

// Whoever notes something in the statistics notes it for this step: they are cleared
// before all else.
static void check_cleared(tr_proof *p) {
    bool clears = p->step->kind == TR_STEP_clear && p->step->part != TR_PART_GRAD;
    if (p->kind == TR_SEQUENCE_TRAIN && !p->stopped && !p->settles && !clears &&
        !p->walked.cleared) {
        tr__proof_wrong(p, "comes before the statistics are cleared");
    }
}

void tr__rule_apply(tr_proof *p) {
    const kind_rule *rule = &rules[p->step->kind];
    p->spoilt = p->spoilt_zeros = false;
    tr__payload_begin(p);
    name_buffers(p);
    check_named(p);
    if (p->step->stream != stream_of(p)) {
        tr__proof_wrong(p, "is on the %s stream", tr__stream_name(p->step->stream));
    }
    check_cleared(p);
    if (p->step->group != 0 && rule->stream != TR_STREAM_COMM) {
        tr__proof_wrong(p, "names a group of ranks for nothing");
    }
    if (p->status == TR_OK) {
        rule->rule(p);
    }
    if (p->status == TR_OK) {
        tr__payload_check(p);
    }
}

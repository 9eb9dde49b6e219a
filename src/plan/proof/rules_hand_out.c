// The rule of what goes to the caller: the outputs of a micro-batch. What comes back is
// the gradient of this micro-batch's loss by them, and that loss.
#include "plan/proof/unit.h"

// All of an operand, in memory that the caller reaches.
static tr_bytes whole(tr_proof *p, size_t operand, int64_t bytes) {
    const tr_step_operand *at = tr__step_operand(p->plan, p->step, operand);
    const tr_plan_request *r = &p->plan->request;
    bool copied = r->discrete && !r->parts_on_device;
    tr_space space = copied ? TR_SPACE_HOST : TR_SPACE_DEVICE;
    bool there = at->buffer >= 0 && p->plan->buffers[at->buffer].sequence >= 0 &&
                 p->plan->buffers[at->buffer].space == space && at->first == 0 &&
                 at->end == bytes;
    if (!there) {
        tr__proof_wrong(p,
                        "hands out other bytes than the outputs and their gradients");
    }
    return (tr_bytes){at->buffer, at->first, at->end};
}

// The caller's loss stands where the model's would.
static void note_loss(tr_proof *p) {
    const tr_meaning zeros = {.kind = TR_MEANS_ZEROS};
    tr_meaning loss = {.kind = TR_MEANS_LOSS,
                       .index = p->step->micro,
                       .terms = 1,
                       .sum = tr__contribution(p->plan->unit_count, 0, 0)};
    int64_t first = p->plan->statistics.sums + p->step->micro * TR_SUMS;
    tr__bytes_change(p, tr__statistics_bytes(p, first, TR_SUMS), &zeros, &loss);
}

static bool is_in_turn(tr_proof *p) {
    int last = tr__proof_segments(p) - 1;
    bool next = p->step->micro == p->walked.handed++;
    return next && *tr__proof_done(p, p->walked.forward, last) > p->step->micro;
}

void tr__rule_hand_out(tr_proof *p) {
    const tr_plan_step *step = p->step;
    bool trains = tr__proof_trains(p);
    size_t operands = trains ? 3 : 1;
    if (!tr__unit_is_of_model(p)) {
        return;
    }
    if (!p->plan->hands_out || step->unit != p->plan->unit_count - 1 ||
        step->payload.operand_count != operands) {
        tr__proof_wrong(p, "hands out what nobody has asked for");
        return;
    }
    if (!is_in_turn(p)) {
        tr__proof_wrong(p, "is out of its turn");
        return;
    }
    const tr_unit_program *unit = tr__proof_unit(p);
    tr_meaning outputs = tr__input_meaning(p, step->unit + 1);
    tr__bytes_read(p, whole(p, TR_HAND_OUT_OUTPUTS, unit->output_bytes), &outputs);
    if (trains) {
        tr_meaning gradients = tr__input_gradient_meaning(p, step->unit + 1);
        tr__bytes_write(p, whole(p, TR_HAND_OUT_GRADIENTS, unit->output_grad_bytes),
                        &gradients);
        note_loss(p);
    }
}

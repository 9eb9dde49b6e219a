// Which rule is a step's: by its shape, and by what it launches or moves.
#include "ops/flat/accumulate/accumulate.h"
#include "ops/flat/copy/copy.h"
#include "ops/flat/exact_sums/exact_sums.h"
#include "ops/flat/gradient_squares/gradient_squares.h"
#include "ops/flat/merge/merge.h"
#include "ops/flat/orthogonal/orthogonal.h"
#include "ops/flat/update/update.h"
#include "ops/flat/zero/zero.h"
#include "plan/proof/proof.h"

typedef void rule(tr_proof *p);

// The rule, and the stream that the step belongs on.
typedef struct applied {
    rule *rule; // NULL: nobody knows what the step does
    tr_stream stream;
} applied;

static void copy_nothing(tr_proof *p) {
    (void)p;
}

static const tr_step_operand *operand(const tr_proof *p, size_t i) {
    return tr__step_operand(p->plan, p->step, i);
}

// ---- launches

static applied rule_of_program(tr_variant variant) {
    static rule *const rules[TR_VARIANTS] = {
        [TR_VARIANT_FORWARD] = tr__rule_forward,
        [TR_VARIANT_SAVES_NOTHING] = tr__rule_forward,
        [TR_VARIANT_EVALUATE] = tr__rule_forward,
        [TR_VARIANT_BACKWARD] = tr__rule_backward,
        [TR_VARIANT_RECOMPUTE] = tr__rule_recompute,
        [TR_VARIANT_INFERENCE] = tr__rule_forward,
        [TR_VARIANT_TRACK] = tr__rule_track,
    };
    return (applied){rules[variant], TR_STREAM_COMPUTE};
}

static tr_stream where_it_lives(const tr_proof *p) {
    const tr_flat *flat = tr__proof_flat(p);
    return flat && flat->offloaded ? TR_STREAM_HOST : TR_STREAM_COMPUTE;
}

// Into which entry of this rank's statistics the step's only result goes; -1: none.
static int64_t entry_of(const tr_proof *p) {
    const tr_step_operand *out = operand(p, p->step->payload.operand_count - 1);
    tr_bytes own = tr__statistics_bytes(p, 0, 0);
    return out->buffer == own.buffer
               ? (out->first - own.first) / (int64_t)sizeof(double)
               : -1;
}

static applied rule_of_squares(const tr_proof *p) {
    tr_kept grads = {.buffer = -1};
    if (p->step->mark == TR_MARK_NORM) {
        return (applied){tr__rule_norm, TR_STREAM_COMPUTE};
    }
    if (tr__proof_flat(p)) {
        grads = tr__kept_part(p, p->step->unit, TR_PART_GRAD);
    }
    // Gradients that go on to the file are measured on the device.
    return (applied){tr__rule_gradient_squares,
                     tr__is_in_file(p, &grads) ? TR_STREAM_COMPUTE : where_it_lives(p)};
}

// Of gradients to sums of another type; or of sums to others, where they live, or, of
// what devices have reduced, in their queue.
static applied rule_of_addition(const tr_proof *p) {
    const tr_op_launch *launch = &p->plan->launches[p->step->payload.op];
    const tr_op_desc *desc = &p->plan->prepared[launch->op].desc;
    tr_stream home = where_it_lives(p);
    if (desc->in[0].dtype != desc->out[0].dtype) {
        return (applied){tr__rule_accumulate, TR_STREAM_COMPUTE};
    }
    bool stays = tr__proof_flat(p) && !tr__flat_evicts_scopes(p->plan, p->step->unit);
    bool reduced = p->plan->request.peers && stays;
    return (applied){tr__rule_add, reduced ? TR_STREAM_COMM : home};
}

// Ops that have one rule, whatever they are launched on.
static const struct {
    const tr_op *op;
    rule *rule;
    bool at_home; // where the flat buffer lives
} op_rules[] = {
    {&tr__op_update, tr__rule_update, true},
    {&tr__op_direction_squares, tr__rule_direction_norms, true},
    {&tr__op_exact_values, tr__rule_tensor_norms, false},
    {&tr__op_direction, tr__rule_direction, true},
    {&tr__op_orthogonal, tr__rule_orthogonal, true},
    {&tr__op_pack, tr__rule_pack, false},
    {&tr__op_merge, tr__rule_merge, false},
    {&tr__op_copy, tr__rule_keep_first_wave, false},
};

static applied rule_of_op(const tr_proof *p, const tr_op *op) {
    for (size_t i = 0; i < sizeof op_rules / sizeof *op_rules; i++) {
        if (op_rules[i].op == op) {
            return (applied){op_rules[i].rule, op_rules[i].at_home ? where_it_lives(p)
                                                                   : TR_STREAM_COMPUTE};
        }
    }
    return (applied){NULL, TR_STREAM_COMPUTE};
}

static applied rule_of_ops(const tr_proof *p) {
    const tr_op *op = tr__step_op(p->plan, p->step);
    if (!op) { // an update of no elements; the norm of what is measured elsewhere
        return (applied){tr__proof_flat(p) ? tr__rule_update : tr__rule_norm,
                         where_it_lives(p)};
    }
    if (op == &tr__op_exact_sums) {
        bool squares = operand(p, 0)->buffer == p->plan->statistics.squares;
        return (applied){squares ? tr__rule_square_sums : tr__rule_tensor_sums,
                         TR_STREAM_COMPUTE};
    }
    if (op == &tr__op_zero) {
        bool statistics = operand(p, 0)->buffer == p->plan->statistics.buffer;
        return (applied){statistics ? tr__rule_clear_statistics
                                    : tr__rule_clear_gradients,
                         TR_STREAM_COMPUTE};
    }
    if (op == &tr__op_sum_of_squares) {
        bool own = entry_of(p) == TR_STATISTICS_SQUARES;
        return (applied){own ? tr__rule_micro_norm : tr__rule_micro_norm_tied,
                         TR_STREAM_COMPUTE};
    }
    return op == &tr__op_gradient_squares ? rule_of_squares(p)
           : op == &tr__op_accumulate     ? rule_of_addition(p)
                                          : rule_of_op(p, op);
}

// ---- all other shapes

// Where devices exchange by themselves, the host does so with what lies on it.
static applied rule_of_exchange(const tr_proof *p) {
    const tr_exchange *exchange = &p->step->payload.exchange;
    bool on_host =
        exchange->part == TR_PART_STATISTICS ||
        (exchange->part == TR_PART_NORMS && tr__norms_place(p) == TR_SPACE_HOST) ||
        (exchange->part == TR_PART_DIRECTION && p->plan->request.discrete &&
         where_it_lives(p) == TR_STREAM_HOST);
    bool gathers = exchange->kind == TR_COMM_GATHER;
    bool inside = exchange->part == TR_PART_TENSOR || exchange->part == TR_PART_LARGEST;
    bool parts = exchange->part == TR_PART_GRAD && exchange->group != TR_ON_DATA;
    rule *its = inside                                 ? tr__rule_exchange_tensor
                : exchange->part == TR_PART_BOUNDARY   ? tr__rule_message
                : exchange->part == TR_PART_NORMS      ? tr__rule_exchange_norms
                : exchange->part == TR_PART_FIRST_WAVE ? tr__rule_sum_first_wave
                : parts                                ? tr__rule_sum_parts
                : gathers                              ? tr__rule_gather
                : exchange->part == TR_PART_GRAD       ? tr__rule_reduce
                                                       : NULL;
    bool peers = p->plan->request.peers;
    tr_stream of_ranks = peers && on_host ? TR_STREAM_DATA
                         : inside         ? TR_STREAM_TENSOR
                                          : TR_STREAM_COMM;
    return (applied){its, its == tr__rule_message ? tr__message_stream(p) : of_ranks};
}

static bool is_on_device(const tr_proof *p, size_t i) {
    int32_t buffer = operand(p, i)->buffer;
    return buffer >= 0 && p->plan->buffers[buffer].space == TR_SPACE_DEVICE;
}

// Parameters and gradients of flat buffers have rules for their ways; any other copy
// takes along what is there. A rank without a part of them copies nothing, in either
// direction.
static applied rule_of_copy(const tr_proof *p) {
    bool fetches = is_on_device(p, TR_COPY_TO), evicts = is_on_device(p, TR_COPY_FROM);
    rule *its = !tr__proof_flat(p) ? tr__rule_copy
                : fetches          ? tr__rule_fetch
                : evicts           ? tr__rule_evict
                                   : copy_nothing;
    bool out = p->plan->request.discrete && evicts && !fetches;
    bool any = its == copy_nothing && p->step->stream == TR_STREAM_COPY_OUT;
    return (applied){its, out || any ? TR_STREAM_COPY_OUT : TR_STREAM_COPY};
}

static rule *rule_of_call(tr_host_call call) {
    return call == TR_HOST_DECIDE     ? tr__rule_decide
           : call == TR_HOST_HAND_OUT ? tr__rule_hand_out
                                      : tr__rule_report;
}

static applied rule_of(const tr_proof *p) {
    const tr_payload *payload = &p->step->payload;
    const tr_program *program = tr__payload_program(p->step);
    switch (p->step->shape) {
    case TR_STEP_IS_LAUNCH:
        return program ? rule_of_program(program->variant) : rule_of_ops(p);
    case TR_STEP_IS_COPY:
        return rule_of_copy(p);
    case TR_STEP_IS_EXCHANGE:
        return rule_of_exchange(p);
    case TR_STEP_IS_FILE:
        return (applied){tr__step_reads_file(p->plan, p->step) ? tr__rule_read
                                                               : tr__rule_write,
                         TR_STREAM_NVME};
    case TR_STEP_IS_FEED:
        return (applied){payload->gives_back ? tr__rule_unload : tr__rule_load,
                         TR_STREAM_DATA};
    default:
        return (applied){rule_of_call(payload->call), TR_STREAM_DATA};
    }
}

bool tr__decides(const tr_plan_step *step) {
    return step->shape == TR_STEP_IS_HOST && step->payload.call == TR_HOST_DECIDE;
}

// ---- what all rules share

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
static void check_cleared(tr_proof *p, const applied *of) {
    bool clears = of->rule == tr__rule_clear_statistics;
    if (p->kind == TR_SEQUENCE_TRAIN && !p->stopped && !p->settles && !clears &&
        !p->walked.cleared) {
        tr__proof_wrong(p, "comes before the statistics are cleared");
    }
}

void tr__rule_apply(tr_proof *p) {
    p->spoilt = p->spoilt_zeros = false;
    tr__payload_begin(p);
    name_buffers(p);
    check_named(p);
    if (p->status != TR_OK) {
        return;
    }
    applied of = rule_of(p);
    if (!of.rule) {
        tr__proof_wrong(p, "does what no rule knows");
    } else if (p->step->stream != of.stream) {
        tr__proof_wrong(p, "is on the %s stream", tr__stream_name(p->step->stream));
    }
    check_cleared(p, &of);
    if (p->status == TR_OK) {
        of.rule(p);
    }
    if (p->status == TR_OK) {
        tr__payload_check(p);
    }
}

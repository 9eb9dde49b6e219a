// One program of a unit, instruction by instruction.
#include "plan/units/compiler.h"

#include "backend/backend.h"
#include "base/checked.h"
#include "base/memory.h"
#include "plan/units/finite.h"

#include <string.h>

// Where the kernels of this op have what they pack of this parameter.
static tr_status place_packed(tr_compiler *c, tr_variant variant, tr_value param,
                              tr_instruction *to) {
    bool backward = variant == TR_VARIANT_BACKWARD; // and no forward has had it
    for (size_t i = 0; i < c->packing_count; i++) {
        const tr_packed_param *known = &c->packings[i];
        if (known->op == to->desc.op && known->param == param) {
            to->packed = known->at;
            return TR_OK;
        }
    }
    if (!tr__grow((void **)&c->packings, &c->packing_capacity, c->packing_count + 1,
                  sizeof *c->packings)) {
        return tr_fail(c->err, TR_MEMORY, "no memory for the program of unit %s",
                       c->unit->kind);
    }
    int64_t *end = &c->unit->packed_bytes[backward];
    to->packed =
        (tr_operand){.place = backward ? TR_PLACE_PACKED_BACKWARD : TR_PLACE_PACKED,
                     .offset = *end,
                     .value = TR_NO_VALUE};
    *end += tr__round_up(to->packed_bytes, TR_ALIGNMENT);
    c->packings[c->packing_count++] = (tr_packed_param){to->desc.op, param, to->packed};
    return TR_OK;
}

static tr_status pack(tr_compiler *c, tr_variant variant, const tr_call *call,
                      tr_instruction *to) {
    bool packs = to->desc.packs && to->kernel->packed;
    to->packed_bytes = packs ? (int64_t)to->kernel->packed(&to->desc, to->state) : 0;
    return to->packed_bytes > 0
               ? place_packed(c, variant, tr__packed_param(c, call), to)
               : TR_OK;
}

// Between which ranks the call's result is summed; 0: there is no other one.
static tr_axes exchange_of(const tr_compiler *c, const tr_call *call) {
    uint32_t axes = 0;
    if (call->op->flags & TR_OP_EXCHANGE) {
        memcpy(&axes, call->attr, sizeof axes);
    }
    return axes && tr__mesh_members(&c->request->plan->mesh, axes) > 1 ? axes : 0;
}

enum { SHARING_MOST = 3 }; // calls from one that leaves to one that finds

// Does one of the calls that follow work on what this one makes of its first input?
static bool leaves(const tr_compiler *c, const tr_kernel *kernel,
                   const tr_op_desc *desc, const tr_call *call, size_t left) {
    bool together = kernel->shares && !exchange_of(c, call);
    for (size_t i = 1; i <= SHARING_MOST && i < left && together; i++) {
        const tr_call *next = &call[i];
        tr_op_desc other = tr__call_desc(c, next);
        if (next->weights != call->weights) {
            return false;
        }
        if (next->in_count > 0 && next->in[0] == call->in[0] &&
            tr__kernel_find(&other) == kernel && kernel->shares(desc, &other)) {
            return true;
        }
        together = !exchange_of(c, next);
    }
    return false;
}

static bool writes_to(const tr_instruction *at, const tr_operand *operand) {
    bool writes = false;
    for (int i = 0; i < at->desc.out_count; i++) {
        const tr_operand *out = &at->out[i];
        writes =
            writes || (out->place == operand->place && out->flat == operand->flat &&
                       out->offset == operand->offset);
    }
    return writes;
}

// So many instructions before it is the one that leaves what this one finds; 0: none
// does. Until now what that one works in lives. Both are of one piece (pieces.c).
static size_t find_shared(tr_draft *d, const tr_instruction *at, bool weights) {
    size_t count = d->program->count, first = weights ? d->program->weights_at : 0;
    for (size_t i = 1; first + i <= count && at->kernel->shares; i++) {
        const tr_instruction *before = at - i;
        if (before->exchange || before[1].takes || writes_to(before, &at->in[0])) {
            return 0;
        }
        if (before->desc.leaves && before->in[0].value == at->in[0].value &&
            before->kernel == at->kernel &&
            at->kernel->shares(&before->desc, &at->desc)) {
            d->temps[before->workspace].last = (int32_t)count;
            return i;
        }
    }
    return 0;
}

// An op of a forward, in a backward: unless no forward makes its results.
static bool makes_again(const tr_compiler *c, const tr_draft *d, const tr_call *call) {
    bool late = false;
    for (int i = 0; i < call->out_count; i++) {
        tr_value value = call->out[i];
        late = late || (value != TR_NO_VALUE && c->graph->values[value].late);
    }
    return d->variant == TR_VARIANT_RECOMPUTE ||
           (d->variant == TR_VARIANT_BACKWARD && call->op->backward && !late);
}

static tr_status add_instruction(tr_compiler *c, tr_draft *d, const tr_call *call,
                                 size_t left) {
    tr_instruction *to = &d->program->instructions[d->program->count];
    size_t workspace = 0;
    *to = (tr_instruction){.accumulate = call->accumulate,
                           .first = call->first,
                           .again = makes_again(c, d, call),
                           .exchange = exchange_of(c, call),
                           .desc = tr__call_desc(c, call)};
    // An evaluation has one micro-batch: its kernels pack into their workspace.
    to->desc.packs = to->desc.packs && d->variant != TR_VARIANT_EVALUATE;
    to->kernel = tr__kernel_find(&to->desc);
    if (!to->kernel) {
        return tr_fail(
            c->err, TR_USAGE,
            "unit %s: the %s backend has no kernel for op %s of this shape "
            "and type%s",
            c->unit->kind, tr__backend(to->desc.target.backend)->name, call->op->name,
            c->request->fp8 ? ": without fp8 there may be one "
                              "(docs/precision.md, \"Products in fp8\")"
            : to->desc.target.backend != TR_BACKEND_HOST ? ": set \"device\" to \"cpu\""
                                                         : "");
    }
    for (int i = 0; i < call->in_count; i++) {
        bool read = !(call->op->shape_only >> i & 1);
        to->in[i] = read ? tr__value_place(c, d, call->in[i])
                         : (tr_operand){.place = TR_PLACE_NONE};
    }
    for (int i = 0; i < call->out_count; i++) {
        to->out[i] = tr__value_place(c, d, call->out[i]);
    }
    tr__instruction_pad(c, call, to);
    to->takes = call->weights ? 0 : tr__draft_takes(d, to);
    to->shared = find_shared(d, to, call->weights);
    to->desc.finds = to->shared > 0;
    to->desc.leaves = !to->desc.finds && leaves(c, to->kernel, &to->desc, call, left);
    if (to->kernel->prepare) {
        tr_status status = to->kernel->prepare(&to->desc, &to->state, c->err);
        if (status != TR_OK) {
            return status;
        }
    }
    if (to->kernel->workspace) {
        workspace = to->kernel->workspace(&to->desc, to->state);
    }
    to->workspace = tr__draft_workspace(d, workspace);
    tr_status packed = pack(c, d->variant, call, to);
    if (packed != TR_OK) {
        return packed;
    }
    tr__draft_take(d);
    return TR_OK;
}

static tr_status draft_begin(tr_compiler *c, tr_draft *d, size_t calls) {
    size_t values = c->graph->value_count;
    calls *= tr__checks_finite(c->request, d->variant) ? 1 + TR_OP_OUT_MAX : 1;
    d->program->instructions = tr__calloc(calls, sizeof *d->program->instructions);
    d->temp_of = tr__calloc(values, sizeof *d->temp_of);
    d->temps = tr__calloc(values + calls, sizeof *d->temps);
    if (!d->program->instructions || !d->temp_of || !d->temps) {
        return tr_fail(c->err, TR_MEMORY, "no memory for the program of unit %s",
                       c->unit->kind);
    }
    for (size_t i = 0; i < values; i++) {
        d->temp_of[i] = -1;
    }
    return TR_OK;
}

// Sizes the temporaries, and lays them out.
static tr_status draft_end(tr_compiler *c, tr_draft *d) {
    for (size_t v = 0; v < c->graph->value_count; v++) {
        if (d->temp_of[v] >= 0) {
            d->temps[d->temp_of[v]].bytes = tr__value_bytes(c, (tr_value)v);
        }
    }
    return tr__draft_lay_out(c, d);
}

tr_status tr__program_compile(tr_compiler *c, tr_variant variant, const tr_call *calls,
                              size_t count, tr_program *program) {
    tr_draft d = {.program = program, .variant = variant};
    program->variant = variant;
    tr_status status = draft_begin(c, &d, count);
    for (size_t i = 0; i < count && status == TR_OK; i++) {
        status = add_instruction(c, &d, &calls[i], count - i);
        if (status == TR_OK && tr__checks_finite(c->request, variant)) {
            status = tr__draft_check_finite(c, &d);
        }
        program->weights_at = calls[i].weights ? program->weights_at : program->count;
    }
    if (status == TR_OK) {
        status = draft_end(c, &d);
    }
    tr__free(d.temp_of);
    tr__free(d.temps);
    return status;
}

#include "plan/spoil_programs.h"

#include "ops/flat/copy/copy.h"
#include "plan/units/offsets.h"

#include <string.h>

typedef void (*program_spoiler)(tr_plan *plan, const test_finder *find,
                                tr_program *program);

// A unit of several segments is not recomputed from its boundary, and what a step of
// `track` does to states is checked where it runs.
static bool is_checked(const tr_unit_program *unit, tr_variant role) {
    bool again = role == TR_VARIANT_SAVES_NOTHING || role == TR_VARIANT_RECOMPUTE;
    return role != TR_VARIANT_TRACK && (!again || unit->segments == 1);
}

static void each_program(tr_plan *plan, const test_finder *find,
                         program_spoiler spoil) {
    for (int u = 0; u < plan->unit_count; u++) {
        tr_unit_program *unit = plan->units[u].program;
        if (!plan->units[u].owns_program) {
            continue;
        }
        for (int i = 0; i < unit->first_of[TR_VARIANTS]; i++) {
            if (is_checked(unit, unit->programs[i].variant)) {
                spoil(plan, find, &unit->programs[i]);
            }
        }
    }
}

static void move_operands(tr_plan *plan, const test_finder *find, tr_program *program) {
    for (size_t i = 0; i < program->count; i++) {
        tr_instruction *at = &program->instructions[i];
        for (int k = 0; k < at->desc.in_count + at->desc.out_count; k++) {
            bool in = k < at->desc.in_count;
            tr_operand *operand = in ? &at->in[k] : &at->out[k - at->desc.in_count];
            tr_operand right = *operand;
            const int64_t by[] = {-TR_ALIGNMENT, 4, TR_ALIGNMENT, INT64_C(1) << 40};
            for (int d = 0; d < 4 && right.place != TR_PLACE_NONE; d++) {
                operand->offset += by[d];
                // The result may have found room elsewhere that nobody uses.
                bool free_room = !in && right.place == TR_PLACE_TEMP && d < 3;
                if (!free_room) {
                    find->must_find(plan, find->subject, "an operand out of place",
                                    (int)i, k);
                }
                *operand = right;
            }
        }
    }
}

void test_spoil_operands(tr_plan *plan, const test_finder *find) {
    each_program(plan, find, move_operands);
}

// Puts each result, and each workspace, on every other operand of its instruction.
static void stack_operands(tr_plan *plan, const test_finder *find,
                           tr_program *program) {
    for (size_t i = 0; i < program->count; i++) {
        tr_instruction *at = &program->instructions[i];
        size_t room =
            at->kernel->workspace ? at->kernel->workspace(&at->desc, at->state) : 0;
        for (int k = 0; k < at->desc.in_count + at->desc.out_count; k++) {
            const tr_operand *other =
                k < at->desc.in_count ? &at->in[k] : &at->out[k - at->desc.in_count];
            for (int r = 0; r < at->desc.out_count; r++) {
                tr_operand right = at->out[r];
                if (other != &at->out[r] && right.place != TR_PLACE_NONE &&
                    other->place != TR_PLACE_NONE) {
                    at->out[r] = *other;
                    find->must_find(plan, find->subject, "a result on another operand",
                                    (int)i, k);
                    at->out[r] = right;
                }
            }
            int64_t workspace = at->workspace;
            at->workspace = other->offset;
            if (other->place == TR_PLACE_TEMP && room > 0 && k >= at->desc.in_count) {
                find->must_find(plan, find->subject, "a workspace on a result", (int)i,
                                k);
            }
            at->workspace = workspace;
        }
    }
}

void test_spoil_stacks(tr_plan *plan, const test_finder *find) {
    each_program(plan, find, stack_operands);
}

// What is added to is there in any case: that a part is missing does not show.
static bool only_collects(const tr_instruction *at) {
    for (int k = 0; k < at->desc.out_count; k++) {
        tr_place place = at->out[k].place;
        bool adds = (at->accumulate | at->first) >> k & 1;
        if (place != TR_PLACE_NONE && place != TR_PLACE_LOGITS && !adds) {
            return false;
        }
    }
    return true;
}

static void remove_instructions(tr_plan *plan, const test_finder *find,
                                tr_program *program) {
    for (size_t i = 0; i < program->count; i++) {
        tr_instruction *at = &program->instructions[i], left_out = *at;
        size_t after = (program->count - i - 1) * sizeof *at;
        if (only_collects(at)) {
            continue;
        }
        memmove(at, at + 1, after);
        program->count--;
        find->must_find(plan, find->subject, "an instruction left out", (int)i, 0);
        memmove(at + 1, at, after);
        *at = left_out;
        program->count++;
    }
}

void test_spoil_instructions(tr_plan *plan, const test_finder *find) {
    each_program(plan, find, remove_instructions);
}

// Makes again what the forward made by another op, with other attributes, or from less.
static void recompute_otherwise(tr_plan *plan, const test_finder *find,
                                const tr_graph *graph, tr_program *program) {
    for (size_t i = 0; i < program->count; i++) {
        tr_instruction *at = &program->instructions[i], right = *at;
        const tr_value_info *info = &graph->values[at->out[0].value];
        if (at->out[0].value == TR_NO_VALUE || info->kind != TR_VALUE_NODE ||
            info->wave || info->sums) {
            continue;
        }
        for (size_t byte = 0; byte < at->desc.op->attr_bytes; byte++) {
            at->desc.attr[byte] ^= 1;
            find->must_find(plan, find->subject, "other attributes", (int)i, (int)byte);
            *at = right;
        }
        at->desc.op = &tr__op_copy;
        find->must_find(plan, find->subject, "another op", (int)i, 0);
        *at = right;
        at->desc.in_count--;
        find->must_find(plan, find->subject, "an operand less", (int)i, 0);
        *at = right;
    }
}

void test_spoil_recomputed(tr_plan *plan, const test_finder *find) {
    for (int u = 0; u < plan->unit_count && !plan->request.inference; u++) {
        tr_unit_program *unit = plan->units[u].program;
        if (plan->units[u].owns_program) {
            for (int i = 0; i < unit->first_of[TR_VARIANTS]; i++) {
                tr_variant role = unit->programs[i].variant;
                if (role == TR_VARIANT_RECOMPUTE || role == TR_VARIANT_BACKWARD) {
                    recompute_otherwise(plan, find, unit->graph, &unit->programs[i]);
                }
            }
        }
    }
}

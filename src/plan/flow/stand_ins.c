#include "plan/flow/stand_ins.h"

#include "base/memory.h"

static bool reach(tr_stand_ins *now, int32_t value) {
    size_t need = (size_t)value + 1;
    if (now->status != TR_OK) {
        return false;
    }
    if (need > now->count &&
        !tr__grow((void **)&now->of, &now->capacity, need, sizeof *now->of)) {
        now->status = tr_fail(now->err, TR_MEMORY, "no memory for the plan's values");
        return false;
    }
    for (; now->count < need; now->count++) {
        now->of[now->count] = (int32_t)now->count;
    }
    return true;
}

int32_t tr__stand_in(tr_stand_ins *now, int32_t value) {
    if (value < 0 || !reach(now, value)) {
        return -1;
    }
    if (now->of[value] < 0) {
        int32_t made = tr__plan_buffer(now->plan, now->plan->buffers[value], now->err);
        now->status = made < 0 ? TR_MEMORY : now->status;
        now->of[value] = made;
    }
    return now->of[value];
}

void tr__stand_in_renew(tr_stand_ins *now, int32_t value) {
    if (value >= 0 && reach(now, value)) {
        now->of[value] = -1;
    }
}

void tr__stand_in_step(tr_stand_ins *now, const tr_plan_step *step) {
    for (size_t i = 0; i < step->payload.operand_count; i++) {
        tr_step_operand *operand = tr__step_operand(now->plan, step, i);
        operand->buffer = tr__stand_in(now, operand->buffer);
    }
}

void tr__stand_ins_clear(tr_stand_ins *now) {
    tr__free(now->of);
    *now = (tr_stand_ins){0};
}

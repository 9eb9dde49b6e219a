#include "plan/check.h"

#include "plan/proof/prove.h"

// What lies where, inside of the units' programs and of the flat buffers.
static tr_status check_layout(const tr_plan *plan, tr_error *err) {
    tr_status status = tr__check_kept(plan, err);
    if (status == TR_OK) {
        status = tr__check_programs(plan, err);
    }
    return status == TR_OK ? tr__check_remade(plan, err) : status;
}

tr_status tr__plan_check(const tr_plan *plan, tr_error *err) {
    tr_status status = check_layout(plan, err);
    return status == TR_OK ? tr__plan_prove(plan, err) : status;
}

tr_status tr__plan_check_walk(const tr_plan *plan, tr_error *err) {
    tr_status status = check_layout(plan, err);
    if (status == TR_OK) {
        status = tr__check_memory(plan, err);
    }
    return status == TR_OK ? tr__check_steps(plan, err) : status;
}

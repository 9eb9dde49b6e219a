#include "plan/check.h"

tr_status tr__plan_check(const tr_plan *plan, tr_error *err) {
    tr_status status = tr__check_memory(plan, err);
    if (status == TR_OK) {
        status = tr__check_kept(plan, err);
    }
    if (status == TR_OK) {
        status = tr__check_programs(plan, err);
    }
    if (status == TR_OK) {
        status = tr__check_remade(plan, err);
    }
    return status == TR_OK ? tr__check_steps(plan, err) : status;
}

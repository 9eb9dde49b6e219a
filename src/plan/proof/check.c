#include "plan/proof/check.h"

#include "plan/flow/passes.h"
#include "plan/proof/prove.h"

// First what lies where inside of the units' programs and of the flat buffers, which
// the proof of the steps takes as given.
tr_status tr__plan_check(const tr_plan *plan, tr_error *err) {
    tr_status status = tr__check_kept(plan, err);
    if (status == TR_OK) {
        status = tr__check_programs(plan, err);
    }
    if (status == TR_OK) {
        status = tr__check_pieces(plan, err);
    }
    if (status == TR_OK) {
        status = tr__check_parts(plan, err);
    }
    if (status == TR_OK) {
        status = tr__check_recomputed(plan, err);
    }
    return status == TR_OK ? tr__plan_prove(plan, err) : status;
}

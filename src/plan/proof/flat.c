// The flat buffer that a step says it is of.
#include "plan/proof/proof.h"
#include "plan/proof/unit.h"

const tr_flat *tr__proof_flat(const tr_proof *p) {
    bool some = p->step->subject == TR_OF_FLAT && p->step->unit >= 0 &&
                p->step->unit < (int64_t)p->plan->flat_count;
    return some ? &p->plan->flats[p->step->unit] : NULL;
}

bool tr__proof_has_flat(tr_proof *p) {
    if (!tr__proof_flat(p)) {
        tr__proof_wrong(p, "is of what the model has not");
    }
    return p->status == TR_OK;
}

bool tr__proof_trains_flat(tr_proof *p, const char *frozen) {
    const tr_flat *flat = tr__proof_flat(p);
    if (!flat || !tr__proof_trains(p)) {
        tr__proof_wrong(p, "is of what the model has not");
    } else if (flat->frozen) {
        tr__proof_wrong(p, "%s", frozen);
    }
    return p->status == TR_OK;
}

// How many logits of a vocabulary a GPU makes at once, where the file leaves it open:
// more of them take more of its memory, and let it read and write the gradient of the
// weight less often. Each chunk is one product, whose sums the gradient adds up, so the
// gradient's bits depend on it: a run goes on with what its checkpoint had.
#include "base/checked.h"
#include "comm/alone.h"
#include "files/checkpoint/state.h"
#include "run/run.h"

static const char key[] = "execution.logits_mib", kept[] = "logits_mib";

// Of the device's budget a thirty-second part, in whole powers of two.
enum { PARTS = 32, LEAST_MIB = 16, MOST_MIB = 1024 };

static int64_t mib_of(int64_t budget) {
    int64_t mib = MOST_MIB;
    while (mib > LEAST_MIB && mib << 20 > budget / PARTS) {
        mib /= 2;
    }
    return mib;
}

static int64_t choose(const tr_run *run) {
    tr_planner_request budgets = {.free = 0};
    tr_state state;
    double before = 0;
    if (tr__run_find_kept(run, &state) &&
        tr__state_numbers_get(&state.numbers, kept, &before) && before >= 1) {
        return (int64_t)before;
    }
    tr__run_set_budgets(run, run->given.parts.machine, false, &budgets);
    return mib_of(budgets.budget[TR_SPACE_DEVICE]);
}

tr_status tr__run_resolve_logits(tr_run *run, tr_error *err) {
    tr_plan_request *r = &run->request;
    bool open = r->backend != TR_BACKEND_HOST && tr__config_is_auto(run->config, key);
    int64_t mib = open && tr__comm_leads(run->comm) ? choose(run) : 0;
    if (!open) {
        return TR_OK;
    }
    if (tr__comm_count(run->comm) > 1) {
        tr_status status = tr__comm_broadcast(run->comm, 0, &mib, sizeof mib, err);
        if (status != TR_OK) {
            return status;
        }
    }
    r->logits_mib = mib;
    return tr__config_resolve_int(run->config, key, mib, TR_ORIGIN_AUTO,
                                  "a part of the device's memory", err);
}

void tr__run_keep_logits(const tr_run *run, tr_state_numbers *numbers) {
    if (run->request.backend != TR_BACKEND_HOST) {
        tr__state_numbers_set(numbers, kept, (double)run->request.logits_mib);
    }
}

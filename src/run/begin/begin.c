// The beginning of a run: do its plans fit, now and later; it takes its out folder and
// says what it will do.
#include "base/arguments.h"
#include "base/checked.h"
#include "comm/alone.h"
#include "plan/flow/plan.h"
#include "run/run.h"

// Is the plan of a batch that the run may come to within all limits? Collective.
static tr_status fits_at(const tr_run *run, const tr_plan *plan, int64_t batch,
                         tr_error *err) {
    tr_plan *later = NULL;
    tr_status status = tr__run_replan(run, plan, batch, &later, err);
    tr_plan_destroy(later);
    return status;
}

// An adaptive batch grows as far as there is memory: between `fits` and `most`, which
// does not fit, as whole micro-batches of all ranks.
static tr_status limit_batch(tr_run *run, const tr_plan *plan, int64_t fits,
                             int64_t most, tr_error *err) {
    tr_batches *batches = &run->settings.batches;
    while (most - fits > batches->multiple) {
        int64_t middle = fits + tr__round_up((most - fits) / 2, batches->multiple);
        middle = tr__min_i64(middle, most - 1);
        tr_error why = {0};
        tr_status status = fits_at(run, plan, middle, &why);
        if (status != TR_OK && status != TR_BUDGET) {
            return tr_fail(err, status, "%s", why.message);
        }
        if (status == TR_OK) {
            fits = middle;
        } else {
            most = middle;
        }
    }
    tr__warn(&run->log,
             "adaptive_batch.most is %lld, but the memory is enough for %lld: the "
             "batch grows no further",
             (long long)batches->most, (long long)fits);
    batches->most = fits;
    return TR_OK;
}

// The largest batch that the run may come to, before anything is begun. Collective.
static tr_status fits_later(tr_run *run, const tr_plan *plan, tr_error *err) {
    const tr_batches *batches = &run->settings.batches;
    int64_t first = plan->request.train_batch_size;
    int64_t largest = tr__batches_largest(batches);
    tr_error why = {0};
    tr_status status = largest > first ? fits_at(run, plan, largest, &why) : TR_OK;
    if (status == TR_BUDGET && batches->adaptive) {
        return limit_batch(run, plan, first, largest, err);
    }
    return status == TR_OK
               ? TR_OK
               : tr_fail(err, status,
                         "later in this run the effective batch is %lld: %.900s",
                         (long long)largest, why.message);
}

tr_status tr_run_begin(tr_run *run, const tr_plan *plan, tr_error *err) {
    tr_error mine = {0};
    tr_status status = tr__run_need_resolved(run, "tr_run_begin", err);
    if (status == TR_OK) {
        status = tr__need(plan, "tr_run_begin", "plan", err);
    }
    if (status == TR_OK) {
        status = tr__run_agree(run, plan, err);
    }
    if (status != TR_OK) {
        return status;
    }
    status = tr__run_check_patterns(run, plan, &mine);
    if (status == TR_OK) {
        status = tr__run_fits(run, plan, &mine);
    }
    status = tr__agree(run->comm, status, &mine, err);
    if (status == TR_OK) {
        status = fits_later(run, plan, err);
    }
    if (status != TR_OK) {
        return status;
    }
    status = tr__comm_leads(run->comm) ? tr__run_take_folder(run, &mine) : TR_OK;
    status = tr__agree(run->comm, status, &mine, err);
    double seconds = 0;
    if (status == TR_OK) {
        status = tr__run_predict(run, plan, &seconds, err);
    }
    if (status == TR_OK) {
        tr__run_announce(run, plan, seconds);
    }
    return status;
}

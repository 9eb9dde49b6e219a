// Changes of the effective batch: a list of steps, or the noise scale.
#include "base/checked.h"
#include "base/memory.h"
#include "models/fields.h"
#include "run/run.h"

#include <jansson.h>

static const double batch_most = 0x1p31; // as train_batch_size

static tr_status read_change(const json_t *pair, size_t index, tr_batch_change *out,
                             tr_error *err) {
    int64_t step = -1, batch = 0;
    bool good = json_array_size(pair) == 2 &&
                tr__field_whole(json_array_get(pair, 0), &step) &&
                tr__field_whole(json_array_get(pair, 1), &batch) && step >= 0 &&
                batch >= 1 && (double)batch <= batch_most;
    *out = (tr_batch_change){step, batch};
    return good ? TR_OK
                : tr_fail(
                      err, TR_USAGE,
                      "batch_schedule[%zu] is not a pair [step, batch] such as "
                      "[1000, 256]: so many steps done, and the effective batch from "
                      "then on",
                      index);
}

static tr_status read_list(tr_run *run, const json_t *list, tr_error *err) {
    tr_batches *b = &run->settings.batches;
    size_t count = json_array_size(list);
    tr_status status = TR_OK;
    b->changes = tr__calloc(count, sizeof *b->changes);
    if (count > 0 && !b->changes) {
        return tr_fail(err, TR_MEMORY, "no memory for batch_schedule");
    }
    for (size_t i = 0; i < count && status == TR_OK; i++) {
        status = read_change(json_array_get(list, i), i, &b->changes[i], err);
        if (status == TR_OK && i > 0 && b->changes[i].step <= b->changes[i - 1].step) {
            status = tr_fail(
                err, TR_USAGE,
                "batch_schedule[%zu]: its step %lld does not come after the "
                "step %lld before it",
                i, (long long)b->changes[i].step, (long long)b->changes[i - 1].step);
        }
    }
    b->count = status == TR_OK ? count : 0;
    return status;
}

static int64_t count_or(const tr_run *run, const char *key, int64_t otherwise) {
    return tr__config_is_set(run->config, key) ? tr__config_int(run->config, key)
                                               : otherwise;
}

static tr_status read_adaptive(tr_run *run, tr_error *err) {
    tr_batches *b = &run->settings.batches;
    const tr_plan_request *r = &run->request;
    b->adaptive = true;
    b->least = count_or(run, "adaptive_batch.least", b->first);
    b->most = count_or(run, "adaptive_batch.most", 0);
    b->every = tr__config_int(run->config, "adaptive_batch.every");
    b->share = tr__config_number(run->config, "adaptive_batch.share");
    if (b->most <= 0) {
        return tr_fail(err, TR_USAGE,
                       "adaptive_batch.most is missing: how large the batch may grow");
    }
    if (b->least > b->most || b->first < b->least || b->first > b->most) {
        return tr_fail(
            err, TR_USAGE,
            "adaptive_batch: the batch begins with %lld, which is not between "
            "least %lld and most %lld",
            (long long)b->first, (long long)b->least, (long long)b->most);
    }
    if (b->least <= r->micro_batch) {
        return tr_fail(
            err, TR_USAGE,
            "adaptive_batch: a batch of %lld is one micro-batch of %lld, from "
            "which no noise scale can be measured: raise adaptive_batch.least or "
            "lower train_micro_batch_size_per_gpu",
            (long long)b->least, (long long)r->micro_batch);
    }
    if (tr__config_bool(run->config, "execution.reproducible")) {
        return tr_fail(
            err, TR_USAGE,
            "adaptive_batch with execution.reproducible is not yet supported: "
            "the measured noise scale depends on how the batch is cut");
    }
    return TR_OK;
}

tr_status tr__run_resolve_batches(tr_run *run, tr_error *err) {
    tr_batches *b = &run->settings.batches;
    const tr_plan_request *r = &run->request;
    const json_t *list = tr__config_json(run->config, "batch_schedule");
    bool adaptive = tr__config_bool(run->config, "adaptive_batch.enabled");
    *b = (tr_batches){.first = r->train_batch_size,
                      .multiple = r->micro_batch * tr__data_ranks(r)};
    if (json_array_size(list) > 0 && adaptive) {
        return tr_fail(err, TR_USAGE,
                       "both batch_schedule and adaptive_batch are given: keep one");
    }
    if (adaptive) {
        return read_adaptive(run, err);
    }
    tr_status status = read_list(run, list, err);
    if (status == TR_OK && b->count > 0 && b->changes[0].step == 0 &&
        b->changes[0].batch != b->first) {
        return tr_fail(
            err, TR_USAGE,
            "batch_schedule begins with a batch of %lld, train_batch_size is "
            "%lld: make them the same",
            (long long)b->changes[0].batch, (long long)b->first);
    }
    return status;
}

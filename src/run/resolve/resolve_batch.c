// The batch, the length of the run, and what the plan is asked for.
#include "base/checked.h"
#include "base/text.h"
#include "comm/mesh.h"
#include "plan/flow/batch.h"
#include "run/run.h"

#include <string.h>

static int64_t count_of(const tr_run *run, const char *key) {
    return tr__config_is_decided(run->config, key) ? tr__config_int(run->config, key)
                                                   : 0;
}

static const char tensor_key[] = "tensor_parallel.size",
                  stages_key[] = "pipeline.stages";

static bool is_auto(const tr_run *run, const char *key) {
    return tr__config_is_auto(run->config, key);
}

// Where the mesh is chosen, data ranks are not known yet. The batch does not go by
// them, and the accumulation steps do.
static tr_status check_open(const tr_run *run, tr_error *err) {
    static const char steps[] = "gradient_accumulation_steps";
    const char *key = is_auto(run, tensor_key) ? tensor_key : stages_key;
    if (!is_auto(run, key)) {
        return TR_OK;
    }
    if (count_of(run, "train_batch_size") == 0) {
        return tr_fail(err, TR_USAGE,
                       "%s is \"auto\", and the batch would depend on what is chosen: "
                       "give train_batch_size",
                       key);
    }
    return count_of(run, steps) == 0
               ? TR_OK
               : tr_fail(err, TR_USAGE,
                         "%s is \"auto\", and %s follows from what is chosen: leave it "
                         "out",
                         key, steps);
}

// Ranks that share the work of each layer, by either name.
static tr_status find_tensor_ranks(const tr_run *run, int64_t *out, tr_error *err) {
    static const char deepspeed[] = "tensor_parallel.autotp_size";
    int64_t tensor = is_auto(run, tensor_key) ? 1 : count_of(run, tensor_key);
    int64_t same = count_of(run, deepspeed);
    *out = same > 0 ? same : tensor;
    if (same > 0 && is_auto(run, tensor_key)) {
        return tr_fail(err, TR_USAGE,
                       "%s is \"auto\" and %s is %lld: they are the same", tensor_key,
                       deepspeed, (long long)same);
    }
    return same == 0 || tensor == 1 || same == tensor
               ? TR_OK
               : tr_fail(err, TR_USAGE, "%s is %lld and %s is %lld: they are the same",
                         tensor_key, (long long)tensor, deepspeed, (long long)same);
}

// Of all ranks those that share the work of each layer: neighbours; and those that have
// other layers. What is to be chosen is 1 until then.
static tr_status resolve_mesh(tr_run *run, int64_t ranks, tr_error *err) {
    int64_t tensor = 1;
    tr_status status = check_open(run, err);
    status = status == TR_OK ? find_tensor_ranks(run, &tensor, err) : status;
    if (status != TR_OK) {
        return status;
    }
    if (ranks % tensor != 0) {
        return tr_fail(err, TR_USAGE,
                       "tensor_parallel.size is %lld, and %lld rank%s cannot be shared "
                       "out by that: start a multiple of it",
                       (long long)tensor, (long long)ranks, tr__plural(ranks));
    }
    int64_t stages = is_auto(run, stages_key) ? 1 : count_of(run, stages_key);
    if (ranks % (tensor * stages) != 0) {
        return tr_fail(err, TR_USAGE,
                       "pipeline.stages is %lld, each on %lld rank%s at least, and "
                       "%lld rank%s cannot be shared out by that: start a multiple of "
                       "%lld",
                       (long long)stages, (long long)tensor, tr__plural(tensor),
                       (long long)ranks, tr__plural(ranks),
                       (long long)(tensor * stages));
    }
    const tr_mesh mesh = {.size = {ranks / tensor / stages, tensor, stages}};
    run->request.sequence_parallel =
        tr__config_bool(run->config, "tensor_parallel.sequence");
    run->request.mesh =
        tr__mesh_of_rank(&mesh, run->comm ? tr_comm_rank(run->comm) : 0);
    return TR_OK;
}

static tr_status resolve_sizes(tr_run *run, tr_error *err) {
    tr_plan_request *r = &run->request;
    tr_batch_request asked = {
        .train_batch_size = count_of(run, "train_batch_size"),
        .micro_batch = count_of(run, "train_micro_batch_size_per_gpu"),
        .accumulation_steps = count_of(run, "gradient_accumulation_steps"),
        .ranks = tr__data_ranks(r),
    };
    tr_batch_cut sizes;
    tr_status status = tr__batch_resolve(&asked, &sizes, err);
    if (status != TR_OK) {
        return status;
    }
    r->train_batch_size = sizes.train_batch_size;
    r->micro_batch = sizes.micro_batch;
    r->accumulation_steps = sizes.accumulation_steps;
    return tr__run_record_batch(run, err);
}

// A plan is unrolled over micro-batches and units: one of this many is a second's work
// and a few hundred megabytes.
enum { UNROLLED_MAX = 1 << 20 };

static tr_status check_unrolled(const tr_run *run, tr_error *err) {
    const tr_plan_request *r = &run->request;
    int64_t units = run->model->unit_count;
    int64_t batch = tr__batches_largest(&run->settings.batches);
    int64_t steps = tr__ceil_div(batch, r->micro_batch * tr__data_ranks(r));
    steps = tr__max_i64(steps, r->accumulation_steps);
    if (steps <= UNROLLED_MAX / units) {
        return TR_OK;
    }
    int64_t fits = tr__ceil_div(batch, UNROLLED_MAX / units * tr__data_ranks(r));
    return tr_fail(
        err, TR_USAGE,
        "an effective batch of %lld with train_micro_batch_size_per_gpu %lld makes "
        "%lld accumulation steps, more than a plan of this model takes "
        "(%lld): raise train_micro_batch_size_per_gpu to %lld or more",
        (long long)batch, (long long)r->micro_batch, (long long)steps,
        (long long)(UNROLLED_MAX / units), (long long)fits);
}

// 0: too many to count. An adaptive batch that stays small takes the most.
static int64_t steps_of_epochs(const tr_run *run, int64_t epochs) {
    const tr_batches *b = &run->settings.batches;
    tr_batches smallest = {.first = b->least};
    return tr__batches_steps(b->adaptive ? &smallest : b, &run->batcher, epochs);
}

// A batch that the data cannot fill would be left out whenever it comes.
static tr_status check_drop_last(const tr_run *run, tr_error *err) {
    int64_t batch = tr__batches_largest(&run->settings.batches);
    int64_t samples = run->batcher.samples;
    if (!run->batcher.drop_last || batch <= samples) {
        return TR_OK;
    }
    return tr_fail(err, TR_USAGE,
                   "data.drop_last leaves out batches that are not full, and the %lld "
                   "training samples never fill one of %lld: lower the batch to %lld "
                   "or less, set data.drop_last to false, or add data",
                   (long long)samples, (long long)batch, (long long)samples);
}

static tr_status resolve_length(tr_run *run, tr_error *err) {
    int64_t steps = count_of(run, "steps"), epochs = count_of(run, "epochs");
    if (steps > 0 && epochs > 0) {
        return tr_fail(
            err, TR_USAGE,
            "both \"steps\" (%lld) and \"epochs\" (%lld) are given: keep one",
            (long long)steps, (long long)epochs);
    }
    if (run->train) {
        run->batcher = (tr_batcher){
            .samples = tr_dataset_samples(run->train),
            .batch = run->request.train_batch_size,
            .drop_last = tr__config_bool(run->config, "data.drop_last") ||
                         (tr__config_is_decided(run->config, "dataloader_drop_last") &&
                          tr__config_bool(run->config, "dataloader_drop_last")),
        };
        tr_status full = check_drop_last(run, err);
        if (full != TR_OK) {
            return full;
        }
        run->settings.epochs = run->settings.batches.adaptive ? epochs : 0;
        steps = epochs > 0 ? steps_of_epochs(run, epochs) : steps;
        if (steps == 0 && epochs > 0) {
            return tr_fail(err, TR_USAGE, "\"epochs\" is too large");
        }
    }
    if (tr__run_is_fed(run) && epochs > 0) {
        return tr_fail(err, TR_USAGE,
                       "\"epochs\" is counted in the samples of the data, and this run "
                       "gets its data from the caller: give \"steps\" in its place");
    }
    if (tr__run_is_fed(run)) { // as much as anybody asks for
        run->batcher = (tr_batcher){.samples = INT64_MAX / 2,
                                    .batch = run->request.train_batch_size};
    }
    run->settings.steps = steps;
    return steps > 0 ? tr__config_resolve_int(run->config, "steps", steps,
                                              TR_ORIGIN_DERIVED, "from epochs", err)
                     : TR_OK;
}

tr_status tr__run_resolve_batch(tr_run *run, tr_error *err) {
    tr_plan_request *r = &run->request;
    int64_t there = run->comm ? tr_comm_ranks(run->comm) : 1;
    int64_t asked = tr__config_int(run->config, "ranks");
    int64_t ranks = asked > 0 ? asked : there;
    if (!run->settings.plan_only && ranks != there) {
        return tr_fail(err, TR_USAGE,
                       "--ranks asks for %lld ranks, but %lld were started",
                       (long long)ranks, (long long)there);
    }
    tr_status status = resolve_mesh(run, ranks, err);
    status = status == TR_OK ? tr__run_resolve_pipeline(run, err) : status;
    status = status == TR_OK ? resolve_sizes(run, err) : status;
    if (status == TR_OK) {
        status = tr__run_resolve_batches(run, err);
    }
    if (status == TR_OK) {
        status = check_unrolled(run, err);
    }
    if (status == TR_OK) {
        status = resolve_length(run, err);
    }
    if (status != TR_OK) {
        return status;
    }
    r->model = run->model;
    tr__run_read_plan_settings(run);
    status = tr__run_resolve_nodes(run, err);
    if (run->comm) {
        r->threads = r->threads > 0 ? r->threads : tr_comm_threads(run->comm);
    }
    status = status == TR_OK ? tr__run_resolve_placement(run, err) : status;
    status = status == TR_OK ? tr__run_check_nvme(run, err) : status;
    return status == TR_OK ? tr__run_resolve_recompute(run, err) : status;
}

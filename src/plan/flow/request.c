#include "plan/flow/request.h"

#include "backend/backend.h"
#include "base/batch.h"
#include "base/checked.h"
#include "base/half.h"
#include "base/text.h"
#include "ops/optimizers/optimizer.h"
#include "plan/flow/residency.h"
#include "plan/units/unit_graph.h"

#include <stdio.h>

enum { STEPS_MOST = 1 << 24 };

enum { DIVISORS_TEXT = 128 };

// Sizes that divide so many tokens, the first of them: "1, 2, 4, 8, ...".
static void list_divisors(int64_t tokens, int64_t most, char text[DIVISORS_TEXT]) {
    size_t used = 0;
    for (int64_t size = 1; size <= tokens && size <= most; size++) {
        if (tokens % size == 0 && used + 24 < DIVISORS_TEXT) {
            used += (size_t)snprintf(text + used, DIVISORS_TEXT - used, "%s%lld",
                                     used ? ", " : "", (long long)size);
        }
    }
}

static tr_status check_sequence(const tr_plan_request *r, tr_error *err) {
    enum { SIZES_MOST = 64 };
    int64_t ranks = r->mesh.size[TR_AXIS_TENSOR], tokens = tr__tokens_of(r->model);
    char sizes[DIVISORS_TEXT];
    if (!r->sequence_parallel || ranks == 1 || r->tensor_ranks_alike) {
        return TR_OK;
    }
    if (tokens == 0) {
        return tr_fail(err, TR_USAGE,
                       "tensor_parallel.sequence is true, and samples of this model "
                       "have no tokens to share: set it to false");
    }
    list_divisors(tokens, SIZES_MOST, sizes);
    return tokens % ranks == 0
               ? TR_OK
               : tr_fail(err, TR_USAGE,
                         "tensor_parallel.sequence: %lld ranks cannot share the %lld "
                         "tokens of a sample evenly. Sizes that can: %s",
                         (long long)ranks, (long long)tokens, sizes);
}

static tr_status check_batch(const tr_plan_request *r, tr_error *err) {
    int64_t most = 0;
    if (r->micro_batch < 1 || r->train_batch_size < 1 || r->accumulation_steps < 1) {
        return tr_fail(err, TR_USAGE,
                       "batch sizes and accumulation steps must be 1 or more");
    }
    if (tr__mul_i64(r->micro_batch, r->accumulation_steps, &most) &&
        tr__mul_i64(most, tr__data_ranks(r), &most) && r->train_batch_size > most) {
        return tr_fail(err, TR_USAGE,
                       "a batch of %lld samples is more than %lld accumulation step%s "
                       "of %lld on %lld rank%s",
                       (long long)r->train_batch_size, (long long)r->accumulation_steps,
                       tr__plural(r->accumulation_steps), (long long)r->micro_batch,
                       (long long)tr__data_ranks(r), tr__plural(tr__data_ranks(r)));
    }
    if (r->wave < 0 || r->wave > r->accumulation_steps) {
        return tr_fail(err, TR_USAGE,
                       "execution.wave is %lld; it must be 1 to the %lld accumulation "
                       "step%s, or \"auto\"",
                       (long long)r->wave, (long long)r->accumulation_steps,
                       tr__plural(r->accumulation_steps));
    }
    return r->alternating >= 0 && r->alternating <= TR_ALTERNATING_MOST
               ? TR_OK
               : tr_fail(err, TR_USAGE,
                         "execution.alternating is %d; it must be 1 to %d",
                         r->alternating, (int)TR_ALTERNATING_MOST);
}

// The steps of a plan are a list: beyond some length it is a mistake.
static tr_status check_length(const tr_plan_request *r, tr_error *err) {
    int64_t steps = 0;
    if (!tr__mul_i64(r->accumulation_steps, r->model->unit_count, &steps) ||
        steps > STEPS_MOST / 2) {
        return tr_fail(err, TR_USAGE,
                       "%lld accumulation step%s through %d unit%s make a plan of more "
                       "than %d steps: make the micro-batch larger",
                       (long long)r->accumulation_steps,
                       tr__plural(r->accumulation_steps), r->model->unit_count,
                       tr__plural(r->model->unit_count), STEPS_MOST);
    }
    return TR_OK;
}

static tr_status check_nodes(const tr_plan_request *r, tr_error *err) {
    return r->node_ranks >= 0
               ? TR_OK
               : tr_fail(err, TR_USAGE, "%lld ranks on each node; it must be 1 or more",
                         (long long)r->node_ranks);
}

// Sizes that something on NVMe is cut and staged in.
static tr_status check_staging(const tr_plan_request *r, tr_error *err) {
    if (r->update_elements < 0 || r->update_elements % TR_SHARD_ELEMENTS != 0) {
        return tr_fail(err, TR_USAGE,
                       "an update of %lld elements at a time; it must be a multiple of "
                       "%d",
                       (long long)r->update_elements, TR_SHARD_ELEMENTS);
    }
    if (r->update_slots < 0 || r->update_slots == 1 ||
        r->update_slots > TR_UPDATE_SLOTS_MAX) {
        return tr_fail(err, TR_USAGE,
                       "%d slots to stage the update in; 2 to %d are possible",
                       r->update_slots, TR_UPDATE_SLOTS_MAX);
    }
    return TR_OK;
}

static tr_status check_placements(const tr_plan_request *r, tr_error *err) {
    bool update_here = r->optimizer_placement == TR_SPACE_DEVICE;
    if (update_here ? r->grad_placement != TR_SPACE_DEVICE
                    : r->grad_placement > r->optimizer_placement) {
        return tr_fail(err, TR_USAGE,
                       "gradients are placed on the %s, but optimizer state on the %s: "
                       "place the optimizer state there, too",
                       tr_space_name(r->grad_placement),
                       tr_space_name(r->optimizer_placement));
    }
    bool nvme =
        r->param_placement == TR_SPACE_NVME || r->optimizer_placement == TR_SPACE_NVME;
    if (!(r->optimizer_stays >= 0 && r->optimizer_stays < 1)) {
        return tr_fail(err, TR_USAGE,
                       "%g of the optimizer is to stay on the device: this share must "
                       "be at least 0 and below 1",
                       r->optimizer_stays);
    }
    if (r->optimizer_stays > 0 && nvme) {
        return tr_fail(
            err, TR_USAGE,
            "zero_optimization.offload_optimizer.ratio below 1 is not yet supported "
            "with parameters or optimizer state on NVMe: set it to 1");
    }
    if (r->param_placement != TR_SPACE_DEVICE && tr__data_ranks(r) > 1 &&
        r->stage < 3) {
        return tr_fail(err, TR_USAGE,
                       "zero_optimization.offload_param on %lld ranks needs "
                       "zero_optimization.stage 3; it is %d",
                       (long long)tr__data_ranks(r), r->stage);
    }
    return TR_OK;
}

static tr_status check_recomputed(const tr_plan_request *r, tr_error *err) {
    if (r->boundary_placement > TR_SPACE_HOST) {
        return tr_fail(err, TR_USAGE,
                       "inputs of recomputed units on NVMe are not yet supported");
    }
    if (r->saved_placement > TR_SPACE_HOST) {
        return tr_fail(err, TR_USAGE,
                       "saved activations on NVMe are not yet supported");
    }
    uint32_t known = TR_RECOMPUTE_ALL | TR_RECOMPUTE_NOTHING;
    bool both = (r->recomputed_ops & TR_RECOMPUTE_NOTHING) &&
                (r->recomputed_ops & TR_RECOMPUTE_ALL);
    if ((r->recomputed_ops & ~known) || both || r->recomputed_ops_units < 0) {
        return tr_fail(err, TR_USAGE,
                       "the plan cannot recompute the classes 0x%x of tensors in the "
                       "first %lld units: no such classes or units exist",
                       (unsigned)r->recomputed_ops, (long long)r->recomputed_ops_units);
    }
    return TR_OK;
}

static tr_status check_quantization(const tr_plan_request *r, tr_error *err) {
    if (r->quantization < TR_QUANTIZED_NOT || r->quantization > TR_QUANTIZED_Q8_0) {
        return tr_fail(err, TR_USAGE, "weights are not kept in such bits: %d",
                       (int)r->quantization);
    }
    if (r->quantization && r->fp8.enabled) {
        return tr_fail(err, TR_USAGE,
                       "quantization.base and fp8.enabled: weights in few bits are "
                       "multiplied in the type that computes; leave one of them out");
    }
    return r->quantization && r->frozen_count == 0
               ? tr_fail(err, TR_USAGE,
                         "quantization.base: only weights that are not trained are "
                         "kept in few bits, and all are trained")
               : TR_OK;
}

static tr_status check_fp8(const tr_plan_request *r, tr_error *err) {
    if (r->fp8.first_blocks_bf16 < 0 || r->fp8.last_blocks_bf16 < 0) {
        return tr_fail(err, TR_USAGE,
                       "fp8: a number of blocks in bf16 that is below 0");
    }
    return !r->fp8.enabled || r->compute == TR_BF16
               ? TR_OK
               : tr_fail(err, TR_USAGE,
                         "products of 8 bits are for units that compute in bf16, not "
                         "in %s",
                         tr_dtype_name(r->compute));
}

// A request that a plan has resolved names the integers of reproducible mode.
static tr_status check_sums(const tr_plan_request *r, tr_error *err) {
    bool half = tr__dtype_is_half(r->sums), open = r->sums == TR_NONE;
    if (r->reproducible && half) {
        return tr_fail(err, TR_USAGE,
                       "execution.reproducible sums gradients in integers, and "
                       "data_types.grad_accum_dtype asks for %s: leave one of them out",
                       tr__half_name(r->sums));
    }
    if (!half && !open && r->sums != TR_F32 &&
        !(r->reproducible && r->sums == TR_I64)) {
        return tr_fail(err, TR_USAGE,
                       "gradients are summed in f32, bf16 or f16, not "
                       "in %s",
                       tr_dtype_name(r->sums));
    }
    return TR_OK;
}

static tr_status check_logits(const tr_plan_request *r, tr_error *err) {
    const int64_t most = INT64_MAX >> 20; // whose bytes can be counted
    return r->logits_mib >= 0 && r->logits_mib <= most
               ? TR_OK
               : tr_fail(err, TR_USAGE,
                         "a plan that makes %lld MiB of logits at once; 0 to %lld are "
                         "possible",
                         (long long)r->logits_mib, (long long)most);
}

static tr_status check_cache(const tr_plan_request *r, tr_error *err) {
    int64_t positions = r->cache_positions;
    if (positions < 0 || (positions > 0 && !r->inference)) {
        return tr_fail(err, TR_USAGE,
                       "the plan has a cache of %lld positions, but only an inference "
                       "plan may have a cache",
                       (long long)positions);
    }
    const tr_shape *sample = &tr_batch_input(&r->model->batch)->desc.shape;
    if (positions > 0 && (sample->rank != 1 || sample->dim[0] > positions)) {
        return tr_fail(err, TR_USAGE,
                       "the cache has %lld positions, but the plan's samples have more",
                       (long long)positions);
    }
    return TR_OK;
}

tr_status tr__request_check(const tr_plan_request *r, tr_error *err) {
    if (!r->model || r->model->unit_count < 1) {
        return tr_fail(err, TR_USAGE, "a plan needs a model of at least one unit");
    }
    tr_status status = tr__batch_check(&r->model->batch, "a model", err);
    if (status != TR_OK) {
        return status;
    }
    if (r->stage < 0 || r->stage > 3) {
        return tr_fail(err, TR_USAGE,
                       "zero_optimization.stage is %d; it must be 0 to 3", r->stage);
    }
    if (r->optimizer_states < 0 || r->optimizer_states > TR_OPTIMIZER_STATES) {
        return tr_fail(err, TR_USAGE,
                       "an optimizer of %d states a parameter; 0 to %d are possible",
                       r->optimizer_states, TR_OPTIMIZER_STATES);
    }
    bool nvme =
        r->param_placement == TR_SPACE_NVME || r->optimizer_placement == TR_SPACE_NVME;
    if (r->matrices && nvme) {
        return tr_fail(
            err, TR_USAGE,
            "optimizer.type \"Muon\" takes matrices as wholes, which updates "
            "from NVMe cannot yet: set "
            "zero_optimization.offload_optimizer.device and "
            "zero_optimization.offload_param.device to \"cpu\" or \"none\"");
    }
    if (r->compute != TR_NONE && r->compute != TR_F32 &&
        !tr__dtype_is_half(r->compute)) {
        return tr_fail(err, TR_USAGE, "units compute in f32, bf16 or f16, not in %s",
                       tr_dtype_name(r->compute));
    }
    status = check_sums(r, err);
    status = status == TR_OK ? check_fp8(r, err) : status;
    status = status == TR_OK ? check_logits(r, err) : status;
    status = status == TR_OK ? check_quantization(r, err) : status;
    status = status == TR_OK ? tr__mesh_check(&r->mesh, err) : status;
    status = status == TR_OK ? check_sequence(r, err) : status;
    status = status == TR_OK ? check_nodes(r, err) : status;
    status = status == TR_OK ? check_batch(r, err) : status;
    status = status == TR_OK ? check_placements(r, err) : status;
    status = status == TR_OK ? check_staging(r, err) : status;
    status = status == TR_OK ? check_recomputed(r, err) : status;
    status = status == TR_OK ? check_cache(r, err) : status;
    return status == TR_OK ? check_length(r, err) : status;
}

// ---- what its kernels are for

static void limit_level(const tr_plan_request *r, tr_target *target) {
    if (r->level_limit > 0 && r->level_limit - 1 < target->level) {
        target->level = r->level_limit - 1;
    }
}

// Libraries choose by the number of samples, which is a cut of the batch. What is
// installed here tells nothing of another machine.
static int attention_of(const tr_plan_request *r, const tr_target *target) {
    return r->reproducible || r->attention < 0 ? 0
           : r->attention > 0                  ? r->attention
           : r->elsewhere                      ? 0
                                               : target->attention;
}

tr_target tr__request_host(const tr_plan_request *r) {
    tr_target target = tr__backend(TR_BACKEND_HOST)->here(0);
    if (r->backend == TR_BACKEND_HOST) {
        limit_level(r, &target);
    }
    target.workers = r->threads > 0 ? r->threads : target.workers;
    return target;
}

tr_target tr__request_target(const tr_plan_request *r) {
    if (r->backend == TR_BACKEND_HOST) {
        return tr__request_host(r);
    }
    tr_target target = tr__backend(r->backend)->here(r->device);
    limit_level(r, &target);
    target.attention = attention_of(r, &target);
    return target;
}

int64_t tr__request_process(const tr_plan_request *request) {
    return request->process_bytes > 0 ? request->process_bytes : TR_PROCESS_BYTES;
}

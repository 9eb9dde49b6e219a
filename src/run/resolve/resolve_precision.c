// What units compute in, and the loss scale of fp16.
#include "run/run.h"

#include <math.h>
#include <string.h>

static bool is_on(const tr_run *run, const char *key) {
    return tr__config_is_decided(run->config, key) && tr__config_bool(run->config, key);
}

// The first scale, beside what the tables put into the rules. In other types than fp16
// the scale is 1, for good.
static void read_scale(const tr_run *run, tr_loss_scale_rules *rules) {
    if (run->request.compute != TR_F16) {
        *rules = (tr_loss_scale_rules){.initial = 1};
        return;
    }
    double fixed = tr__config_number(run->config, "fp16.loss_scale");
    int power = (int)tr__config_int(run->config, "fp16.initial_scale_power");
    rules->dynamic = fixed == 0;
    rules->initial = rules->dynamic ? ldexp(1, power) : fixed;
}

// Nobody but the user chooses sums of 16 bits.
static tr_dtype sums_of(const tr_run *run, const char *key) {
    const char *type =
        tr__config_is_auto(run->config, key) ? "" : tr__config_text(run->config, key);
    if (strstr(type, "bf")) { // "bf16", "bfloat16", "torch.bfloat16"
        return TR_BF16;
    }
    return strstr(type, "16") || strcmp(type, "half") == 0 ? TR_F16 : TR_F32;
}

static tr_status read_sums(tr_run *run, tr_error *err) {
    const char *key = "data_types.grad_accum_dtype";
    tr_dtype type = sums_of(run, key);
    if (run->request.reproducible && type != TR_F32) {
        return tr_fail(err, TR_USAGE,
                       "%s is %s, and execution.reproducible sums gradients in "
                       "integers: leave one of them out",
                       key, tr__config_text(run->config, key));
    }
    run->request.sums = type;
    return TR_OK;
}

// fp8 asks for bf16, said or not: so only a file that says otherwise is wrong.
static tr_status read_fp8(tr_run *run, bool fp16, bool *bf16, tr_error *err) {
    const char *said = fp16                                              ? "fp16"
                       : tr__config_is_said(run->config, "bf16.enabled") ? "bf16"
                       : tr__config_is_said(run->config, "bfloat16.enabled")
                           ? "bfloat16"
                           : NULL;
    run->request.fp8 = run->settings.fp8;
    if (!run->request.fp8.enabled || *bf16) {
        return TR_OK;
    }
    if (said) {
        return tr_fail(err, TR_USAGE,
                       "fp8.enabled is true and %s.enabled is %s: around products in "
                       "fp8 everything is bf16; leave one of them out, or set "
                       "%s.enabled to %s",
                       said, fp16 ? "true" : "false", said, fp16 ? "false" : "true");
    }
    *bf16 = true;
    return tr__config_resolve_bool(run->config, "bf16.enabled", true, TR_ORIGIN_AUTO,
                                   "fp8.enabled", err);
}

tr_status tr__run_resolve_precision(tr_run *run, tr_error *err) {
    bool bf16 = is_on(run, "bf16.enabled") || is_on(run, "bfloat16.enabled");
    bool fp16 = is_on(run, "fp16.enabled");
    if (bf16 && fp16) {
        return tr_fail(err, TR_USAGE,
                       "both fp16.enabled and bf16.enabled are true: keep one");
    }
    tr_status status = read_fp8(run, fp16, &bf16, err);
    if (status != TR_OK) {
        return status;
    }
    run->request.compute = bf16 ? TR_BF16 : fp16 ? TR_F16 : TR_F32;
    read_scale(run, &run->settings.scale);
    return read_sums(run, err);
}

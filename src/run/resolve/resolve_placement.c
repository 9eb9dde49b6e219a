// Where things live, and in which folder those of them that are on NVMe.
#include "base/memory.h"
#include "planner/settings.h"
#include "run/run.h"

#include <string.h>

static const char optimizer_path[] = "zero_optimization.offload_optimizer.nvme_path";
static const char param_path[] = "zero_optimization.offload_param.nvme_path";
static const char ratio_key[] = "zero_optimization.offload_optimizer.ratio";
static const char memory_path[] = "memory.nvme.path";

// NULL: not given.
static const char *path_at(const tr_run *run, const char *key) {
    return tr__config_is_given(run->config, key) ? tr__config_text(run->config, key)
                                                 : NULL;
}

static tr_status find_folder(const tr_run *run, const char **folder, tr_error *err) {
    const tr_plan_request *r = &run->request;
    const char *state =
        r->optimizer_placement == TR_SPACE_NVME ? path_at(run, optimizer_path) : NULL;
    const char *params =
        r->param_placement == TR_SPACE_NVME ? path_at(run, param_path) : NULL;
    *folder = path_at(run, memory_path);
    if (!*folder && state && params && strcmp(state, params) != 0) {
        return tr_fail(err, TR_USAGE,
                       "%s is %.200s and %s is %.200s: two folders are not yet "
                       "supported, name one in %s",
                       optimizer_path, state, param_path, params, memory_path);
    }
    *folder = *folder ? *folder : state ? state : params;
    *folder = *folder ? *folder : tr__run_nvme_folder(run); // as good as another
    return *folder ? TR_OK
                   : tr_fail(err, TR_USAGE,
                             "offload to NVMe needs a folder there: set %s "
                             "(or nvme_path beside the device)",
                             memory_path);
}

static tr_status resolve_folder(tr_run *run, tr_error *err) {
    const char *folder = NULL;
    tr_status status = find_folder(run, &folder, err);
    if (status == TR_OK) {
        run->settings.nvme_path = tr__strdup(folder);
        status = run->settings.nvme_path
                     ? TR_OK
                     : tr_fail(err, TR_MEMORY, "no memory for a run");
    }
    return status;
}

// An old name that is on, beside the new one with another meaning.
static tr_status check_old_name(const tr_run *run, const char *old, const char *device,
                                tr_error *err) {
    bool open = tr__config_is_auto(run->config, device);
    bool both = tr__config_bool(run->config, old) && !open &&
                tr__config_is_given(run->config, device);
    const char *says = both ? tr__config_text(run->config, device) : "cpu";
    return strcmp(says, "cpu") == 0
               ? TR_OK
               : tr_fail(err, TR_USAGE,
                         "%s is true, which means %s \"cpu\", but that is \"%s\": "
                         "keep one of them",
                         old, device, says);
}

static tr_status check_old_names(const tr_run *run, tr_error *err) {
    tr_status status = TR_OK;
    for (int i = 0; i < TR_DIMENSIONS; i++) {
        const tr_plan_setting *setting = &tr__plan_settings[i];
        for (int k = 0; k < TR_OLD_KEYS_MAX && setting->old_keys[k]; k++) {
            status = status == TR_OK
                         ? check_old_name(run, setting->old_keys[k], setting->key, err)
                         : status;
        }
    }
    return status;
}

tr_status tr__run_resolve_placement(tr_run *run, tr_error *err) {
    tr_plan_request *r = &run->request;
    double ratio = tr__config_number(run->config, ratio_key);
    tr_status status = check_old_names(run, err);
    if (status != TR_OK) {
        return status;
    }
    r->process_bytes = tr__config_size(run->config, "memory.process");
    r->optimizer_placement = ratio > 0 ? r->optimizer_placement : TR_SPACE_DEVICE;
    r->optimizer_stays = r->optimizer_placement == TR_SPACE_DEVICE ? 0 : 1 - ratio;
    if (r->grad_placement == TR_SPACE_NVME && r->optimizer_placement != TR_SPACE_NVME) {
        return tr_fail(err, TR_USAGE,
                       "memory.nvme.gradients needs "
                       "zero_optimization.offload_optimizer.device \"nvme\"");
    }
    return tr__run_resolve_nvme(run, err);
}

const char *tr__run_nvme_folder(const tr_run *run) {
    const char *folder = path_at(run, memory_path);
    folder = folder ? folder : path_at(run, optimizer_path);
    return folder ? folder : path_at(run, param_path);
}

tr_status tr__run_resolve_nvme(tr_run *run, tr_error *err) {
    const tr_plan_request *r = &run->request;
    bool used =
        r->optimizer_placement == TR_SPACE_NVME || r->param_placement == TR_SPACE_NVME;
    bool known = run->settings.nvme_path != NULL;
    return used && !known && !run->settings.plan_only ? resolve_folder(run, err)
                                                      : TR_OK;
}

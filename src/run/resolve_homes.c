// Where things live, and in which folder those of them that are on NVMe.
#include "base/memory.h"
#include "run/run.h"

#include <string.h>

static const char optimizer_path[] = "zero_optimization.offload_optimizer.nvme_path";
static const char param_path[] = "zero_optimization.offload_param.nvme_path";
static const char ratio_key[] = "zero_optimization.offload_optimizer.ratio";
static const char memory_path[] = "memory.nvme.path";

static tr_space home_of(const tr_run *run, const char *key, bool old_name) {
    bool open = tr__config_is_auto(run->config, key); // for the planner
    const char *device = open ? "none" : tr__config_text(run->config, key);
    if (strcmp(device, "nvme") == 0) {
        return TR_SPACE_NVME;
    }
    return old_name || strcmp(device, "cpu") == 0 ? TR_SPACE_HOST : TR_SPACE_DEVICE;
}

// NULL: not given.
static const char *path_at(const tr_run *run, const char *key) {
    return tr__config_is_given(run->config, key) ? tr__config_text(run->config, key)
                                                 : NULL;
}

static tr_status find_folder(const tr_run *run, const char **folder, tr_error *err) {
    const tr_plan_request *r = &run->request;
    const char *state =
        r->optimizer_home == TR_SPACE_NVME ? path_at(run, optimizer_path) : NULL;
    const char *params =
        r->param_home == TR_SPACE_NVME ? path_at(run, param_path) : NULL;
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

static const char optimizer_device[] = "zero_optimization.offload_optimizer.device";
static const char param_device[] = "zero_optimization.offload_param.device";

static const struct {
    const char *old, *device;
} old_names[] = {
    {"zero_optimization.cpu_offload", optimizer_device},
    {"zero_optimization.cpu_offload_params", param_device},
    {"zero_optimization.cpu_offload_param", param_device},
};

tr_status tr__run_resolve_homes(tr_run *run, const tr_run_options *options,
                                tr_error *err) {
    const tr_config *config = run->config;
    tr_plan_request *r = &run->request;
    bool on[3];
    for (int i = 0; i < 3; i++) {
        on[i] = tr__config_bool(config, old_names[i].old);
        tr_status status =
            check_old_name(run, old_names[i].old, old_names[i].device, err);
        if (status != TR_OK) {
            return status;
        }
    }
    r->param_home = home_of(run, param_device, on[1] || on[2]);
    r->optimizer_home = home_of(run, optimizer_device, on[0]);
    double ratio = tr__config_number(config, ratio_key);
    r->optimizer_home = ratio > 0 ? r->optimizer_home : TR_SPACE_DEVICE;
    r->optimizer_stays = r->optimizer_home == TR_SPACE_DEVICE ? 0 : 1 - ratio;
    if (tr__config_bool(config, "memory.nvme.gradients")) {
        if (r->optimizer_home != TR_SPACE_NVME) {
            return tr_fail(err, TR_USAGE,
                           "memory.nvme.gradients needs "
                           "zero_optimization.offload_optimizer.device \"nvme\"");
        }
        r->grad_home = TR_SPACE_NVME;
    }
    return tr__run_resolve_nvme(run, options, err);
}

const char *tr__run_nvme_folder(const tr_run *run) {
    const char *folder = path_at(run, memory_path);
    folder = folder ? folder : path_at(run, optimizer_path);
    return folder ? folder : path_at(run, param_path);
}

tr_status tr__run_resolve_nvme(tr_run *run, const tr_run_options *options,
                               tr_error *err) {
    const tr_plan_request *r = &run->request;
    bool used = r->optimizer_home == TR_SPACE_NVME || r->param_home == TR_SPACE_NVME;
    bool known = run->settings.nvme_path != NULL;
    return used && !known && !options->plan_only ? resolve_folder(run, err) : TR_OK;
}

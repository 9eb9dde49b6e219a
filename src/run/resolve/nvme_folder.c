// Is the folder there that the run file names for NVMe?
#include "base/machine.h"
#include "run/run.h"

#include <tranche/extend/planner.h>

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_at(const tr_run *run, const char *key, const char *folder) {
    return tr__config_is_given(run->config, key) &&
           tr__config_text(run->config, key) == folder;
}

// What is not on NVMe, and cannot be chosen to be, needs no folder.
static bool may_use_nvme(const tr_run *run) {
    const tr_plan_request *r = &run->request;
    bool used =
        r->optimizer_placement == TR_SPACE_NVME || r->param_placement == TR_SPACE_NVME;
    bool measured = tr__run_has_budget(run) && !run->given.parts.machine;
    return run->settings.plan_only ? measured : used || measured;
}

// A folder that is missing is told now, by its key: a disk that cannot be measured
// would only leave the planner without a plan.
static tr_status check_folder(const tr_run *run, tr_error *err) {
    static const char *const keys[] = {"memory.nvme.path",
                                       "zero_optimization.offload_optimizer.nvme_path",
                                       "zero_optimization.offload_param.nvme_path"};
    const char *folder = tr__run_nvme_folder(run), *key = keys[0];
    char name[512];
    struct stat info;
    if (!folder) {
        return TR_OK;
    }
    for (size_t i = sizeof keys / sizeof *keys; i-- > 0;) {
        key = is_at(run, keys[i], folder) ? keys[i] : key;
    }
    tr__config_name(run->config, key, name, sizeof name);
    if (stat(folder, &info) != 0) {
        return tr_fail(
            err, TR_USAGE,
            "%s is %.300s: %s; make that folder (mkdir -p), or name one on a "
            "disk with room",
            name, folder, strerror(errno));
    }
    if (!S_ISDIR(info.st_mode) || access(folder, W_OK | X_OK) != 0) {
        return tr_fail(err, TR_USAGE,
                       "%s is %.300s: %s; name a folder that may be written to", name,
                       folder, S_ISDIR(info.st_mode) ? strerror(errno) : "no folder");
    }
    return TR_OK;
}

static int64_t disk_room(const tr_run *run) {
    const char *folder = tr__run_nvme_folder(run);
    int64_t bytes = folder ? tr__disk_free(folder) : -1;
    int ranks = run->comm ? tr__comm_local_ranks(run->comm) : 1;
    return bytes < 0 ? TR_UNLIMITED : bytes / ranks;
}

tr_status tr__run_check_nvme(tr_run *run, tr_error *err) {
    run->disk_room = disk_room(run);
    return may_use_nvme(run) ? check_folder(run, err) : TR_OK;
}

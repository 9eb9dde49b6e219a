#include "files/checkpoint/hub_model.h"

#include "base/files.h"
#include "base/hub.h"
#include "files/safetensors/tensor_set.h"

#include <unistd.h>

static tr_status check_complete(const char *name, const char *folder, tr_error *err) {
    char config[PATH_MAX];
    tr_status status = tr__path_join(config, sizeof config, folder, "config.json", err);
    if (status == TR_OK && (access(config, F_OK) != 0 || !tr__tensor_folder(folder))) {
        status = tr__hub_fail_incomplete(
            name, folder, "has no config.json or no model.safetensors", err);
    }
    return status;
}

tr_status tr__hub_find_model(const char *name, char *folder, tr_error *err) {
    tr_status status = tr__hub_find(name, folder, err);
    return status == TR_OK && folder[0] ? check_complete(name, folder, err) : status;
}

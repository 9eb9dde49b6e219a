// "adapter": what linear layers of the base have beside them.
#include "base/memory.h"
#include "files/safetensors/adapter.h"
#include "files/safetensors/tensor_set.h"
#include "models/adapter.h"
#include "models/models.h"
#include "run/run.h"

#include <tranche/checkpoint.h>

#include <limits.h>
#include <stdio.h>
#include <string.h>

// PEFT's keys, below "adapter".
static const char *const keys[] = {"r",          "lora_alpha",     "lora_dropout",
                                   "use_rslora", "target_modules", "modules_to_save",
                                   "use_dora"};
enum { KEYS = sizeof keys / sizeof *keys, PATH_BYTES = 64, NAME_BYTES = 256 };

static const char *path_of(const char *key, char *path) {
    snprintf(path, PATH_BYTES, "adapter.%s", key);
    return path;
}

// The first of the keys that the user has given; NULL: none.
static const char *first_given(const tr_run *run, char *path) {
    for (int i = 0; i < KEYS; i++) {
        if (tr__config_is_given(run->config, path_of(keys[i], path))) {
            return path;
        }
    }
    return NULL;
}

// Those that have a value, as an object of PEFT's. NULL: no memory.
static json_t *given_keys(const tr_run *run) {
    json_t *object = json_object();
    bool good = object != NULL;
    for (int i = 0; good && i < KEYS; i++) {
        char path[PATH_BYTES];
        json_t *value = tr__config_json(run->config, path_of(keys[i], path));
        good = !value || json_object_set(object, keys[i], value) == 0;
    }
    if (!good) {
        json_decref(object);
        return NULL;
    }
    return object;
}

static bool classifies(const tr_run *run) {
    const char *task = tr__config_text(run->config, "task");
    return task ? strcmp(task, tr__task_names[TR_TASK_CLASSIFICATION]) == 0
                : tr__model_task(run->model) == TR_TASK_CLASSIFICATION;
}

// The head that gives labels is trained whole, as PEFT has it. False: no memory.
static bool add_head(const tr_run *run, json_t *object) {
    const char *head = tr__model_is_encoder(run->model) ? "classifier" : "score";
    json_t *given = json_object_get(object, "modules_to_save");
    json_t *list = json_is_array(given) ? json_deep_copy(given) : json_array();
    bool there = false;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *name = json_string_value(json_array_get(list, i));
        there = there || (name && strcmp(name, head) == 0);
    }
    if (!list || (!there && json_array_append_new(list, json_string(head)) != 0)) {
        json_decref(list);
        return false;
    }
    return json_object_set_new(object, "modules_to_save", list) == 0;
}

static tr_status make(tr_run *run, tr_error *err) {
    tr_adapter_config *adapter = NULL;
    json_t *object = given_keys(run);
    if (object && classifies(run) && !add_head(run, object)) {
        json_decref(object);
        object = NULL;
    }
    if (!object) {
        return tr_fail(err, TR_MEMORY, "no memory for an adapter");
    }
    tr_status status =
        tr__adapter_from_json(object, "adapter", run->model->type, &adapter, err);
    json_decref(object);
    if (status == TR_OK) {
        tr__model_adapt(run->own_model, adapter);
    }
    return status;
}

static tr_status go_on(tr_run *run, tr_error *err) {
    char folder[PATH_MAX], path[PATH_BYTES];
    tr_adapter_config *adapter = NULL;
    const char *from = tr__config_text(run->config, "adapter.path");
    const char *other = first_given(run, path);
    if (other) {
        return tr_fail(err, TR_USAGE,
                       "%s: the adapter of adapter.path says it; leave it out", other);
    }
    tr_status status = tr__is_adapter_folder(from)
                           ? (snprintf(folder, sizeof folder, "%s", from), TR_OK)
                           : tr_checkpoint_locate(from, folder, sizeof folder, err);
    if (status == TR_OK && !tr__is_adapter_folder(folder)) {
        status = tr_fail(err, TR_USAGE,
                         "adapter.path: %s holds no adapter (" TR_ADAPTER_CONFIG ")",
                         folder);
    }
    if (status == TR_OK) {
        status = tr__adapter_from_folder(folder, run->model->type, &adapter, err);
    }
    if (status != TR_OK) {
        return status;
    }
    tr__model_adapt(run->own_model, adapter);
    run->adapter = tr__strdup(folder);
    return run->adapter ? TR_OK : tr_fail(err, TR_MEMORY, "no memory for a path");
}

static tr_status check_base(const tr_run *run, tr_error *err) {
    if (!run->own_model) {
        return tr_fail(err, TR_USAGE,
                       "adapter: is for models that come with Tranche, and this one is "
                       "the caller's own");
    }
    if (run->model->adapter) {
        return tr_fail(err, TR_USAGE,
                       "model: %s holds an adapter already; name its base, and the "
                       "adapter by adapter.path",
                       run->weights);
    }
    if (!run->weights && !run->settings.plan_only) {
        return tr_fail(err, TR_USAGE,
                       "adapter: the base is a folder with weights: name one in "
                       "\"model\"");
    }
    return TR_OK;
}

tr_status tr__run_resolve_adapter(tr_run *run, tr_error *err) {
    char path[PATH_BYTES];
    bool from = tr__config_is_given(run->config, "adapter.path");
    bool asked = from || tr__config_is_given(run->config, "adapter.type") ||
                 first_given(run, path);
    if (tr__config_is_given(run->config, "base") && !run->model->adapter) {
        return tr_fail(err, TR_USAGE,
                       "base: the model is no folder with an adapter, so there is no "
                       "base of it to name");
    }
    if (run->model->adapter && run->vocabulary_fixed) {
        return TR_OK; // of a folder that is asked, and not trained on
    }
    if (!asked && run->model->adapter) {
        return tr_fail(err, TR_USAGE,
                       "model: %s holds an adapter; to train it on, name its base in "
                       "\"model\", and %s in adapter.path",
                       run->weights, run->weights);
    }
    if (!asked) {
        return TR_OK;
    }
    tr_status status = check_base(run, err);
    if (status != TR_OK) {
        return status;
    }
    return from ? go_on(run, err) : make(run, err);
}

// ---- when the plan is there

// Has a layer that the target names got an adapter?
static bool is_found(const tr_plan *plan, const tr_adapter_config *adapter,
                     size_t target) {
    static const char tail[] = "." TR_LORA_A;
    for (size_t i = 0; i < plan->param_count; i++) {
        char module[NAME_BYTES];
        const char *name = plan->params[i].stored;
        size_t length = strlen(name), end = sizeof tail - 1;
        if (length <= end || length >= sizeof module ||
            strcmp(name + length - end, tail) != 0) {
            continue;
        }
        snprintf(module, sizeof module, "%.*s", (int)(length - end), name);
        if (tr__adapter_names(adapter, target, module)) {
            return true;
        }
    }
    return false;
}

tr_status tr__run_check_adapter(const tr_run *run, const tr_plan *plan, tr_error *err) {
    const tr_adapter_config *adapter = tr__model_adapter(run->model);
    const char *target;
    for (size_t i = 0; adapter && (target = tr__adapter_target(adapter, i)); i++) {
        if (!is_found(plan, adapter, i)) {
            return tr_fail(
                err, TR_USAGE,
                "adapter.target_modules: \"%.100s\" names no linear layer of "
                "the model; tranche inspect FOLDER lists its tensors",
                target);
        }
    }
    const char *const *one = adapter ? tr__adapter_trained(adapter) : NULL;
    for (; one && *one; one++) {
        if (!tr__pattern_names_any(plan, *one)) {
            return tr_fail(
                err, TR_USAGE,
                "adapter.modules_to_save: nothing of the model is named as in "
                "\"%.100s\"",
                *one);
        }
    }
    return TR_OK;
}

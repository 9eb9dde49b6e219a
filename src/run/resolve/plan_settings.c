// The rows of planner/settings.h between run file and request: what the file says goes
// into the request, and what planner and plan decide goes into run.json.
#include "backend/backend.h"
#include "plan/flow/algorithm.h"
#include "planner/settings.h"
#include "run/run.h"

#include <jansson.h>

static int64_t value_of(const tr_config *config, const tr_plan_setting *setting) {
    switch (setting->kind) {
    case TR_YES:
        return tr__config_bool(config, setting->key);
    case TR_PLACE:
        return tr__place_of(tr__config_text(config, setting->key));
    case TR_ALGORITHM:
        return tr__algorithm_find(tr__config_text(config, setting->key));
    case TR_ATTENTION:
        return tr__attention_find(tr__config_text(config, setting->key));
    default:
        return tr__config_int(config, setting->key);
    }
}

// Is one of the old names of a place on?
static bool old_key_is_on(const tr_config *config, const tr_plan_setting *setting) {
    bool on = false;
    for (int i = 0; i < TR_OLD_KEYS_MAX && setting->old_keys[i]; i++) {
        on = on || tr__config_bool(config, setting->old_keys[i]);
    }
    return on;
}

void tr__run_read_plan_settings(tr_run *run) {
    const tr_config *config = run->config;
    tr_point point = {.plan = run->request};
    for (int i = 0; i < TR_PLAN_SETTINGS; i++) {
        const tr_plan_setting *setting = &tr__plan_settings[i];
        bool here =
            !setting->of_batch && !setting->of_mesh && setting->kind != TR_CLASSES;
        if (here && old_key_is_on(config, setting)) {
            setting->set(&point, TR_SPACE_HOST);
        } else if (here && tr__config_is_decided(config, setting->key)) {
            setting->set(&point, value_of(config, setting));
        }
    }
    run->request = point.plan;
}

// "none", or the list of what is recomputed.
static tr_status record_classes(tr_run *run, const char *key, uint32_t classes,
                                tr_origin origin, const char *why, tr_error *err) {
    json_t *list = json_array();
    bool failed = !list;
    for (uint32_t bit = 1; bit & TR_RECOMPUTE_ALL; bit <<= 1) {
        if (classes & bit) {
            json_t *name = json_string(tr_recompute_name((tr_recompute_class)bit));
            failed |= json_array_append_new(list, name) != 0;
        }
    }
    if (classes & TR_RECOMPUTE_NOTHING) {
        failed |= json_array_append_new(list, json_string("none")) != 0;
    }
    tr_status status =
        failed ? tr_fail(err, TR_MEMORY, "no memory for what is recomputed")
               : tr__config_resolve_json(run->config, key, list, origin, why, err);
    json_decref(list);
    return status;
}

tr_status tr__run_record_setting(tr_run *run, const tr_plan_setting *setting,
                                 int64_t value, tr_origin origin, const char *why,
                                 tr_error *err) {
    char text[32];
    switch (setting->kind) {
    case TR_COUNT:
        return tr__config_resolve_int(run->config, setting->key, value, origin, why,
                                      err);
    case TR_YES:
        return tr__config_resolve_bool(run->config, setting->key, value != 0, origin,
                                       why, err);
    case TR_CLASSES:
        return record_classes(run, setting->key, (uint32_t)value, origin, why, err);
    default:
        tr__plan_setting_show(setting, value, text, sizeof text);
        return tr__config_resolve_text(run->config, setting->key, text, origin, why,
                                       err);
    }
}

tr_status tr__run_resolve_execution(tr_run *run, const tr_plan *plan, tr_error *err) {
    const tr_point point = {.plan = plan->request};
    tr_status status = TR_OK;
    for (int i = 0; i < TR_PLAN_SETTINGS && status == TR_OK; i++) {
        const tr_plan_setting *setting = &tr__plan_settings[i];
        bool by_planner = i < TR_DIMENSIONS && run->chosen >> i & 1;
        if (setting->decided && !by_planner) {
            status = tr__run_record_setting(run, setting, setting->get(&point),
                                            TR_ORIGIN_AUTO, setting->decided, err);
        }
    }
    return status;
}

tr_status tr__run_record_batch(tr_run *run, tr_error *err) {
    const tr_point point = {.plan = run->request};
    tr_status status = TR_OK;
    for (int i = 0; i < TR_PLAN_SETTINGS && status == TR_OK; i++) {
        const tr_plan_setting *setting = &tr__plan_settings[i];
        if (setting->of_batch) {
            status = tr__run_record_setting(run, setting, setting->get(&point),
                                            TR_ORIGIN_DERIVED,
                                            "from the batch's other keys", err);
        }
    }
    return status;
}

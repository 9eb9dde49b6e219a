// The schedule of a pipeline, and how many parts of the model each of its stages runs.
#include "base/checked.h"
#include "plan/schedules/schedule.h"
#include "run/run.h"

#include <string.h>

static const char schedule_key[] = "pipeline.schedule",
                  each_key[] = "pipeline.virtual_stages";

static bool find_order(const char *name, tr_pipeline_order *out) {
    for (int i = 0; tr__pipeline_names[i]; i++) {
        if (strcmp(tr__pipeline_names[i], name) == 0) {
            *out = (tr_pipeline_order)i;
            return true;
        }
    }
    return false;
}

static tr_status record(tr_run *run, bool open, int64_t each, tr_error *err) {
    const tr_plan_request *r = &run->request;
    tr_status status = TR_OK;
    if (open) {
        status = tr__config_resolve_text(
            run->config, schedule_key, tr__pipeline_names[r->pipeline_order],
            TR_ORIGIN_AUTO, each > 1 ? "several virtual stages" : "one virtual stage",
            err);
    }
    if (status == TR_OK && each == 0) {
        status = tr__config_resolve_int(run->config, each_key, r->virtual_stages,
                                        TR_ORIGIN_DERIVED, schedule_key, err);
    }
    return status;
}

tr_status tr__run_resolve_pipeline(tr_run *run, tr_error *err) {
    tr_plan_request *r = &run->request;
    bool open = !tr__config_is_decided(run->config, schedule_key);
    int64_t each = tr__config_is_decided(run->config, each_key)
                       ? tr__config_int(run->config, each_key)
                       : 0;
    if (r->mesh.size[TR_AXIS_PIPELINE] == 1) {
        return TR_OK;
    }
    r->pipeline_order = each > 1 ? TR_PIPELINE_INTERLEAVED : TR_PIPELINE_1F1B;
    const char *name = open ? NULL : tr__config_text(run->config, schedule_key);
    if (name && !find_order(name, &r->pipeline_order)) {
        return tr_fail(err, TR_USAGE, "%s \"%s\" is not built yet", schedule_key, name);
    }
    r->virtual_stages =
        each > 0 ? each : tr__pipeline_schedule(r->pipeline_order)->least;
    return record(run, open, each, err);
}

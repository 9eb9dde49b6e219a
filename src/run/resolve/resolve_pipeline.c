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

static tr_status record(tr_run *run, tr_error *err) {
    const tr_plan_request *r = &run->request;
    tr_status status = TR_OK;
    if (!tr__config_is_decided(run->config, schedule_key)) {
        status = tr__config_resolve_text(
            run->config, schedule_key, tr__pipeline_names[r->pipeline_order],
            TR_ORIGIN_AUTO,
            r->virtual_stages > 1 ? "several virtual stages" : "one virtual stage",
            err);
    }
    return status == TR_OK && !tr__config_is_decided(run->config, each_key)
               ? tr__config_resolve_int(run->config, each_key, r->virtual_stages,
                                        TR_ORIGIN_DERIVED, schedule_key, err)
               : status;
}

tr_status tr__run_read_pipeline(const tr_run *run, tr_plan_request *out,
                                tr_error *err) {
    int64_t each = tr__config_is_decided(run->config, each_key)
                       ? tr__config_int(run->config, each_key)
                       : 0;
    out->pipeline_order = each > 1 ? TR_PIPELINE_INTERLEAVED : TR_PIPELINE_1F1B;
    const char *name = tr__config_is_decided(run->config, schedule_key)
                           ? tr__config_text(run->config, schedule_key)
                           : NULL;
    if (name && !find_order(name, &out->pipeline_order)) {
        return tr_fail(err, TR_USAGE, "%s \"%s\" is not built yet", schedule_key, name);
    }
    out->virtual_stages =
        each > 0 ? each : tr__pipeline_schedule(out->pipeline_order)->least;
    return TR_OK;
}

tr_status tr__run_resolve_pipeline(tr_run *run, tr_error *err) {
    tr_plan_request *r = &run->request;
    bool chosen = tr__config_is_auto(run->config, schedule_key);
    if (r->mesh.size[TR_AXIS_PIPELINE] == 1) {
        return TR_OK;
    }
    tr_status status = tr__run_read_pipeline(run, r, err);
    return status == TR_OK && !chosen ? record(run, err) : status;
}

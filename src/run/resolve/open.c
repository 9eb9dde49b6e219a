// A run in one call.
#include "base/arguments.h"

#include <tranche.h>

static tr_status say(tr_run *run, const char *text, const char *const *settings,
                     const tr_run_parts *parts, tr_error *err) {
    tr_status status = text ? tr_run_load_text(run, text, err) : TR_OK;
    for (; status == TR_OK && settings && *settings; settings++) {
        status = tr_run_assign(run, *settings, err);
    }
    return status == TR_OK && parts ? tr_run_give(run, parts, err) : status;
}

tr_status tr_run_open(const char *text, const char *const *settings,
                      const tr_run_parts *parts, tr_run **out, tr_error *err) {
    tr_run *run = NULL;
    tr_status status = tr__need(out, "tr_run_open", "out", err);
    status = status == TR_OK ? tr_run_create(&run, err) : status;
    status = status == TR_OK ? say(run, text, settings, parts, err) : status;
    status = status == TR_OK ? tr_run_resolve(run, err) : status;
    if (status != TR_OK) {
        tr_run_destroy(run);
        return status;
    }
    *out = run;
    return TR_OK;
}

// The out folder: who holds it, and what a run writes there when it begins.
#include "base/files.h"
#include "base/memory.h"
#include "base/text.h"
#include "comm/alone.h"
#include "files/checkpoint/folder.h"
#include "plan/flow/plan.h"
#include "run/say/print.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

static tr_status write_plan(const tr_run *run, const tr_plan *plan, tr_error *err) {
    char path[PATH_MAX];
    const tr_run_print what = {run, plan};
    tr_status status =
        tr__path_join(path, sizeof path, run->settings.out, "plan.txt", err);
    if (status == TR_OK) {
        status = tr__run_check_patterns(run, plan, err);
    }
    return status == TR_OK ? tr__file_print(path, tr__run_print, &what, err) : status;
}

static tr_status write_resolved(const tr_run *run, tr_error *err) {
    char path[PATH_MAX];
    char *text = NULL, *lines = NULL;
    tr_status status =
        tr__path_join(path, sizeof path, run->settings.out, "run.json", err);
    if (status == TR_OK) {
        status = tr__config_write_resolved(run->config, &text, err);
    }
    if (status == TR_OK) {
        lines = tr__format("%s\n", text);
        status = lines ? tr__file_replace(path, lines, strlen(lines), err)
                       : tr_fail(err, TR_MEMORY, "no memory to write %s", path);
    }
    tr__free(lines);
    tr__free(text);
    return status;
}

tr_status tr__run_write(tr_run *run, const tr_plan *plan, tr_error *err) {
    tr_status status = tr__run_resolve_execution(run, plan, err);
    if (status == TR_OK && tr__comm_leads(run->comm)) {
        status = write_resolved(run, err);
    }
    if (status == TR_OK && tr__comm_leads(run->comm)) {
        status = write_plan(run, plan, err);
    }
    return status;
}

tr_status tr__run_take_folder(tr_run *run, tr_error *err) {
    const char *out = run->settings.out;
    char checkpoints[PATH_MAX];
    tr_status status = tr__folder_create(out, err);
    if (status == TR_OK) {
        status = tr__checkpoints_path(out, checkpoints, err);
    }
    if (status == TR_OK && run->lock < 0 && !tr__folder_hold(out, &run->lock)) {
        status = tr_fail(err, TR_IO,
                         "%s: another run is at work in this folder: wait for its end, "
                         "or give this one another \"out\" (--out)",
                         out);
    }
    return status;
}

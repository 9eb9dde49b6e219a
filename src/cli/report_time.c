#include "cli/report_time.h"

#include "cli/files.h"

#include <stdio.h>
#include <stdlib.h>

static bool put(void *to, const char *text, size_t bytes) {
    return fwrite(text, 1, bytes, to) == bytes;
}

static tr_status read_text(const char *name, const char *text, size_t bytes,
                           timeline *out, tr_error *err) {
    json_error_t problem;
    tr_error why = {0};
    json_t *trace = json_loadb(text, bytes, 0, &problem);
    if (!trace) {
        return tr_fail(err, TR_DATA, "%.300s:%d: not JSON: %.160s", name, problem.line,
                       problem.text);
    }
    tr_status status = timeline_read(trace, out, &why);
    json_decref(trace);
    return status == TR_OK ? TR_OK
                           : tr_fail(err, status, "%.300s: %s", name, why.message);
}

tr_status cli_report_simulate(const tr_plan *plan, const tr_machine *machine,
                              timeline *out, tr_error *err) {
    tr_simulated *simulated = NULL;
    char *text = NULL;
    size_t bytes = 0;
    tr_status status = tr_simulate(plan, machine, &simulated, err);
    FILE *file = status == TR_OK ? open_memstream(&text, &bytes) : NULL;
    if (status == TR_OK && !file) {
        status = tr_fail(err, TR_MEMORY, "no memory for the time of a step");
    }
    if (status == TR_OK) {
        const tr_sink to = {put, file};
        status = tr_simulated_trace(simulated, &to, err);
    }
    if (file && fclose(file) != 0 && status == TR_OK) {
        status = tr_fail(err, TR_MEMORY, "no memory for the time of a step");
    }
    if (status == TR_OK) {
        status = read_text("the simulated step", text, bytes, out, err);
    }
    free(text);
    tr_simulated_destroy(simulated);
    return status;
}

tr_status cli_report_trace(const char *path, timeline *out, tr_error *err) {
    enum { TRACE_MAX = 1 << 29 }; // bytes
    char *text = NULL;
    size_t bytes = 0;
    tr_status status = cli_file_read(path, TRACE_MAX, &text, &bytes, err);
    if (status == TR_OK) {
        status = read_text(path, text, bytes, out, err);
    }
    free(text);
    return status;
}

// tranche report: one page of HTML with the curves of runs, the memory of their plans
// and their settings.
#include "cli/files.h"
#include "cli/run_options.h"
#include "report/page.h"
#include "report/terminal.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { SETTINGS_MAX = 1 << 24 }; // bytes of a run.json

// A run that is shown, and what is freed for it.
typedef struct shown {
    plot_run *metrics;
    json_t *settings;
    tr_run *run;
    tr_plan *plan;
    tr_error no_plan;
} shown;

static bool is_folder(const char *path) {
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

// What its run.json, or a run file, is like; what cannot be read is no settings.
static json_t *read_settings(const char *file) {
    char *text = NULL;
    size_t bytes = 0;
    json_t *settings = NULL;
    if (cli_file_read(file, SETTINGS_MAX, &text, &bytes, NULL) == TR_OK) {
        settings = json_loadb(text, bytes, 0, NULL);
    }
    free(text);
    if (!json_is_object(settings)) {
        json_decref(settings);
        return NULL;
    }
    return settings;
}

static tr_status read_metrics(const char *path, shown *to, tr_error *err) {
    to->metrics = calloc(1, sizeof *to->metrics);
    return to->metrics ? plot_read(path, true, to->metrics, err)
                       : tr_fail(err, TR_MEMORY, "no memory for the report");
}

// How many ranks the run had, as its metrics say.
static int64_t ranks_of(const plot_run *metrics) {
    const plot_series *ranks = metrics ? &metrics->series[PLOT_RANKS] : NULL;
    return ranks && ranks->count > 0 ? (int64_t)ranks->last : 1;
}

// What the run had from no file is left open again, so that it resolves as it did; and
// what was said then is not said once more.
static tr_status as_then(const shown *of, tr_error *err) {
    const tr_run_parts quiet = TR_RUN_PARTS_INIT;
    tr_status status = tr_run_give(of->run, &quiet, err);
    const char *key;
    json_t *origin;
    json_object_foreach(json_object_get(of->settings, "origins"), key, origin) {
        const char *from = json_string_value(origin);
        if (status == TR_OK && from && strncmp(from, "default", 7) == 0) {
            status = tr_run_set(of->run, key, "null", err);
        }
    }
    return status;
}

static tr_status make_plan(const char *file, const cli_run *asked, shown *to,
                           tr_error *err) {
    tr_status status = cli_make_run(asked, file, &to->run, err);
    if (status == TR_OK && to->metrics) {
        status = as_then(to, err);
    }
    if (status == TR_OK) {
        status = tr_run_set(to->run, "plan_only", "true", err);
    }
    if (status == TR_OK) {
        status = tr_run_resolve(to->run, err);
    }
    return status == TR_OK ? tr_run_make_plan(to->run, &to->plan, err) : status;
}

// A run's plan is shown where it can be made; a run file is of no use without.
static tr_status read_folder(const char *path, shown *to, tr_error *err) {
    cli_run asked = {.seed = -1};
    char *file = NULL;
    tr_status status = read_metrics(path, to, err);
    if (status == TR_OK && asprintf(&file, "%s/run.json", path) < 0) {
        file = NULL;
        status = tr_fail(err, TR_MEMORY, "no memory for the report");
    }
    if (status == TR_OK) {
        asked.ranks = ranks_of(to->metrics);
        to->settings = read_settings(file);
        make_plan(file, &asked, to, &to->no_plan);
    }
    free(file);
    return status;
}

static tr_status read_run(const char *path, shown *to, tr_error *err) {
    cli_run asked = {.seed = -1};
    if (is_folder(path)) {
        return read_folder(path, to, err);
    }
    to->settings = read_settings(path);
    return make_plan(path, &asked, to, err);
}

static void clear(shown *of) {
    tr_plan_destroy(of->plan);
    tr_run_destroy(of->run);
    json_decref(of->settings);
    free(of->metrics);
    *of = (shown){0};
}

static tr_status write_page(const char *const *paths, const shown *all, size_t count,
                            const char *out, tr_error *err) {
    page_run runs[PLOT_RUNS_MAX];
    cli_output to;
    for (size_t i = 0; i < count; i++) {
        runs[i] = (page_run){paths[i], all[i].metrics, all[i].settings, all[i].plan,
                             all[i].no_plan.message};
    }
    tr_status status = cli_output_open(&to, out, err);
    if (status == TR_OK) {
        status = page_write(runs, (int)count, to.to, err);
    }
    return cli_output_close(&to, status, err);
}

static tr_status report(const char *const *paths, size_t count, const char *out,
                        tr_error *err) {
    shown all[PLOT_RUNS_MAX] = {{0}};
    tr_status status = TR_OK;
    for (size_t i = 0; i < count && status == TR_OK; i++) {
        status = read_run(paths[i], &all[i], err);
    }
    if (status == TR_OK) {
        status = write_page(paths, all, count, out, err);
    }
    for (size_t i = 0; i < count; i++) {
        clear(&all[i]);
    }
    return status;
}

int cli_report(const cli_command *command, int argc, char **argv) {
    const char *out = "report.html", *paths[PLOT_RUNS_MAX];
    tr_error err = {0};
    int exit_status;
    const cli_option options[] = {
        {"--out", CLI_TEXT, &out, "FILE.html",
         "the page that is written (default: report.html)"},
    };
    cli_operands operands = {paths, 1, PLOT_RUNS_MAX, 0};
    if (!cli_parse(command, options, sizeof options / sizeof *options, argc, argv,
                   &operands, &exit_status)) {
        return exit_status;
    }
    signal(SIGXFSZ, SIG_IGN); // a file over the size limit is an error of the write
    if (report(paths, operands.count, out, &err) != TR_OK) {
        return cli_fail(&err);
    }
    if (!page_has_charts()) {
        cli_say(NULL, TR_MESSAGE_NOTE,
                "this program was built without dygraphs (Debian: libjs-dygraphs): the "
                "report has the picture of tranche plot in place of charts");
    }
    char shown_path[REPORT_WORD_MAX + 4];
    printf("%s: %zu run%s\n", report_word(out, shown_path), operands.count,
           operands.count == 1 ? "" : "s");
    return cli_end(TR_OK);
}

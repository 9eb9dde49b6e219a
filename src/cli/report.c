// tranche report: one page of HTML with the curves of runs, the memory of their plans
// and their settings.
#include "cli/files.h"
#include "cli/report_time.h"
#include "cli/run_options.h"
#include "report/page.h"
#include "report/terminal.h"

#include <tranche/checkpoint.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

enum { SETTINGS_MAX = 1 << 24 }; // bytes of a run.json, of a history.jsonl

// A run that is shown, and what is freed for it.
typedef struct shown {
    plot_run *metrics;
    plot_place place; // how far these have been read
    json_t *settings, *history;
    tr_checkpoint_entry *checkpoints; // [checkpoint_count]
    size_t checkpoint_count;
    tr_run *run;
    tr_plan *plan;
    tr_error no_plan;
    timeline planned, traced; // without spans: not known
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

// The objects of the folder's history.jsonl; a line that is none is passed over.
static json_t *read_history(const char *path) {
    char *file = NULL, *text = NULL;
    size_t bytes = 0;
    json_t *history = json_array();
    if (asprintf(&file, "%s/history.jsonl", path) < 0) {
        return history;
    }
    if (cli_file_read(file, SETTINGS_MAX, &text, &bytes, NULL) == TR_OK) {
        for (size_t at = 0; at < bytes;) {
            const char *end = memchr(text + at, '\n', bytes - at);
            size_t length = end ? (size_t)(end - text) - at : bytes - at;
            json_t *event = json_loadb(text + at, length, 0, NULL);
            if (json_is_object(event)) {
                json_array_append(history, event);
            }
            json_decref(event);
            at += length + 1;
        }
    }
    free(text);
    free(file);
    return history;
}

// What is asked of a report.
typedef struct report_ask {
    const char *const *paths;
    size_t count;
    const char *out;
    bool watch;
    cli_list traces;          // of the runs, in their order
    const char *machine_file; // for which steps are simulated, or "here"; NULL: none
    tr_machine *machine;      // that of the file; NULL: none, or this one
} report_ask;

// That asked for an end; 0: none yet.
static volatile sig_atomic_t caught;

static void on_signal(int number) {
    caught = number;
}

static void wait_a_second(void) {
    const struct timespec second = {1, 0};
    nanosleep(&second, NULL);
}

// Where the run has no step yet, a watched one is waited for.
static tr_status read_metrics(const char *path, bool watch, shown *to, tr_error *err) {
    bool changed = false, told = false;
    to->metrics = calloc(1, sizeof *to->metrics);
    if (!to->metrics) {
        return tr_fail(err, TR_MEMORY, "no memory for the report");
    }
    if (!watch) {
        return plot_read(path, true, to->metrics, err);
    }
    tr_status status = plot_read_on(path, to->metrics, &to->place, &changed, err);
    while ((status == TR_IO || status == TR_DATA) && !caught) {
        if (!told) {
            cli_say(NULL, TR_MESSAGE_NOTE, err->message);
            cli_say(NULL, TR_MESSAGE_NOTE, "waiting for its first step");
        }
        told = true;
        wait_a_second();
        status = plot_read_on(path, to->metrics, &to->place, &changed, err);
    }
    return status;
}

// How many ranks the run had, as its metrics say.
static int64_t ranks_of(const plot_run *metrics) {
    const plot_series *ranks = metrics ? &metrics->series[PLOT_RANKS] : NULL;
    return ranks && ranks->count > 0 ? (int64_t)ranks->last : 1;
}

// What the run had from no file is left open again, so that it resolves as it did; and
// what was said then is not said once more.
static tr_status as_then(const shown *of, const tr_machine *machine, tr_error *err) {
    tr_run_parts quiet = TR_RUN_PARTS_INIT;
    quiet.machine = machine;
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

static tr_status make_plan(const char *file, const cli_run *asked,
                           const tr_machine *machine, shown *to, tr_error *err) {
    tr_status status = cli_make_run(asked, file, &to->run, err);
    if (status == TR_OK && to->metrics) {
        status = as_then(to, machine, err);
    } else if (status == TR_OK) {
        status = cli_give(to->run, asked, machine, NULL, NULL, err);
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
static tr_status read_folder(const char *path, const report_ask *ask, shown *to,
                             tr_error *err) {
    cli_run asked = {.seed = -1};
    char *file = NULL;
    tr_status status = read_metrics(path, ask->watch, to, err);
    if (status == TR_OK && asprintf(&file, "%s/run.json", path) < 0) {
        file = NULL;
        status = tr_fail(err, TR_MEMORY, "no memory for the report");
    }
    if (status == TR_OK) {
        asked.ranks = ranks_of(to->metrics);
        to->settings = read_settings(file);
        make_plan(file, &asked, ask->machine, to, &to->no_plan);
    }
    free(file);
    return status;
}

static tr_status read_run(const char *path, const report_ask *ask, shown *to,
                          tr_error *err) {
    cli_run asked = {.seed = -1};
    if (is_folder(path)) {
        return read_folder(path, ask, to, err);
    }
    to->settings = read_settings(path);
    return make_plan(path, &asked, ask->machine, to, err);
}

// The step as it is simulated, where that is asked for and there is a plan.
static tr_status simulate(const report_ask *ask, shown *to, tr_error *err) {
    tr_machine *here = NULL;
    tr_status status = TR_OK;
    if (!ask->machine_file || !to->plan) {
        return TR_OK;
    }
    if (!ask->machine) {
        status = tr_run_machine(to->run, &here, err);
    }
    if (status == TR_OK) {
        status = cli_report_simulate(to->plan, here ? here : ask->machine, &to->planned,
                                     err);
    }
    tr_machine_close(here);
    return status;
}

static tr_status read_all(const report_ask *ask, size_t number, shown *to,
                          tr_error *err) {
    tr_status status = read_run(ask->paths[number], ask, to, err);
    if (status == TR_OK) {
        status = simulate(ask, to, err);
    }
    return status == TR_OK && number < ask->traces.count
               ? cli_report_trace(ask->traces.items[number], &to->traced, err)
               : status;
}

static void clear(shown *of) {
    tr_plan_destroy(of->plan);
    tr_run_destroy(of->run);
    json_decref(of->settings);
    json_decref(of->history);
    tr_checkpoint_list_destroy(of->checkpoints, of->checkpoint_count);
    timeline_free(&of->planned);
    timeline_free(&of->traced);
    free(of->metrics);
    *of = (shown){0};
}

// What a folder has more of by now, beside metrics.
static void look_again(const char *path, shown *of) {
    json_decref(of->history);
    tr_checkpoint_list_destroy(of->checkpoints, of->checkpoint_count);
    of->history = NULL;
    of->checkpoints = NULL;
    of->checkpoint_count = 0;
    if (of->metrics) {
        of->history = read_history(path);
        tr_checkpoint_list(path, &of->checkpoints, &of->checkpoint_count, NULL);
    }
}

static tr_status write_page(const report_ask *ask, shown *all, bool goes_on,
                            tr_error *err) {
    page_run runs[PLOT_RUNS_MAX];
    cli_output to;
    for (size_t i = 0; i < ask->count; i++) {
        look_again(ask->paths[i], &all[i]);
        runs[i] = (page_run){ask->paths[i],
                             all[i].metrics,
                             all[i].settings,
                             all[i].history,
                             all[i].checkpoints,
                             all[i].checkpoint_count,
                             all[i].plan,
                             all[i].no_plan.message,
                             all[i].planned.span_count > 0 ? &all[i].planned : NULL,
                             all[i].traced.span_count > 0 ? &all[i].traced : NULL};
    }
    const page_all page = {runs, (int)ask->count, goes_on ? PAGE_RELOAD_SECONDS : 0};
    tr_status status = cli_output_open(&to, ask->out, err);
    if (status == TR_OK) {
        status = page_write(&page, to.to, err);
    }
    return cli_output_close(&to, status, err);
}

// ---- while runs go on

// An adaptive batch leaves open how many steps its epochs are: the checkpoint at the
// end says that they are over.
static bool has_its_epochs(const char *path, const shown *run) {
    json_int_t epochs = json_integer_value(json_object_get(run->settings, "epochs"));
    char *file = NULL;
    if (epochs < 1 || asprintf(&file, "%s/checkpoints/latest/state.json", path) < 0) {
        return false;
    }
    json_t *state = read_settings(file);
    free(file);
    bool over = json_integer_value(json_object_get(state, "epoch")) >= epochs;
    json_decref(state);
    return over;
}

// Has the run made the last of the steps that its settings name, or come to?
static bool is_complete(const char *path, const shown *run) {
    const json_t *derived = json_object_get(run->settings, "derived");
    json_int_t steps = json_integer_value(json_object_get(run->settings, "steps"));
    steps = steps > 0 ? steps : json_integer_value(json_object_get(derived, "steps"));
    return !run->metrics ||
           (steps > 0 && run->metrics->series[PLOT_LOSS].last_step >= (double)steps) ||
           has_its_epochs(path, run);
}

static bool are_complete(const report_ask *ask, const shown *all) {
    bool complete = true;
    for (size_t i = 0; i < ask->count; i++) {
        complete = complete && is_complete(ask->paths[i], &all[i]);
    }
    return complete;
}

// What has come; false: nothing has. A run that begins anew has no step for a while.
static bool read_on(const report_ask *ask, shown *all) {
    bool any = false, changed;
    for (size_t i = 0; i < ask->count; i++) {
        if (all[i].metrics && plot_read_on(ask->paths[i], all[i].metrics, &all[i].place,
                                           &changed, NULL) == TR_OK) {
            any = any || changed;
        }
    }
    return any;
}

static tr_status watch(const report_ask *ask, shown *all, tr_error *err) {
    tr_status status = TR_OK;
    bool goes_on = !are_complete(ask, all);
    while (goes_on && !caught && status == TR_OK) {
        wait_a_second();
        bool any = read_on(ask, all);
        goes_on = !are_complete(ask, all);
        if (any || !goes_on) {
            status = write_page(ask, all, goes_on, err);
        }
    }
    return status;
}

// Before runs are watched: others look at the page meanwhile.
static void say_written(const report_ask *ask) {
    char path[REPORT_WORD_MAX + 4];
    printf("%s: %zu run%s\n", report_word(ask->out, path), ask->count,
           ask->count == 1 ? "" : "s");
    fflush(stdout);
}

static tr_status open_machine(report_ask *ask, tr_error *err) {
    if (ask->traces.count > ask->count) {
        return tr_fail(err, TR_USAGE, "--trace: %zu traces of %zu run%s",
                       ask->traces.count, ask->count, ask->count == 1 ? "" : "s");
    }
    bool file = ask->machine_file && strcmp(ask->machine_file, "here") != 0;
    return file ? tr_machine_open(ask->machine_file, &ask->machine, err) : TR_OK;
}

static tr_status report(const report_ask *ask, tr_error *err) {
    shown all[PLOT_RUNS_MAX] = {{0}};
    tr_status status = TR_OK;
    for (size_t i = 0; i < ask->count && status == TR_OK && !caught; i++) {
        status = read_all(ask, i, &all[i], err);
    }
    if (status == TR_OK && !caught) {
        status = write_page(ask, all, ask->watch && !are_complete(ask, all), err);
    }
    if (status == TR_OK && !caught) {
        say_written(ask);
    }
    if (status == TR_OK && ask->watch) {
        status = watch(ask, all, err);
    }
    for (size_t i = 0; i < ask->count; i++) {
        clear(&all[i]);
    }
    return caught ? TR_OK : status;
}

int cli_report(const cli_command *command, int argc, char **argv) {
    const char *paths[PLOT_RUNS_MAX];
    report_ask ask = {.paths = paths, .out = "report.html"};
    tr_error err = {0};
    int exit_status;
    const cli_option options[] = {
        {"--out", CLI_TEXT, &ask.out, "FILE.html",
         "the page that is written (default: report.html)"},
        {"--watch", CLI_FLAG, &ask.watch, NULL,
         "writes the page anew while the runs go on; it reloads by itself"},
        {"--trace", CLI_LIST, &ask.traces, "FILE",
         "shows the step that train --trace has written: the first one is of the first "
         "run"},
        {"--machine", CLI_TEXT, &ask.machine_file, "FILE|here",
         "shows the step as it is simulated for a machine file, or for this machine"},
    };
    cli_operands operands = {paths, 1, PLOT_RUNS_MAX, 0};
    if (!cli_parse(command, options, sizeof options / sizeof *options, argc, argv,
                   &operands, &exit_status)) {
        return exit_status;
    }
    signal(SIGXFSZ, SIG_IGN); // a file over the size limit is an error of the write
    ask.count = operands.count;
    if (ask.watch) {
        const struct sigaction action = {.sa_handler = on_signal};
        sigaction(SIGINT, &action, NULL);
        sigaction(SIGTERM, &action, NULL);
    }
    tr_status status = open_machine(&ask, &err);
    if (status == TR_OK) {
        status = report(&ask, &err);
    }
    tr_machine_close(ask.machine);
    if (status != TR_OK) {
        return cli_fail(&err);
    }
    if (!page_has_charts()) {
        cli_say(NULL, TR_MESSAGE_NOTE,
                "this program was built without dygraphs (Debian: libjs-dygraphs): the "
                "report has the picture of tranche plot in place of charts");
    }
    return cli_end(TR_OK);
}

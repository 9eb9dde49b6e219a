// tranche plot: the curves of runs, in the terminal or as a picture.
#include "report/plot.h"
#include "cli/cli.h"
#include "cli/files.h"
#include "report/terminal.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { COLUMNS = 80 }; // where the terminal does not say

// Of the environment; NULL: not set, or to nothing.
static const char *variable(const char *name) {
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

static bool locale_is_utf8(void) {
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (int i = 0; i < 3; i++) {
        const char *value = variable(names[i]);
        if (value) {
            return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
        }
    }
    return false;
}

// Braille needs a terminal that shows it, and colors to tell several runs apart.
static plot_look look_of_terminal(int runs) {
    struct winsize size;
    plot_look look = {.columns = COLUMNS};
    if (!isatty(STDOUT_FILENO)) {
        return look;
    }
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) {
        look.columns = size.ws_col;
    }
    look.color = report_has_color(stdout);
    look.braille = locale_is_utf8() && (look.color || runs == 1);
    return look;
}

static tr_status write_svg(const plot_run *const *runs, int count, const char *path,
                           tr_error *err) {
    cli_output out;
    tr_status status = cli_output_open(&out, path, err);
    if (status == TR_OK) {
        plot_svg(runs, count, out.to);
    }
    return cli_output_close(&out, status, err);
}

static tr_status plot(const char *const *paths, size_t count, const char *out,
                      tr_error *err) {
    plot_run *runs[PLOT_RUNS_MAX] = {NULL};
    tr_status status = TR_OK;
    for (size_t i = 0; i < count && status == TR_OK; i++) {
        runs[i] = calloc(1, sizeof *runs[i]);
        status = runs[i] ? plot_read(paths[i], false, runs[i], err)
                         : tr_fail(err, TR_MEMORY, "no memory for %zu runs", count);
    }
    const plot_run *const *read = (const plot_run *const *)runs;
    if (status == TR_OK && out) {
        status = write_svg(read, (int)count, out, err);
    } else if (status == TR_OK) {
        plot_text(read, (int)count, look_of_terminal((int)count), stdout);
    }
    for (size_t i = 0; i < count; i++) {
        free(runs[i]);
    }
    return status;
}

int cli_plot(const cli_command *command, int argc, char **argv) {
    const char *out = NULL, *paths[PLOT_RUNS_MAX];
    tr_error err = {0};
    int exit_status;
    const cli_option options[] = {
        {"--out", CLI_TEXT, &out, "FILE.svg",
         "writes a picture, in place of the chart in the terminal"},
    };
    cli_operands operands = {paths, 1, PLOT_RUNS_MAX, 0};
    if (!cli_parse(command, options, sizeof options / sizeof *options, argc, argv,
                   &operands, &exit_status)) {
        return exit_status;
    }
    return plot(paths, operands.count, out, &err) == TR_OK ? cli_end(TR_OK)
                                                           : cli_fail(&err);
}

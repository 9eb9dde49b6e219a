#include "cli/run_options.h"
#include "report/terminal.h"

#include <tranche/engine.h>

#include <stdio.h>
#include <stdlib.h>

// NULL: 0, which stands for the default.
static tr_status read_tolerance(const char *text, double *tolerance, tr_error *err) {
    char *end = NULL;
    *tolerance = text ? strtod(text, &end) : 0;
    if (text && (end == text || *end != '\0' || !(*tolerance > 0) || *tolerance > 1)) {
        char shown[REPORT_WORD_MAX + 4];
        return tr_fail(err, TR_USAGE,
                       "--tolerance takes a number above 0 and up to 1, "
                       "not %s",
                       report_word(text, shown));
    }
    return TR_OK;
}

static tr_status print(const tr_check *check, bool json, bool every, tr_error *err) {
    report_clean text;
    const tr_sink to = report_sink(&text, stdout);
    return json ? tr_check_print_json(check, &to, err)
                : tr_check_print(check, every, &to, err);
}

int cli_check(const cli_command *command, int argc, char **argv) {
    cli_run run = {.seed = -1};
    tr_error err = {0};
    bool every = false;
    tr_check *check = NULL;
    tr_run *made = NULL;
    const char *file = NULL, *tolerance_text = NULL;
    double tolerance = 0;
    int exit_status;
    const cli_option options[] = {
        {"--tolerance", CLI_TEXT, &tolerance_text, "X",
         "largest relative error of a tensor's gradient in f32 (default 1e-4)"},
        {"--tensors", CLI_FLAG, &every, NULL,
         "prints a line for every tensor of every cut"},
        {"--seed", CLI_COUNT, &run.seed, "N", "seed of weights and data order"},
        {"--threads", CLI_SOME, &run.threads, "N", "threads (default: the cores)"},
        {"--json", CLI_FLAG, &run.json, NULL, "prints one JSON object"},
        {"--data", CLI_LIST, &run.data, "PATH", "data to use in place of data.train"},
        {"--model", CLI_TEXT, &run.model, "FILE|DIR|NAME",
         "model to use in place of \"model\""},
        {"--set", CLI_LIST, &run.set, "KEY.PATH=VALUE",
         "changes one key of the run file; may be given again"},
    };
    cli_operands operands = {&file, 1, 1, 0};
    if (!cli_parse(command, options, sizeof options / sizeof *options, argc, argv,
                   &operands, &exit_status)) {
        return exit_status;
    }
    tr_status status = read_tolerance(tolerance_text, &tolerance, &err);
    if (status == TR_OK) {
        status = cli_make_run(&run, file, &made, &err);
    }
    if (status == TR_OK) {
        status = tr_check_run(made, tolerance, &check, &err);
    }
    if (status == TR_OK) {
        status = print(check, run.json, every, &err);
    }
    if (status == TR_OK && !check->passed) {
        status = TR_DIFFERENT;
    }
    tr_check_destroy(check);
    tr_run_destroy(made);
    return status == TR_OK || status == TR_DIFFERENT ? cli_end(status) : cli_fail(&err);
}

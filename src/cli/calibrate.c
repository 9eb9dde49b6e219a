#include "cli/files.h"
#include "cli/run_options.h"
#include "report/terminal.h"

#include <tranche/plan.h>

#include <stdio.h>

static tr_status open_run(const cli_run *asked, const char *file, tr_run **run,
                          tr_error *err) {
    tr_status status = cli_make_run(asked, file, run, err);
    if (status == TR_OK) {
        status = tr_run_set(*run, "plan_only", "true", err);
    }
    return status == TR_OK ? tr_run_resolve(*run, err) : status;
}

static bool put(void *to, const char *text, size_t bytes) {
    return fwrite(text, 1, bytes, to) == bytes;
}

static tr_status write_machine(const tr_machine *machine, const char *path,
                               tr_error *err) {
    report_clean text;
    if (!path) {
        const tr_sink to = report_sink(&text, stdout);
        return tr_machine_print(machine, &to, err);
    }
    cli_output out;
    tr_status status = cli_output_open(&out, path, err);
    if (status != TR_OK) {
        return status;
    }
    const tr_sink to = {put, out.to};
    return cli_output_close(&out, tr_machine_print(machine, &to, err), err);
}

int cli_calibrate(const cli_command *command, int argc, char **argv) {
    cli_run run = {.seed = -1};
    tr_error err = {0};
    tr_run *made = NULL;
    tr_machine *machine = NULL;
    const char *file = NULL, *out = NULL;
    int exit_status;
    const cli_option options[] = {
        {"--out", CLI_TEXT, &out, "FILE",
         "writes the machine file there (default: standard output)"},
        {"--ranks", CLI_SOME, &run.ranks, "W",
         "as one of this many ranks would find it (default 1)"},
        {"--model", CLI_TEXT, &run.model, "FILE|DIR|NAME",
         "model to use in place of \"model\" (without a run file: gpt2)"},
        {"--set", CLI_LIST, &run.set, "KEY.PATH=VALUE",
         "changes one key of the run file; may be given again"},
    };
    cli_operands operands = {&file, 0, 1, 0};
    if (!cli_parse(command, options, sizeof options / sizeof *options, argc, argv,
                   &operands, &exit_status)) {
        return exit_status;
    }
    tr_status status = open_run(&run, file, &made, &err);
    if (status == TR_OK) {
        status = tr_run_calibrate(made, &machine, &err);
    }
    if (status == TR_OK) {
        status = write_machine(machine, out, &err);
    }
    tr_machine_close(machine);
    tr_run_destroy(made);
    return status == TR_OK ? cli_end(status) : cli_fail(&err);
}

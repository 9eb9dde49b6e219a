#include "base/files.h"
#include "cli/run_options.h"

#include <tranche/simulate.h>

#include <stdio.h>

static tr_status print_trace(const void *simulated, FILE *to, tr_error *err) {
    return tr_simulated_trace(simulated, to, err);
}

static tr_status simulate(const tr_run_options *given, const char *machine_file,
                          bool json, const char *trace, tr_error *err) {
    tr_run *run = NULL;
    tr_plan *plan = NULL;
    tr_machine *machine = NULL;
    tr_simulated *simulated = NULL;
    tr_run_options options = *given;
    tr_status status =
        machine_file ? tr_machine_open(machine_file, &machine, err) : TR_OK;
    options.machine = machine;
    if (status == TR_OK) {
        status = tr_run_open(&options, &run, err);
    }
    if (status == TR_OK && !machine) {
        status = tr_run_machine(run, &machine, err);
    }
    if (status == TR_OK) {
        status = tr_plan_make(tr_run_plan_request(run), &plan, err);
    }
    if (status == TR_OK) {
        status = tr_simulate(plan, machine, &simulated, err);
    }
    if (status == TR_OK && trace) {
        status = tr__file_print(trace, print_trace, simulated, err);
    }
    if (status == TR_OK) {
        status = json ? tr_simulated_print_json(simulated, stdout, err)
                      : tr_simulated_print(simulated, stdout, err);
    }
    tr_simulated_destroy(simulated);
    tr_plan_destroy(plan);
    tr_run_close(run);
    tr_machine_close(machine);
    return status;
}

int cli_simulate(const cli_command *command, int argc, char **argv) {
    cli_run run = {.seed = -1};
    tr_error err = {0};
    const char *file = NULL, *machine = NULL, *trace = NULL;
    size_t count;
    int exit_status;
    const cli_option options[] = {
        {"--machine", CLI_TEXT, &machine, "FILE",
         "simulates the machine that FILE describes (default: this one, which is "
         "measured)"},
        {"--ranks", CLI_SOME, &run.ranks, "W", "simulates this many ranks (default 1)"},
        {"--json", CLI_FLAG, &run.json, NULL, "prints the result as one JSON object"},
        {"--trace", CLI_TEXT, &trace, "FILE",
         "writes a timeline of the simulated step, for ui.perfetto.dev"},
        {"--data", CLI_LIST, &run.data, "PATH", "data to use in place of data.train"},
        {"--model", CLI_TEXT, &run.model, "FILE|DIR|NAME",
         "model to use in place of \"model\""},
        {"--set", CLI_LIST, &run.set, "KEY.PATH=VALUE",
         "changes one key of the run file; may be given again"},
    };
    if (!cli_parse(command, options, sizeof options / sizeof *options, argc, argv,
                   &file, 1, 1, &count, &exit_status)) {
        return exit_status;
    }
    tr_run_options run_options = cli_run_options(&run, file);
    run_options.plan_only = true;
    tr_status status = simulate(&run_options, machine, run.json, trace, &err);
    return status == TR_OK ? cli_end(status) : cli_fail(&err);
}

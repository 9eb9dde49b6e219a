#include "cli/files.h"
#include "cli/run_options.h"
#include "report/terminal.h"

#include <tranche/plan.h>

#include <stdio.h>

static bool put(void *to, const char *text, size_t bytes) {
    return fwrite(text, 1, bytes, to) == bytes;
}

static tr_status write_trace(const tr_simulated *simulated, const char *path,
                             tr_error *err) {
    cli_output out;
    tr_status status = cli_output_open(&out, path, err);
    if (status != TR_OK) {
        return status;
    }
    const tr_sink to = {put, out.to};
    return cli_output_close(&out, tr_simulated_trace(simulated, &to, err), err);
}

static tr_status evaluate(const tr_run *run, tr_simulated *simulated, tr_error *err) {
    int64_t samples = tr_run_evaluated(run);
    return samples > 0 ? tr_simulated_evaluate(simulated, samples, err) : TR_OK;
}

static tr_status print(const tr_simulated *simulated, bool json, tr_error *err) {
    report_clean text;
    const tr_sink to = report_sink(&text, stdout);
    return json ? tr_simulated_print_json(simulated, &to, err)
                : tr_simulated_print(simulated, &to, err);
}

static tr_status open_run(const cli_run *asked, const char *file,
                          const tr_machine *machine, tr_run **run, tr_error *err) {
    tr_status status = cli_make_run(asked, file, run, err);
    if (status == TR_OK) {
        status = cli_give(*run, asked, machine, NULL, NULL, err);
    }
    if (status == TR_OK) {
        status = tr_run_set(*run, "plan_only", "true", err);
    }
    return status == TR_OK ? tr_run_resolve(*run, err) : status;
}

static tr_status simulate(const cli_run *asked, const char *file,
                          const char *machine_file, const char *trace, tr_error *err) {
    tr_run *run = NULL;
    tr_plan *plan = NULL;
    tr_machine *machine = NULL;
    tr_simulated *simulated = NULL;
    tr_status status =
        machine_file ? tr_machine_open(machine_file, &machine, err) : TR_OK;
    if (status == TR_OK) {
        status = open_run(asked, file, machine, &run, err);
    }
    if (status == TR_OK && !machine) {
        status = tr_run_machine(run, &machine, err);
    }
    if (status == TR_OK) {
        status = tr_run_make_plan(run, &plan, err);
    }
    if (status == TR_OK) {
        status = tr_simulate(plan, machine, &simulated, err);
    }
    if (status == TR_OK) {
        status = evaluate(run, simulated, err);
    }
    if (status == TR_OK && trace) {
        status = write_trace(simulated, trace, err);
    }
    if (status == TR_OK) {
        status = print(simulated, asked->json, err);
    }
    tr_simulated_destroy(simulated);
    tr_plan_destroy(plan);
    tr_run_destroy(run);
    tr_machine_close(machine);
    return status;
}

int cli_simulate(const cli_command *command, int argc, char **argv) {
    cli_run run = {.seed = -1};
    tr_error err = {0};
    const char *file = NULL, *machine = NULL, *trace = NULL;
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
    cli_operands operands = {&file, 1, 1, 0};
    if (!cli_parse(command, options, sizeof options / sizeof *options, argc, argv,
                   &operands, &exit_status)) {
        return exit_status;
    }
    tr_status status = simulate(&run, file, machine, trace, &err);
    return status == TR_OK ? cli_end(status) : cli_fail(&err);
}

#include "cli/plan_compare.h"
#include "cli/run_options.h"
#include "report/terminal.h"

#include <tranche/plan.h>

#include <stdio.h>
#include <string.h>

// A plan may be for another machine, so this is no error.
static void warn_unless_fits(const tr_run *run, const tr_plan *plan) {
    tr_error why = {0};
    if (tr_run_check_memory(run, plan, &why) == TR_BUDGET) {
        cli_say(NULL, TR_MESSAGE_WARNING, why.message);
    }
}

// How long stages of a pipeline wait is told by a simulation, on that machine or, NULL,
// this one. A machine that lacks what it needs is no error: the plan is shown without.
static tr_status note_times(tr_run *run, const tr_machine *machine, tr_plan *plan,
                            tr_error *err) {
    const char *stages = NULL;
    tr_machine *here = NULL;
    tr_simulated *simulated = NULL;
    tr_status status = tr_run_get(run, "pipeline.stages", &stages, NULL, err);
    if (status != TR_OK || !stages || strcmp(stages, "1") == 0) {
        return status;
    }
    status = machine ? TR_OK : tr_run_machine(run, &here, err);
    if (status == TR_OK) {
        status = tr_simulate(plan, machine ? machine : here, &simulated, err);
    }
    if (status == TR_USAGE) {
        cli_say(NULL, TR_MESSAGE_WARNING, err->message);
        *err = (tr_error){0};
        status = TR_OK;
    }
    tr_plan_note_times(plan, simulated);
    tr_simulated_destroy(simulated);
    tr_machine_close(here);
    return status;
}

// machine: what the plan is for; NULL: the one that it is made on.
static tr_status show_plan(tr_run *run, bool json, const tr_machine *machine,
                           tr_error *err) {
    tr_plan *plan = NULL;
    report_clean text;
    const tr_sink to = report_sink(&text, stdout);
    tr_status status = tr_run_make_plan(run, &plan, err);
    if (status == TR_OK) {
        status = note_times(run, machine, plan, err);
    }
    if (status == TR_OK) {
        status = json ? tr_run_print_plan_json(run, plan, &to, err)
                      : tr_run_print_plan(run, plan, &to, err);
    }
    if (status == TR_OK && !machine) {
        warn_unless_fits(run, plan);
    }
    tr_plan_destroy(plan);
    return status;
}

// compare: the table compares the offload of the CPU, so no other device is chosen.
static tr_status open_run(const cli_run *asked, const char *file,
                          const tr_machine *machine, bool compare, tr_run **run,
                          tr_error *err) {
    tr_status status = cli_make_run(asked, file, run, err);
    if (status == TR_OK) {
        status = cli_give(*run, asked, machine, NULL, NULL, err);
    }
    if (status == TR_OK) {
        status = tr_run_set(*run, "plan_only", "true", err);
    }
    if (status == TR_OK && compare) {
        status = tr_run_set(*run, "choose_device", "false", err);
    }
    return status == TR_OK ? tr_run_resolve(*run, err) : status;
}

int cli_plan(const cli_command *command, int argc, char **argv) {
    cli_run run = {.seed = -1};
    tr_error err = {0};
    tr_run *opened = NULL;
    tr_machine *there = NULL;
    const char *file = NULL, *machine = NULL;
    bool compare = false;
    int exit_status;
    const cli_option options[] = {
        {"--ranks", CLI_SOME, &run.ranks, "W", "plans for this many ranks (default 1)"},
        {"--steps", CLI_SOME, &run.steps, "N", "number of optimizer steps of the run"},
        {"--threads", CLI_SOME, &run.threads, "N",
         "threads of each rank (default: by the work, up to its cores)"},
        {"--json", CLI_FLAG, &run.json, NULL,
         "prints the whole plan as one JSON object"},
        {"--compare", CLI_FLAG, &compare, NULL,
         "prints a table of memory (with --machine also of time) by ZeRO stage and "
         "offload"},
        {"--machine", CLI_TEXT, &machine, "FILE",
         "plans for the machine that FILE describes, in place of this one"},
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
    tr_status status = machine ? tr_machine_open(machine, &there, &err) : TR_OK;
    if (status == TR_OK) {
        status = open_run(&run, file, there, compare, &opened, &err);
    }
    if (status == TR_OK) {
        status = compare ? cli_plan_compare(opened, there, run.json, &err)
                         : show_plan(opened, run.json, there, &err);
    }
    tr_run_destroy(opened);
    tr_machine_close(there);
    return status == TR_OK ? cli_end(status) : cli_fail(&err);
}

// Measures this machine with the kernels of a run's plan and prints a machine file for
// `tranche simulate` (docs/simulate.md). Under mpirun all ranks measure at the same
// time, as they would compute, and the links between them are measured too.
//
//     machine [--nvme FOLDER] RUN.json [KEY.PATH=VALUE]...
#include "calibrate/calibrate.h"
#include "comm/alone.h"

#include <tranche/extend/planner.h>
#include <tranche/run.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(tr_status status, const tr_error *err) {
    if (status != TR_OK) {
        fprintf(stderr, "machine: %s\n", err->message);
        exit(tr_status_exit(status));
    }
}

static void say(void *user, tr_log_level level, const char *line) {
    (void)user;
    fprintf(stderr, "%s%s\n", level == TR_LOG_WARNING ? "warning: " : "", line);
}

int main(int argc, char **argv) {
    static const char *const sources[] = {"bench/machine"};
    const tr_log log = {say, NULL};
    tr_calibration how = {.cache = "", .seconds = 20, .log = &log};
    tr_error err = {0};
    tr_comm *comm = NULL;
    tr_run *run = NULL;
    tr_machine *machine = NULL;
    if (argc > 2 && strcmp(argv[1], "--nvme") == 0) {
        how.nvme = argv[2];
        argc -= 2;
        argv += 2;
    }
    if (argc < 2) {
        fprintf(stderr,
                "usage: machine [--nvme FOLDER] RUN.json [KEY.PATH=VALUE]...\n");
        return tr_status_exit(TR_USAGE);
    }
    tr_run_parts parts = TR_RUN_PARTS_INIT;
    check(tr_comm_open(&comm, &err), &err);
    parts.comm = comm;
    check(tr_run_create(&run, &err), &err);
    check(tr_run_load_file(run, argv[1], &err), &err);
    check(tr_run_give(run, &parts, &err), &err);
    check(tr_run_set(run, "plan_only", "true", &err), &err);
    for (int i = 2; i < argc; i++) {
        check(tr_run_assign(run, argv[i], &err), &err);
    }
    check(tr_run_resolve(run, &err), &err);
    check(tr__calibrate(tr_run_plan_request(run), comm, &how, &machine, &err), &err);
    if (tr__comm_leads(comm)) {
        check(tr__machine_print(machine, sources, 1, stdout, &err), &err);
    }
    tr_machine_close(machine);
    tr_run_destroy(run);
    tr_comm_close(comm);
    return 0;
}

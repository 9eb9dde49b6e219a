// tranche inspect: which kind of thing a path is, and what is in it.
#include "cli/cli.h"
#include "cli/inspect_data.h"
#include "cli/inspect_samples.h"
#include "report/terminal.h"

#include <tranche/checkpoint.h>

#include <unistd.h>

// A folder of a model or a run is never taken for one of data, even a damaged one.
static bool is_data(const char *path) {
    return access(path, F_OK) == 0 && !tr_checkpoint_recognize(path);
}

static tr_status inspect_weights(const char *path, bool json, tr_error *err) {
    tr_inspection *inspection = NULL;
    tr_status status = tr_checkpoint_inspect(path, &inspection, err);
    report_clean text;
    const tr_sink to = report_sink(&text, stdout);
    if (status == TR_OK) {
        status = json ? tr_inspection_print_json(inspection, &to, err)
                      : tr_inspection_print(inspection, &to, err);
    }
    tr_inspection_destroy(inspection);
    return status;
}

int cli_inspect(const cli_command *command, int argc, char **argv) {
    bool json = false;
    int64_t positions = 1024, samples = 0;
    cli_list set = {0};
    tr_error err = {0};
    const char *path = NULL;
    int exit_status;
    const cli_option options[] = {
        {"--json", CLI_FLAG, &json, NULL, "prints one JSON object"},
        {"--positions", CLI_SOME, &positions, "N",
         "counts a dataset's samples of N positions each (default 1024)"},
        {"--samples", CLI_SOME, &samples, "N",
         "shows the first N samples of a run file as they are trained, with what is "
         "learnt in \xe2\x9f\xa6 \xe2\x9f\xa7"},
        {"--set", CLI_LIST, &set, "KEY.PATH=VALUE",
         "changes one key of the run file, with --samples; may be given again"},
    };
    cli_operands operands = {&path, 1, 1, 0};
    if (!cli_parse(command, options, sizeof options / sizeof *options, argc, argv,
                   &operands, &exit_status)) {
        return exit_status;
    }
    if (set.count > 0 && samples == 0) {
        tr_fail(&err, TR_USAGE, "--set has no effect without --samples: give both");
        return cli_fail(&err);
    }
    tr_status status = samples > 0
                           ? cli_inspect_samples(path, &set, samples, json, &err)
                       : is_data(path) ? cli_inspect_data(path, positions, json, &err)
                                       : inspect_weights(path, json, &err);
    return status == TR_OK ? cli_end(status) : cli_fail(&err);
}

#include "cli/cli.h"
#include "report/terminal.h"

#include <tranche/checkpoint.h>

int cli_diff(const cli_command *command, int argc, char **argv) {
    bool json = false;
    tr_error err = {0};
    tr_diff *diff = NULL;
    const char *paths[2] = {NULL, NULL};
    int exit_status;
    const cli_option options[] = {
        {"--json", CLI_FLAG, &json, NULL, "prints one JSON object"},
    };
    cli_operands operands = {paths, 2, 2, 0};
    if (!cli_parse(command, options, 1, argc, argv, &operands, &exit_status)) {
        return exit_status;
    }
    tr_status status = tr_checkpoint_diff(paths[0], paths[1], &diff, &err);
    if (status == TR_OK) {
        report_clean text;
        const tr_sink to = report_sink(&text, stdout);
        status =
            json ? tr_diff_print_json(diff, &to, &err) : tr_diff_print(diff, &to, &err);
    }
    if (status == TR_OK && !diff->identical) {
        status = TR_DIFFERENT;
    }
    tr_diff_destroy(diff);
    return status == TR_OK || status == TR_DIFFERENT ? cli_end(status) : cli_fail(&err);
}

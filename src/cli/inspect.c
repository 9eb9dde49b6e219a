#include "cli/cli.h"

#include <tranche/checkpoint.h>

int cli_inspect(const cli_command *command, int argc, char **argv) {
    bool json = false;
    tr_error err = {0};
    tr_inspection *inspection = NULL;
    const char *path = NULL;
    size_t count;
    int exit_status;
    const cli_option options[] = {
        {"--json", CLI_FLAG, &json, NULL, "as one JSON object"},
    };
    if (!cli_parse(command, options, 1, argc, argv, &path, 1, 1, &count,
                   &exit_status)) {
        return exit_status;
    }
    tr_status status = tr_checkpoint_inspect(path, &inspection, &err);
    if (status == TR_OK && json) {
        status = tr_inspection_print_json(inspection, stdout, &err);
    } else if (status == TR_OK) {
        tr_inspection_print(inspection, stdout);
    }
    tr_inspection_destroy(inspection);
    return status == TR_OK ? 0 : cli_fail(&err);
}

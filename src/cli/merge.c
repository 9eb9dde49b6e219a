#include "cli/cli.h"

#include <tranche/checkpoint.h>

#include <stdio.h>

int cli_merge(const cli_command *command, int argc, char **argv) {
    tr_error err = {0};
    const char *paths[2] = {NULL, NULL}, *base = NULL;
    int exit_status;
    const cli_option options[] = {
        {"--base", CLI_TEXT, &base, "DIR", "the base, where it has moved"},
    };
    cli_operands operands = {paths, 2, 2, 0};
    if (!cli_parse(command, options, 1, argc, argv, &operands, &exit_status)) {
        return exit_status;
    }
    if (tr_adapter_merge(paths[0], base, paths[1], &err) != TR_OK) {
        return cli_fail(&err);
    }
    fprintf(stderr, "saved: %s\n", paths[1]);
    return cli_end(TR_OK);
}

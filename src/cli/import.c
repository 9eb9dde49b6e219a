#include "cli/cli.h"

#include <tranche/gguf.h>

#include <stdio.h>

int cli_import(const cli_command *command, int argc, char **argv) {
    tr_error err = {0};
    const char *paths[2] = {NULL, NULL};
    int exit_status;
    cli_operands operands = {paths, 2, 2, 0};
    if (!cli_parse(command, NULL, 0, argc, argv, &operands, &exit_status)) {
        return exit_status;
    }
    if (tr_gguf_import(paths[0], paths[1], &err) != TR_OK) {
        return cli_fail(&err);
    }
    fprintf(stderr, "saved: %s\n", paths[1]);
    return cli_end(TR_OK);
}

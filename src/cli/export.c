#include "cli/cli.h"

#include <tranche/gguf.h>

#include <stdio.h>

static bool say(void *user, const char *text, size_t bytes) {
    (void)user;
    return fwrite(text, 1, bytes, stderr) == bytes;
}

int cli_export(const cli_command *command, int argc, char **argv) {
    tr_error err = {0};
    const tr_sink notes = {say, NULL};
    const char *paths[2] = {NULL, NULL};
    tr_gguf_options how = TR_GGUF_OPTIONS_INIT;
    int exit_status;
    const cli_option options[] = {
        {"--type", CLI_TEXT, &how.type, "f32|f16|bf16|q8_0",
         "of matrices (default: as they are stored)"},
        {"--base", CLI_TEXT, &how.base, "DIR", "an adapter's base, where it has moved"},
    };
    cli_operands operands = {paths, 2, 2, 0};
    if (!cli_parse(command, options, 2, argc, argv, &operands, &exit_status)) {
        return exit_status;
    }
    how.notes = &notes;
    if (tr_gguf_export(paths[0], paths[1], &how, &err) != TR_OK) {
        return cli_fail(&err);
    }
    fprintf(stderr, "saved: %s\n", paths[1]);
    return cli_end(TR_OK);
}

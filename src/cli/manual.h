// Manual pages, written from the tables that --help and the reader of run files use.
#ifndef TR_CLI_MANUAL_H
#define TR_CLI_MANUAL_H

#include "cli/cli.h"

#include <stdio.h>

#define CLI_MANUAL_PAGE "PAGE"     // as the command's operand
#define CLI_MANUAL_KEYS "run-file" // the page of all keys

// Text in roff: characters that mean something there as they are.
void cli_roff_text(FILE *to, const char *text);
// The head of a page: its title ("tranche-train"), section and what it is about.
void cli_roff_begin(FILE *to, const char *title, int section, const char *about);
// ".SH", and ".TP" with a bold name and a placeholder behind it (NULL: none).
void cli_roff_section(FILE *to, const char *title);
void cli_roff_term(FILE *to, const char *name, const char *value);
void cli_roff_paragraph(FILE *to, const char *text);

void cli_manual_program(FILE *to);
void cli_manual_command(FILE *to, const cli_command *command);
void cli_manual_keys(FILE *to);

#endif

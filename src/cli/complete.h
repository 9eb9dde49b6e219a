// What may stand in place of the last word of a command line: what a shell asks for
// when its user presses Tab. All comes from the tables that --help and the reader of
// run files use.
//
// The answer has a line for each candidate, "WORD\tDOC", the whole word and not only
// its rest; and lines that begin with a colon:
//     :files .json     also names of files that end so (":files": all files)
//     :folders         also names of folders
//     :open            the word goes on: no space follows it
#ifndef TR_CLI_COMPLETE_H
#define TR_CLI_COMPLETE_H

#include "cli/cli.h"

#include <stdio.h>

typedef struct cli_typed {
    const char *word; // as far as it has been typed
    const char *lead; // what stands before the value in it: "--out="; "": nothing
    FILE *to;         // where the answer goes
} cli_typed;

// words: [count], behind the program's name; the last may be empty. count: 1 or more.
void cli_complete(const char *const *words, size_t count, FILE *to);

// For complete*.c: a candidate, if it begins with what has been typed behind the lead.
void cli_candidate(const cli_typed *typed, const char *word, const char *doc);
// The values that `form` stands for ("auto|never|DIR", "KEY.PATH=VALUE").
void cli_complete_value(const cli_typed *typed, const char *form);

#endif

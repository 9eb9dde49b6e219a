// The page of the run file: every key that it may have.
#include "cli/manual.h"

#include <tranche/run.h>

static void print_condition(FILE *to, const tr_run_key *key) {
    if (!key->where_key) {
        return;
    }
    fputs("\nOnly where \\fB", to);
    cli_roff_text(to, key->where_key);
    fputs("\\fR is ", to);
    for (size_t i = 0; key->where[i]; i++) {
        fputs(i > 0 ? ", " : "", to);
        cli_roff_text(to, key->where[i]);
    }
    fputs(".\n", to);
}

static void print_key(FILE *to, const tr_run_key *key) {
    cli_roff_term(to, key->path, NULL);
    fputs("Takes ", to);
    cli_roff_text(to, key->takes);
    if (key->fallback) {
        fputs("; default ", to);
        cli_roff_text(to, key->fallback);
    }
    fprintf(to, ".\nSince %s.\n.br\n", key->since);
    cli_roff_text(to, key->doc);
    fputs(".\n", to);
    print_condition(to, key);
    if (key->deepspeed) {
        fputs(".br\nIn DeepSpeed: ", to);
        cli_roff_text(to, key->deepspeed);
        fputs(".\n", to);
    }
}

static void print_without_effect(FILE *to) {
    tr_run_key key = TR_RUN_KEY_INIT;
    cli_roff_section(to, "KEYS WITHOUT AN EFFECT");
    fputs("DeepSpeed has these keys. Tranche accepts them, and names those that a file "
          "has once,\nat the start of the run.\n",
          to);
    for (size_t i = 0; tr_run_key_at(i, &key); i++) {
        if (!key.works) {
            cli_roff_term(to, key.path, NULL);
            cli_roff_text(to, key.doc ? key.doc : "");
            fputs("\n", to);
        }
    }
}

void cli_manual_keys(FILE *to) {
    tr_run_key key = TR_RUN_KEY_INIT;
    cli_roff_begin(to, "tranche-run-file", 5, "what tranche trains, and how");
    cli_roff_section(to, "DESCRIPTION");
    fputs("A run file is one JSON object: a DeepSpeed config with a model, data and a "
          "length. A dot\nin a name below stands for an object in an object. "
          "\\fBtranche\\-init\\fR(1) writes a run file for\ndata, and "
          "\\fB\\-\\-set\\fR \\fIKEY.PATH=VALUE\\fR changes one key of it.\n"
          "A key with a line on DeepSpeed means there what that line says. The others "
          "are Tranche\\(aqs\nown.\n",
          to);
    cli_roff_section(to, "KEYS");
    for (size_t i = 0; tr_run_key_at(i, &key); i++) {
        if (key.works) {
            print_key(to, &key);
        }
    }
    print_without_effect(to);
    cli_roff_section(to, "SEE ALSO");
    fputs("\\fBtranche\\fR(1), \\fBtranche\\-train\\fR(1), "
          "\\fBtranche\\-out\\-folder\\fR(5)\n",
          to);
}

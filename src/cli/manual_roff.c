#include "cli/manual.h"

#include <tranche/version.h>

#include <ctype.h>

void cli_roff_text(FILE *to, const char *text) {
    for (const char *c = text; *c; c++) {
        bool first = c == text || c[-1] == '\n';
        if (first && (*c == '.' || *c == '\'')) {
            fputs("\\&", to); // else a request
        }
        if (*c == '\\') {
            fputs("\\e", to);
        } else if (*c == '-') {
            fputs("\\-", to);
        } else {
            fputc(*c, to);
        }
    }
}

void cli_roff_begin(FILE *to, const char *title, int section, const char *about) {
    fprintf(to, ".TH \"");
    for (const char *c = title; *c; c++) {
        fputc(toupper((unsigned char)*c), to);
    }
    fprintf(to, "\" %d \"\" \"tranche %s\" \"Tranche\"\n", section, tr_version());
    cli_roff_section(to, "NAME");
    cli_roff_text(to, title);
    fputs(" \\- ", to);
    cli_roff_text(to, about);
    fputc('\n', to);
}

void cli_roff_section(FILE *to, const char *title) {
    fprintf(to, ".SH \"%s\"\n", title);
}

void cli_roff_term(FILE *to, const char *name, const char *value) {
    fputs(".TP\n\\fB", to);
    cli_roff_text(to, name);
    fputs("\\fR", to);
    if (value) {
        fputs(" \\fI", to);
        cli_roff_text(to, value);
        fputs("\\fR", to);
    }
    fputc('\n', to);
}

void cli_roff_paragraph(FILE *to, const char *text) {
    fputs(".PP\n", to);
    cli_roff_text(to, text);
    fputc('\n', to);
}

// tranche manual: the pages of the program and of its commands.
#include "cli/manual.h"

#include <string.h>

enum { NAME_MAX_ = 64, PAGES_MAX = 64 };

static void see_also(FILE *to) {
    cli_roff_section(to, "SEE ALSO");
    fputs("\\fBtranche\\fR(1), \\fBtranche\\-run\\-file\\fR(5), "
          "\\fBtranche\\-out\\-folder\\fR(5)\n",
          to);
}

static void options_section(FILE *to, const cli_option *const *options, size_t count) {
    cli_roff_section(to, "OPTIONS");
    for (size_t i = 0; i < count; i++) {
        cli_roff_term(to, options[i]->name, options[i]->value);
        cli_roff_text(to, options[i]->doc);
        fputs(".\n", to);
    }
}

static void example_lines(FILE *to, const char *lines) {
    fputs(".nf\n", to);
    cli_roff_text(to, lines);
    fputs("\n.fi\n", to);
}

void cli_manual_program(FILE *to) {
    const cli_option *const own[] = {&cli_option_help, &cli_option_version};
    cli_roff_begin(to, "tranche", 1, "trains neural networks in the memory there is");
    cli_roff_section(to, "SYNOPSIS");
    fputs("\\fBtranche\\fR \\fICOMMAND\\fR ...\n", to);
    cli_roff_section(to, "DESCRIPTION");
    cli_roff_text(to, cli_about);
    fputs("\nEach command has a page of its own, as\n\\fBtranche\\-train\\fR(1).\n",
          to);
    cli_roff_section(to, "COMMANDS");
    for (size_t i = 0; cli_command_at(i); i++) {
        cli_roff_term(to, cli_command_at(i)->name, cli_command_at(i)->operands);
        cli_roff_text(to, cli_command_at(i)->doc);
        fputc('\n', to);
    }
    options_section(to, own, 2);
    cli_roff_section(to, "EXIT STATUS");
    for (int status = TR_OK; status < TR_STATUS_COUNT; status++) {
        char number[NAME_MAX_];
        snprintf(number, sizeof number, "%d%s", tr_status_exit(status),
                 status == TR_INTERRUPTED ? " + the signal's number" : "");
        cli_roff_term(to, number, NULL);
        cli_roff_text(to, tr_status_words(status));
        fputc('\n', to);
    }
    see_also(to);
}

// A command's page, of which the options are read while it is written.
static void write_page(void *user, const cli_command *command,
                       const cli_option *options, size_t count) {
    FILE *to = user;
    const cli_option *all[PAGES_MAX];
    char title[NAME_MAX_];
    size_t known = 0;
    for (size_t i = 0; i < count && known + 1 < PAGES_MAX; i++) {
        all[known++] = &options[i];
    }
    all[known++] = &cli_option_help;
    snprintf(title, sizeof title, "tranche-%s", command->name);
    cli_roff_begin(to, title, 1, command->doc);
    cli_roff_section(to, "SYNOPSIS");
    fprintf(to, "\\fBtranche %s\\fR \\fI", command->name);
    cli_roff_text(to, command->operands);
    fputs("\\fR [\\fIoptions\\fR]\n", to);
    options_section(to, all, known);
    cli_roff_section(to, "EXIT STATUS");
    cli_roff_text(to, command->statuses);
    fputs(".\n", to);
    cli_roff_section(to, "EXAMPLES");
    example_lines(to, command->examples);
    see_also(to);
}

void cli_manual_command(FILE *to, const cli_command *command) {
    cli_read_options(command, &(cli_option_reader){write_page, to});
}

static tr_status unknown(const char *page, tr_error *err) {
    const char *names[PAGES_MAX] = {CLI_MANUAL_KEYS, "tranche"};
    size_t count = 2;
    for (size_t i = 0; cli_command_at(i) && count < PAGES_MAX; i++) {
        names[count++] = cli_command_at(i)->name;
    }
    const char *nearest = tr_nearest(page, names, count);
    return tr_fail(err, TR_USAGE, "manual %.100s: there is no such page; %s%s%s", page,
                   nearest ? "did you mean " : "pages have the names of commands",
                   nearest ? nearest : "", nearest ? "?" : "");
}

int cli_manual(const cli_command *command, int argc, char **argv) {
    const char *page = "tranche";
    tr_error err = {0};
    int exit_status;
    cli_operands operands = {&page, 0, 1, 0};
    if (!cli_parse(command, NULL, 0, argc, argv, &operands, &exit_status)) {
        return exit_status;
    }
    const cli_command *of = cli_command_find(page);
    if (of) {
        cli_manual_command(stdout, of);
    } else if (strcmp(page, "tranche") == 0) {
        cli_manual_program(stdout);
    } else if (strcmp(page, CLI_MANUAL_KEYS) == 0) {
        cli_manual_keys(stdout);
    } else {
        unknown(page, &err);
        return cli_fail(&err);
    }
    return cli_end(TR_OK);
}

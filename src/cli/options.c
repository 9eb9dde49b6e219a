#include "cli/cli.h"
#include "report/terminal.h"

#include <tranche/comm.h>
#include <tranche/types.h>

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES_MAX = 32 };

const cli_option cli_option_help = {"--help", CLI_FLAG, NULL, NULL, "this text"};

// All ranks get the same words: one tells what is wrong with them.
__attribute__((format(printf, 2, 3))) static void complain(const cli_command *command,
                                                           const char *format, ...) {
    va_list args;
    if (tr_comm_speaks(NULL)) {
        fprintf(stderr, "tranche %s: ", command->name);
        va_start(args, format);
        vfprintf(stderr, format, args);
        va_end(args);
        fputc('\n', stderr);
    }
}

static void print_lines(const char *title, const char *lines) {
    printf("\n%s\n", title);
    for (const char *at = lines; *at; at += strspn(at, "\n")) {
        int length = (int)strcspn(at, "\n");
        printf("    %.*s\n", length, at);
        at += length;
    }
}

static void print_help(const cli_command *command, const cli_option *options,
                       size_t count) {
    const char *operands = command->operands;
    printf("usage: tranche %s%s%s [options]\n%s\n\n", command->name,
           operands[0] ? " " : "", operands, command->doc);
    for (size_t i = 0; i < count; i++) {
        char left[64];
        snprintf(left, sizeof left, "%s %s", options[i].name,
                 options[i].value ? options[i].value : "");
        printf("    %-28s %s\n", left, options[i].doc);
    }
    printf("    %-28s %s\n", cli_option_help.name, cli_option_help.doc);
    print_lines("examples:", command->examples);
    print_lines("exit status:", command->statuses);
}

static const cli_option *find(const cli_option *options, size_t count, const char *name,
                              size_t length) {
    for (size_t i = 0; i < count; i++) {
        if (strlen(options[i].name) == length &&
            strncmp(options[i].name, name, length) == 0) {
            return &options[i];
        }
    }
    return NULL;
}

static void say_unknown(const cli_command *command, const cli_option *options,
                        size_t count, const char *name) {
    const char *names[NAMES_MAX] = {cli_option_help.name};
    size_t known = 1;
    for (size_t i = 0; i < count && known < NAMES_MAX; i++) {
        names[known++] = options[i].name;
    }
    char shown[REPORT_WORD_MAX + 4], bare[REPORT_WORD_MAX + 4];
    report_word(name, shown);
    snprintf(bare, sizeof bare, "%.*s", (int)strcspn(shown, "="), shown);
    const char *nearest = tr_nearest(bare, names, known);
    complain(command, "unknown option %s; %s%s%s", shown,
             nearest ? "did you mean " : "see --help", nearest ? nearest : "",
             nearest ? "?" : "");
}

static bool parse_count(const char *value, int64_t least, int64_t *count) {
    char *end = NULL;
    errno = 0;
    long long number = strtoll(value, &end, 10);
    *count = number;
    return end != value && *end == '\0' && errno == 0 && number >= least;
}

static bool parse_number(const char *value, double *number) {
    char *end = NULL;
    *number = strtod(value, &end);
    return end != value && *end == '\0' && *number >= 0 && isfinite(*number);
}

static bool store(const cli_command *command, const cli_option *option,
                  const char *value) {
    char shown[REPORT_WORD_MAX + 4];
    cli_list *list = option->to;
    bool good = true;
    switch (option->kind) {
    case CLI_FLAG:
        *(bool *)option->to = true;
        break;
    case CLI_TEXT:
        *(const char **)option->to = value;
        break;
    case CLI_LIST:
        if (list->count == CLI_LIST_MAX) {
            complain(command, "%s given more than %d times", option->name,
                     CLI_LIST_MAX);
            return false;
        }
        list->items[list->count++] = value;
        break;
    case CLI_COUNT:
    case CLI_SOME:
        good = parse_count(value, option->kind == CLI_SOME, option->to);
        break;
    case CLI_NUMBER:
        good = parse_number(value, option->to);
        break;
    }
    if (!good) {
        complain(command, "%s %s: expected a %snumber of %d or more", option->name,
                 report_word(value, shown), option->kind == CLI_NUMBER ? "" : "whole ",
                 option->kind == CLI_SOME);
    }
    return good;
}

// One option at argv[*i], "--name value" or "--name=value".
static bool take_option(const cli_command *command, const cli_option *options,
                        size_t option_count, int argc, char **argv, int *i) {
    const char *word = argv[*i], *equals = strchr(word, '=');
    size_t length = equals ? (size_t)(equals - word) : strlen(word);
    const cli_option *option = find(options, option_count, word, length);
    if (!option) {
        say_unknown(command, options, option_count, word);
        return false;
    }
    const char *value = equals ? equals + 1 : NULL;
    if (option->kind == CLI_FLAG && value) {
        complain(command, "%s takes no value", option->name);
        return false;
    }
    if (option->kind != CLI_FLAG && !value) {
        if (*i + 1 >= argc) {
            complain(command, "%s needs a value: %s", option->name, option->value);
            return false;
        }
        value = argv[++*i];
    }
    return store(command, option, value);
}

bool cli_parse(const cli_command *command, const cli_option *options,
               size_t option_count, int argc, char **argv, cli_operands *operands,
               int *exit_status) {
    bool options_end = false;
    *exit_status = tr_status_exit(TR_USAGE);
    operands->count = 0;
    if (command->reader) {
        command->reader->read(command->reader->user, command, options, option_count);
        return false;
    }
    for (int i = 0; i < argc && strcmp(argv[i], "--") != 0; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            if (tr_comm_speaks(NULL)) {
                print_help(command, options, option_count);
            }
            *exit_status = 0;
            return false;
        }
    }
    for (int i = 0; i < argc; i++) {
        if (!options_end && strcmp(argv[i], "--") == 0) {
            options_end = true;
        } else if (!options_end && argv[i][0] == '-' && argv[i][1] != '\0') {
            if (!take_option(command, options, option_count, argc, argv, &i)) {
                return false;
            }
        } else if (operands->count == operands->most) {
            char shown[REPORT_WORD_MAX + 4];
            complain(command, "unexpected argument: %s", report_word(argv[i], shown));
            return false;
        } else {
            operands->at[operands->count++] = argv[i];
        }
    }
    if (operands->count < operands->least) {
        complain(command, "needs %s; see tranche %s --help", command->operands,
                 command->name);
        return false;
    }
    return true;
}

void cli_read_options(const cli_command *command, const cli_option_reader *reader) {
    cli_command asked = *command;
    asked.reader = reader;
    asked.run(&asked, 0, NULL);
}

int cli_fail(const tr_error *err) {
    char line[TR_MESSAGE_MAX];
    snprintf(line, sizeof line, "%s", err->message);
    for (char *c = line; *c; c++) { // names of files may hold anything
        bool next_line = strncmp(c, "\n    ", 5) == 0; // see tr_error
        bool bad = (unsigned char)*c < 0x20 || *c == 0x7f;
        *c = bad && !next_line ? '?' : *c;
    }
    report_print_colored_line(stderr, REPORT_RED, "tranche: ", line);
    return tr_status_exit(err->status);
}

int cli_end(tr_status status) {
    tr_error err = {0};
    if (fflush(stdout) != 0 || ferror(stdout)) {
        tr_fail(&err, TR_IO, "cannot write to standard output: %s", strerror(errno));
        return cli_fail(&err);
    }
    return tr_status_exit(status);
}

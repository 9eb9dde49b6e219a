#include "base/text.h"
#include "cli/cli.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES_MAX = 32 };

static void print_help(const cli_command *command, const cli_option *options,
                       size_t count) {
    printf("usage: tranche %s %s [options]\n%s\n\n", command->name, command->operands,
           command->doc);
    for (size_t i = 0; i < count; i++) {
        char left[64];
        snprintf(left, sizeof left, "%s %s", options[i].name,
                 options[i].value ? options[i].value : "");
        printf("    %-28s %s\n", left, options[i].doc);
    }
    printf("    %-28s %s\n", "--help", "this text");
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
    const char *names[NAMES_MAX] = {"--help"};
    size_t known = 1;
    for (size_t i = 0; i < count && known < NAMES_MAX; i++) {
        names[known++] = options[i].name;
    }
    const char *nearest = tr__nearest(name, names, known);
    fprintf(stderr, "tranche %s: unknown option %s", command->name, name);
    fprintf(stderr, nearest ? "; did you mean %s?\n" : "; see --help\n", nearest);
}

static bool store(const cli_command *command, const cli_option *option,
                  const char *value) {
    char *end = NULL;
    cli_list *list = option->to;
    errno = 0;
    switch (option->kind) {
    case CLI_FLAG:
        *(bool *)option->to = true;
        return true;
    case CLI_TEXT:
        *(const char **)option->to = value;
        return true;
    case CLI_LIST:
        if (list->count == CLI_LIST_MAX) {
            fprintf(stderr, "tranche %s: %s given more than %d times\n", command->name,
                    option->name, CLI_LIST_MAX);
            return false;
        }
        list->items[list->count++] = value;
        return true;
    case CLI_COUNT: {
        long long number = strtoll(value, &end, 10);
        if (end != value && *end == '\0' && errno == 0 && number >= 0) {
            *(int64_t *)option->to = number;
            return true;
        }
        break;
    }
    case CLI_NUMBER: {
        double number = strtod(value, &end);
        if (end != value && *end == '\0' && number >= 0 && isfinite(number)) {
            *(double *)option->to = number;
            return true;
        }
        break;
    }
    }
    fprintf(stderr, "tranche %s: %s %s: not a number of 0 or more\n", command->name,
            option->name, value);
    return false;
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
        fprintf(stderr, "tranche %s: %s takes no value\n", command->name, option->name);
        return false;
    }
    if (option->kind != CLI_FLAG && !value) {
        if (*i + 1 >= argc) {
            fprintf(stderr, "tranche %s: %s needs a value: %s\n", command->name,
                    option->name, option->value);
            return false;
        }
        value = argv[++*i];
    }
    return store(command, option, value);
}

bool cli_parse(const cli_command *command, const cli_option *options,
               size_t option_count, int argc, char **argv, const char **operands,
               size_t least, size_t most, size_t *count, int *exit_status) {
    *exit_status = tr_status_exit(TR_USAGE);
    *count = 0;
    for (int i = 0; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            print_help(command, options, option_count);
            *exit_status = 0;
            return false;
        }
    }
    for (int i = 0; i < argc; i++) {
        if (argv[i][0] == '-' && argv[i][1] != '\0') {
            if (!take_option(command, options, option_count, argc, argv, &i)) {
                return false;
            }
        } else if (*count == most) {
            fprintf(stderr, "tranche %s: one operand too many: %s\n", command->name,
                    argv[i]);
            return false;
        } else {
            operands[(*count)++] = argv[i];
        }
    }
    if (*count < least) {
        fprintf(stderr, "usage: tranche %s %s [options]; see tranche %s --help\n",
                command->name, command->operands, command->name);
        return false;
    }
    return true;
}

int cli_fail(const tr_error *err) {
    fprintf(stderr, "tranche: %s\n", err->message);
    return tr_status_exit(err->status);
}

#include "cli/complete.h"

#include "cli/manual.h"

#include <string.h>

enum { FORM_MAX = 128 };

typedef struct command_line {
    const char *const *words; // behind the command's name
    size_t count;
    cli_typed typed; // the last of them
} command_line;

// ---- options

static const cli_option *find(const cli_option *options, size_t count, const char *word,
                              size_t length) {
    for (size_t i = 0; i < count; i++) {
        if (strlen(options[i].name) == length &&
            strncmp(options[i].name, word, length) == 0) {
            return options[i].kind == CLI_FLAG ? NULL : &options[i];
        }
    }
    return NULL;
}

static void offer_options(const cli_typed *typed, const cli_option *options,
                          size_t count) {
    for (size_t i = 0; i < count; i++) {
        cli_candidate(typed, options[i].name, options[i].doc);
    }
    cli_candidate(typed, cli_option_help.name, cli_option_help.doc);
}

// ---- operands

// The form of operand number `index` in "FILE.gguf OUT", "[RUN.json]", "DATA...": the
// last one also of those behind it, if it may be given again.
static bool form_of(const char *operands, size_t index, char *form) {
    size_t at = 0;
    for (;;) {
        size_t length = strcspn(operands, " ");
        if (length == 0) {
            return false;
        }
        snprintf(form, FORM_MAX, "%.*s", (int)length, operands);
        operands += length + (operands[length] == ' ');
        char *dots = strstr(form, "...");
        if (at++ == index || (dots && *operands == '\0')) {
            if (dots) {
                memmove(dots, dots + 3, strlen(dots + 3) + 1);
            }
            return true;
        }
    }
}

static void offer_pages(const cli_typed *typed) {
    for (size_t i = 0; cli_command_at(i); i++) {
        cli_candidate(typed, cli_command_at(i)->name, cli_command_at(i)->doc);
    }
    cli_candidate(typed, CLI_MANUAL_KEYS, NULL);
}

static void offer_operand(const cli_typed *typed, const cli_command *command,
                          size_t index) {
    char form[FORM_MAX];
    if (!form_of(command->operands, index, form)) {
        return;
    }
    char *begin = form + strspn(form, "["), *end = strchr(form, ']');
    if (end) {
        *end = '\0';
    }
    if (strcmp(begin, CLI_MANUAL_PAGE) == 0) {
        offer_pages(typed);
    } else {
        cli_complete_value(typed, begin);
    }
}

// ---- a command's line

// What the words before the last one leave open: the option whose value it is, or how
// many operands there are before it, and whether options have ended.
typedef struct place {
    const cli_option *option;
    size_t operands;
    bool options_end;
} place;

static place find_place(const command_line *line, const cli_option *options,
                        size_t count) {
    place at = {0};
    for (size_t i = 0; i + 1 < line->count; i++) {
        const char *word = line->words[i];
        if (at.option) { // the word is its value
            at.option = NULL;
        } else if (!at.options_end && strcmp(word, "--") == 0) {
            at.options_end = true;
        } else if (!at.options_end && word[0] == '-' && word[1] != '\0') {
            at.option = find(options, count, word, strlen(word));
        } else {
            at.operands++;
        }
    }
    return at;
}

static void complete_line(void *user, const cli_command *command,
                          const cli_option *options, size_t count) {
    const command_line *line = user;
    const cli_typed *typed = &line->typed;
    place at = find_place(line, options, count);
    const char *equals = strchr(typed->word, '=');
    bool is_option = !at.options_end && typed->word[0] == '-';
    if (at.option) {
        cli_complete_value(typed, at.option->value);
    } else if (is_option && equals) { // "--out=..."
        size_t name = (size_t)(equals - typed->word);
        const cli_option *option = find(options, count, typed->word, name);
        char lead[FORM_MAX];
        if (option) {
            snprintf(lead, sizeof lead, "%s=", option->name);
            cli_complete_value(&(cli_typed){typed->word, lead, typed->to},
                               option->value);
        }
    } else if (is_option) {
        offer_options(typed, options, count);
    } else {
        offer_operand(typed, command, at.operands);
    }
}

void cli_complete(const char *const *words, size_t count, FILE *to) {
    command_line line = {words + 1, count - 1, {words[count - 1], "", to}};
    if (count == 1) {
        for (size_t i = 0; cli_command_at(i); i++) {
            cli_candidate(&line.typed, cli_command_at(i)->name, cli_command_at(i)->doc);
        }
        cli_candidate(&line.typed, cli_option_help.name, cli_option_help.doc);
        cli_candidate(&line.typed, cli_option_version.name, cli_option_version.doc);
        return;
    }
    const cli_command *command = cli_command_find(words[0]);
    if (command) {
        cli_read_options(command, &(cli_option_reader){complete_line, &line});
    }
}

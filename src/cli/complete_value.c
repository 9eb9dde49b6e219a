// Values of options and operands, by what the help shows for them.
#include "cli/complete.h"

#include <tranche/run.h>

#include <ctype.h>
#include <string.h>

enum { WORD_MAX = 256 };

// What stands for names of files or folders, for texts of a key, or for a key. All
// other placeholders (N, TEXT, NAME) stand for what nobody can guess.
static const struct {
    const char *placeholder;
    const char *directive; // NULL: none
    const char *key;       // whose texts these are; NULL: none's
} meanings[] = {
    {"FILE", ":files", NULL},        {"PATH", ":files", NULL},
    {"DATA", ":files", NULL},        {"IDS", ":files", NULL},
    {"A", ":files", NULL},           {"B", ":files", NULL},
    {"DIR", ":folders", NULL},       {"OUT", ":folders", NULL},
    {"FORMAT", NULL, "data.format"},
};

static bool begins(const char *text, const char *with) {
    return strncmp(text, with, strlen(with)) == 0;
}

void cli_candidate(const cli_typed *typed, const char *word, const char *doc) {
    if (begins(word, typed->word + strlen(typed->lead))) {
        fprintf(typed->to, "%s%s\t%s\n", typed->lead, word, doc ? doc : "");
    }
}

// ---- keys of run files

// Was a key of this path among those before number `index`? Keys of one optimizer each
// may have the same.
static bool is_again(const tr_run_key *key, size_t index) {
    tr_run_key other = TR_RUN_KEY_INIT;
    for (size_t i = 0; i < index && tr_run_key_at(i, &other); i++) {
        if (strcmp(other.path, key->path) == 0) {
            return true;
        }
    }
    return false;
}

// Keys inside of lists' elements cannot be set one by one, nor what has no effect.
static bool is_settable(const tr_run_key *key) {
    return key->works && !strchr(key->path, '*');
}

static void complete_keys(const cli_typed *typed) {
    tr_run_key key = TR_RUN_KEY_INIT;
    for (size_t i = 0; tr_run_key_at(i, &key); i++) {
        char word[WORD_MAX];
        snprintf(word, sizeof word, "%s=", key.path);
        if (is_settable(&key) && !is_again(&key, i)) {
            cli_candidate(typed, word, key.doc);
        }
    }
    fputs(":open\n", typed->to);
}

static void complete_texts(const cli_typed *typed, const tr_run_key *key) {
    for (size_t i = 0; key->choices && key->choices[i]; i++) {
        cli_candidate(typed, key->choices[i], NULL);
    }
    if (key->takes_bool) {
        cli_candidate(typed, "true", NULL);
        cli_candidate(typed, "false", NULL);
    }
    if (key->takes_auto) {
        cli_candidate(typed, "auto", NULL);
    }
}

// The values of all keys that have this path.
static void complete_key(const cli_typed *typed, const char *path) {
    tr_run_key key = TR_RUN_KEY_INIT;
    for (size_t i = 0; tr_run_key_at(i, &key); i++) {
        if (strcmp(key.path, path) == 0) {
            complete_texts(typed, &key);
        }
    }
}

// "KEY.PATH=VALUE": the key up to its "=", then the value.
static void complete_assignment(const cli_typed *typed) {
    const char *begin = typed->word + strlen(typed->lead), *equals = strchr(begin, '=');
    char lead[WORD_MAX], path[WORD_MAX];
    if (!equals) {
        complete_keys(typed);
        return;
    }
    snprintf(lead, sizeof lead, "%.*s", (int)(equals + 1 - typed->word), typed->word);
    snprintf(path, sizeof path, "%.*s", (int)(equals - begin), begin);
    complete_key(&(cli_typed){typed->word, lead, typed->to}, path);
}

// ---- placeholders

// "RUN.json", "FILE.npy": a placeholder with the end of the files' names.
static bool complete_ending(const cli_typed *typed, const char *part) {
    const char *dot = strchr(part, '.');
    if (!dot || !isupper((unsigned char)part[0]) || !islower((unsigned char)dot[1])) {
        return false;
    }
    fprintf(typed->to, ":files %s\n", dot);
    return true;
}

static void complete_placeholder(const cli_typed *typed, const char *part) {
    for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++) {
        if (strcmp(meanings[i].placeholder, part) != 0) {
            continue;
        }
        if (meanings[i].directive) {
            fprintf(typed->to, "%s\n", meanings[i].directive);
        } else {
            complete_key(typed, meanings[i].key);
        }
    }
}

static void complete_part(const cli_typed *typed, const char *part) {
    if (strcmp(part, "KEY.PATH=VALUE") == 0) {
        complete_assignment(typed);
    } else if (!complete_ending(typed, part)) {
        bool literal =
            islower((unsigned char)part[0]) && !strpbrk(part, "ABCDEFGHIJKLMN"
                                                              "OPQRSTUVWXYZ");
        if (literal) {
            cli_candidate(typed, part, NULL);
        } else {
            complete_placeholder(typed, part);
        }
    }
}

void cli_complete_value(const cli_typed *typed, const char *form) {
    while (*form) {
        char part[WORD_MAX];
        size_t length = strcspn(form, "|");
        snprintf(part, sizeof part, "%.*s", (int)length, form);
        complete_part(typed, part);
        form += length + (form[length] == '|');
    }
}

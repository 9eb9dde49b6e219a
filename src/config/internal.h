// What the files of this room share.
#ifndef TR_CONFIG_INTERNAL_H
#define TR_CONFIG_INTERNAL_H

#include "base/problems.h"
#include "config/config.h"

#include <jansson.h>

// One key of the tables (none for keys with a star) and what became of it.
typedef struct tr_entry {
    const tr_key *key;
    json_t *value;    // owned; NULL: not given, or "auto"
    json_t *fallback; // owned; NULL: none
    bool given;       // by the user
    bool is_auto;     // "auto", not resolved
    bool wrong;       // what was given is no value of the key; this has been told
    bool unmet;       // a switch that is on, and that nothing here obeys
    tr_origin origin;
    char *source; // of TR_ORIGIN_SET: whose words; owned
    int line;     // in the file's text; 0: it is not from there, or not known
    char *why;    // NULL: nothing to add
} tr_entry;

struct tr_config {
    char *name; // of the file
    const char *text;
    size_t bytes; // the file's text, while it is being opened
    const tr_key_table *const *tables;
    size_t table_count;
    const tr_config_override *overrides;
    size_t override_count;
    json_t *root; // file and overrides, merged
    tr_entry *entries;
    size_t count;
    char *no_meaning;
    tr_problems problems;
    tr_error mistake; // of the program, in reading a key; TR_OK: none so far
};

// The entry of `path` that is in force (see tr_key.where); NULL: none.
tr_entry *tr__config_entry(const tr_config *config, const char *path);
bool tr__config_in_force(const tr_config *config, const tr_key *key);
// Given or resolved or default, borrowed; NULL: none.
json_t *tr__entry_value(const tr_entry *entry);
// Is `path` in a group whose `enabled` is not true?
bool tr__config_disabled(const tr_config *config, const char *path);
// TR_INTERNAL: the program has read a key that is in no table, or as another type.
tr_status tr__config_mistake(const tr_config *config, tr_error *err);
// Key number i of all tables in a row; NULL after the last.
const tr_key *tr__config_key(const tr_config *config, size_t index);

// plain.c: puts spaces in place of comments and of commas behind the last element.
// TR_USAGE: a comment without an end.
tr_status tr__config_plain(const char *name, char *text, size_t bytes, tr_error *err);
// load.c: the file's text as an object.
tr_status tr__config_load(const char *name, const char *text, size_t bytes,
                          json_t **root, tr_error *err);
// groups.c: gives each value that stands in place of a group its key there, by
// tr_key.of_group.
tr_status tr__config_name_values(tr_config *config, tr_error *err);
// override.c: puts the overrides into the tree.
tr_status tr__config_override(tr_config *config, tr_error *err);
// Has an override with `rules_out` the last word on `path`?
bool tr__config_rules_out(const tr_config *config, const char *path);
// The origin of `path` in the merged tree.
tr_origin tr__config_path_origin(const tr_config *config, const char *path);
// Who gave it, where that is an override; else NULL.
const char *tr__config_path_source(const tr_config *config, const char *path);
// Was it given as plain text for the key, so that nobody has spelt the key?
bool tr__config_is_literal(const tr_config *config, const char *path);
// problems.c: keeps what is wrong in the user's keys, so that all of it can be told
// together. TR_OK, unless the error is of another kind.
tr_status tr__config_problem(tr_config *config, const tr_error *found, tr_error *err);
// walk.c: every key of the tree to its entry, or a problem.
tr_status tr__config_walk(tr_config *config, tr_error *err);
// known.c: does the path lead to a key of the tables, or into one's object?
bool tr__config_has_path(const tr_config *config, const char *path);
// unknown.c: the error for a key that no table has.
tr_status tr__config_unknown(const tr_config *config, const char *path, tr_error *err);
tr_status tr__config_misplaced(const tr_config *config, const char *path,
                               const tr_key *key, tr_error *err);
// check.c: *out is a new reference to the value in its stored form. TR_USAGE: all that
// is wrong in it has been kept as problems, and *err is as it was.
tr_status tr__config_check(tr_config *config, const tr_key *key, const char *path,
                           json_t *value, json_t **out, tr_error *err);
// ready.c: not-yet keys that ask for something are problems; lists those of no meaning.
tr_status tr__config_ready(tr_config *config, tr_error *err);

// where.c: for messages. dst: [size]. "FILE:LINE: ", "--set: ", for the value at
// `path`.
void tr__config_where(const tr_config *config, const char *path, char *dst,
                      size_t size);
// show.c: `path` without control characters, shortened.
void tr__config_show_path(const char *path, char *dst, size_t size);
// `value` as JSON, shortened.
void tr__config_show_value(const json_t *value, char *dst, size_t size);

// print.c: JSON text; indent 0: on one line. Freed with tr__free; NULL: no memory.
char *tr__config_print(const json_t *value, int indent);

// Line of the key at `path` in valid JSON text, from 1; 0: not there.
int tr__config_line(const char *text, size_t bytes, const char *path);

#endif

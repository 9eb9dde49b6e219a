// The run file: a JSON object, read against tables of keys.
//
// What is in the file and in the overrides is checked whole before anything else
// happens: unknown keys (with the nearest known one), types, ranges, choices, keys
// whose time has not come; all that is wrong is told at once. After that, getters
// cannot fail.
//
// In a key group that has a key `enabled`, the group's other keys are checked but ask
// for nothing while `enabled` is not true. `null` is a key left out. Two top-level
// objects are skipped, "origins" and "derived": so the run.json that
// tr__config_write_resolved makes is itself a run file.
#ifndef TR_CONFIG_CONFIG_H
#define TR_CONFIG_CONFIG_H

#include "config/keys.h"

#include <tranche/status.h>

#include <stdint.h>

struct json_t; // jansson's

typedef struct tr_config tr_config;

// Where a value comes from.
typedef enum tr_origin {
    TR_ORIGIN_DEFAULT, // the table
    TR_ORIGIN_FILE,
    TR_ORIGIN_SET,     // the caller
    TR_ORIGIN_AUTO,    // decided where the user said "auto", or said nothing
    TR_ORIGIN_DERIVED, // follows from other values: not an input of the run
} tr_origin;

// One value given outside of the file, whose origin is TR_ORIGIN_SET. Later ones win
// over earlier ones and the file.
typedef struct tr_config_override {
    const char *key;   // "optimizer.params.lr"; NULL: `value` is "KEY.PATH=VALUE"
    const char *value; // JSON, or else plain text
    bool literal;      // plain text even where it looks like JSON
    bool append;       // one more element of the list that the key's last override
                       // began by adding to it, else the first one
    bool rules_out;    // the file's keys that this value leaves no place for are passed
                       // over, and no error
    const char *source; // who gives it, for messages and origins; NULL: "--set"
} tr_config_override;

enum {
    TR_CONFIG_BYTES_MAX = 16 << 20, // of a run file
    TR_CONFIG_PATH_MAX = 256,       // of a key's path
    TR_CONFIG_AUTO_TEXT = 64,       // of a value that is told
};

// Reads `path` (NULL: an empty object). The tables and all they point to must outlive
// the config; the overrides need not. The caller destroys *out.
// TR_USAGE: whatever is wrong with file or overrides, with FILE:LINE where the file is
// to blame; TR_MEMORY.
tr_status tr__config_open(const char *path, const tr_key_table *const *tables,
                          size_t table_count, const tr_config_override *overrides,
                          size_t override_count, tr_config **out, tr_error *err);
// The same for text in memory. name: what stands for the file in messages; NULL: "run
// file". text: NULL: an empty object.
typedef struct tr_config_text {
    const char *name, *text;
    size_t bytes;
} tr_config_text;
tr_status tr__config_parse(const tr_config_text *file,
                           const tr_key_table *const *tables, size_t table_count,
                           const tr_config_override *overrides, size_t override_count,
                           tr_config **out, tr_error *err);
void tr__config_destroy(tr_config *config); // NULL-safe

// The keys the user gave that do nothing here, "a, b.*, c"; NULL when there are none.
// "b.*" stands for a group of which no key does anything.
const char *tr__config_no_meaning(const tr_config *config);
// Switches (keys named `enabled`) that the user has turned on and that nothing here
// obeys; their groups are not in the list above. NULL after the last.
const tr_key *tr__config_unmet(const tr_config *config, size_t index);

// ---- reading. A path that no table has, or a getter of another type, is a mistake of
// the program: the getter finds no value, and tr__config_settle and
// tr__config_write_resolved return TR_INTERNAL from then on. What is returned belongs
// to the config. A value is the one given, else the one resolved, else the default;
// where there is none (tr__config_is_set is false) getters return false, 0, NULL.

bool tr__config_is_set(const tr_config *config, const char *path);   // has a value
bool tr__config_is_given(const tr_config *config, const char *path); // by the user
bool tr__config_is_auto(const tr_config *config,
                        const char *path); // "auto", unresolved
bool tr__config_is_decided(const tr_config *config,
                           const char *path); // set, not "auto"
tr_origin tr__config_origin(const tr_config *config, const char *path);
// A key's value as JSON ("\"auto\"" where it is undecided; NULL: it has none), and its
// origin in the words of run.json ("file", "auto: planner"; "default" also where there
// is no value). The caller frees both with tr__free. TR_USAGE: no table has the key.
// TR_MEMORY.
tr_status tr__config_tell(const tr_config *config, const char *path, char **value,
                          char **origin, tr_error *err);
// Is there such a key, or a group of keys, or a place in an object that a key hands on
// whole? TR_USAGE names the nearest. Needs no config. source: as an override's.
tr_status tr__config_knows(const tr_key_table *const *tables, size_t table_count,
                           const char *path, const char *source, tr_error *err);
// What the key accepts, in words: "an integer from 1 to 8 or \"auto\"". dst: [size].
void tr__config_show_wanted(const tr_key *key, char *dst, size_t size);
// For messages about what is in an object that is handed on whole: "FILE:LINE: model",
// "--set: model". dst: [size].
void tr__config_name(const tr_config *config, const char *path, char *dst, size_t size);

// The user has said it, and not "auto".
bool tr__config_is_said(const tr_config *config, const char *path);

bool tr__config_bool(const tr_config *config, const char *path);
int64_t tr__config_int(const tr_config *config, const char *path);
double tr__config_number(const tr_config *config, const char *path); // also of an int
const char *tr__config_text(const tr_config *config, const char *path);
int64_t tr__config_size(const tr_config *config, const char *path); // bytes

// For keys of several types: what the value is (one of TR_KEY_*), 0 when there is none.
unsigned tr__config_type(const tr_config *config, const char *path);
// Elements of a list; of a single value 1, of none 0. So a key that takes "one or a
// list" reads the same either way.
size_t tr__config_count(const tr_config *config, const char *path);
const char *tr__config_text_at(const tr_config *config, const char *path, size_t index);
double tr__config_number_at(const tr_config *config, const char *path, size_t index);
// The value itself, borrowed; NULL: none. For objects that are handed on whole.
struct json_t *tr__config_json(const tr_config *config, const char *path);

// Copies the values of all keys that have a place in the struct `to` (tr_key.offset): a
// bool, an int or int64_t, a double, or of a text its number among the key's choices. A
// key without a value leaves its field as it is.
void tr__config_read_fields(const tr_config *config, void *to);
// Key number `index` that the user has decided and that has no effect here, by the rule
// `idle` of its row, which is given `object`; NULL after the last.
const tr_key *tr__config_idle(const tr_config *config, const void *object,
                              size_t index);

// ---- resolving. Records what a key came to: `origin` is TR_ORIGIN_AUTO or
// TR_ORIGIN_DERIVED, `why` (copied; may be NULL) says by whom or from what. A value
// that the user wrote (not "auto") stays as it is. TR_MEMORY.

tr_status tr__config_resolve_bool(tr_config *config, const char *path, bool value,
                                  tr_origin origin, const char *why, tr_error *err);
tr_status tr__config_resolve_int(tr_config *config, const char *path, int64_t value,
                                 tr_origin origin, const char *why, tr_error *err);
tr_status tr__config_resolve_number(tr_config *config, const char *path, double value,
                                    tr_origin origin, const char *why, tr_error *err);
tr_status tr__config_resolve_text(tr_config *config, const char *path,
                                  const char *value, tr_origin origin, const char *why,
                                  tr_error *err);
// `value` is deep-copied, and takes the place of what the user wrote too: a model's
// object with its own defaults filled in.
tr_status tr__config_resolve_json(tr_config *config, const char *path,
                                  const struct json_t *value, tr_origin origin,
                                  const char *why, tr_error *err);
// Says in run.json what an "auto" that stays one stands for. Nothing where the key is
// not "auto".
tr_status tr__config_explain_auto(tr_config *config, const char *path, const char *why,
                                  tr_error *err);
// An "auto" of the user's, and what it came to.
typedef struct tr_config_auto {
    const char *key;
    char value[TR_CONFIG_AUTO_TEXT]; // JSON; "": none, it stays what `why` says
    const char *why;                 // by whom or from what
} tr_config_auto;
// The one from number *next on, which becomes that of the one after it; false: there is
// none.
bool tr__config_auto_at(const tr_config *config, size_t *next, tr_config_auto *out);
// Every "auto" that is left takes its key's default, where it has one.
tr_status tr__config_settle(tr_config *config, tr_error *err);

// ---- run.json. One object, in the order of the tables:
//     every value that is an input of the run, at its place: a run file again;
//     "derived": {"gradient_accumulation_steps": 8, ...}, what followed from them;
//     "origins": {"train_batch_size": "file", "execution.wave": "auto: planner", ...}.
// Keys of no meaning are in it where the user gave them. The caller frees *text with
// tr__free.
tr_status tr__config_write_resolved(const tr_config *config, char **text,
                                    tr_error *err);

#endif

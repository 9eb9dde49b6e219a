// Tables of keys: what a run file may say. Each room lists its own; this room reads
// any.
#ifndef TR_CONFIG_KEYS_H
#define TR_CONFIG_KEYS_H

#include <stdbool.h>
#include <stddef.h>

// What a value may be; or-ed together.
enum {
    TR_KEY_BOOL = 1,
    TR_KEY_INT = 2,    // 8, and 5e8 (a whole number however it is written)
    TR_KEY_NUMBER = 4, // read as a double
    TR_KEY_TEXT = 8,
    TR_KEY_SIZE = 16, // bytes: 1024, "6GiB", "500MB"
    TR_KEY_LIST = 32,
    TR_KEY_OBJECT = 64, // handed on whole, its inside is not looked at
};

#define TR_KEY_NUMBER_MAX 1e300 // numbers that have no other bound

typedef enum tr_key_status {
    TR_KEY_WORKS,
    TR_KEY_NO_MEANING, // accepted, does nothing here, said once by name
    TR_KEY_NOT_YET,    // accepted while it asks for nothing (see `fallback`)
    TR_KEY_REFUSED,    // an error that says `doc`
    TR_KEY_OF_CALL,    // said by the caller of a run alone: an error in a file, and not
                       // in run.json. It has a default, or none, as one that works
} tr_key_status;

// One key. Fields left out are zero and mean "no such rule".
typedef struct tr_key {
    // Names joined by dots: "optimizer.params.lr". In "optimizer.groups.*.lr" the star
    // stands for each element of the list "optimizer.groups"; such a key is checked,
    // not read by a getter.
    const char *path;
    unsigned types;
    unsigned elements; // of a list: what each element may be
    int length;        // of a list: how many elements, 0: any number
    bool allow_auto;   // "auto": whoever plans decides (never asked of NO_MEANING keys)
    tr_key_status status;
    // Default, as JSON text; NULL: none. For NOT_YET the value that asks for nothing.
    const char *fallback;
    // Numbers, sizes and their lists lie in [min, max], or [min, max) where
    // `max_excluded`. Both zero: sizes are at least 0, others unbounded.
    double min, max;
    bool max_excluded;
    // Texts, NULL-terminated, compared without case and stored as spelt here.
    const char *const *choices;
    bool numbered;            // a number may stand behind each of them: "cuda:1"
    const char *const *later; // known names whose time has not come
    // A value in place of the key's group is this key's: "memory": "2GiB" says
    // memory.total.
    bool of_group;
    // The key exists only where the text key `where_key` is one of `where`.
    const char *where_key;
    const char *const *where;
    const char *doc; // one line
    // Where tr__config_read_fields puts the value: bytes of the room's own struct.
    // `size` 0: nowhere.
    size_t offset, size;
    // Where `idle` says so of the room's own object, the key has no effect, for the
    // reason `why`. NULL: it always has one.
    bool (*idle)(const void *object);
    const char *why;
    const char *since; // the first version that has it; NULL: 0.1.0, the first of all
} tr_key;

// A name that other programs have for something: by which key it is said here (NULL:
// none), or what there is in its place.
typedef struct tr_key_name {
    const char *name; // the last one of a path
    const char *path;
    const char *instead;
} tr_key_name;

typedef struct tr_key_table tr_key_table;
struct tr_key_table {
    const tr_key *keys;
    size_t count;
    const tr_key_table *const *parts; // tables that follow its keys, then NULL; or NULL
    const tr_key_name *names;         // for messages, the last has no name; or NULL
};

// Key number `index` of all tables and their parts in a row; NULL after the last.
const tr_key *tr__key_at(const tr_key_table *const *tables, size_t table_count,
                         size_t index);

#endif

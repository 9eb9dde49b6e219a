// Reading an architecture's numbers from JSON by a table of fields.
#ifndef TR_MODELS_FIELDS_H
#define TR_MODELS_FIELDS_H

#include <tranche/status.h>

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tr_model_field {
    const char *name;
    double min, max;
    int64_t *integer; // where an integer goes, or
    double *number;   // a number
} tr_model_field;

// Where the keys came from, for messages.
typedef struct tr_model_keys {
    const json_t *object;
    const char *origin; // "run.json:3: model", or a file
} tr_model_keys;

// 768, 768.0 or 7.68e2: a whole number however it is written. False: it is none.
bool tr__field_whole(const json_t *value, int64_t *out);
// Fields that are there are checked and stored; null and missing ones keep their value.
tr_status tr__fields_read(const tr_model_keys *keys, const tr_model_field *fields,
                          size_t count, tr_error *err);
// A text among `choices` [count]; its index, `fallback` when it is not there, -1 on
// error.
int tr__field_choice(const tr_model_keys *keys, const char *name,
                     const char *const *choices, size_t count, int fallback,
                     tr_error *err);
// A boolean that has to be `value` when it is there: what else it asks for is not
// built.
tr_status tr__field_only(const tr_model_keys *keys, const char *name, bool value,
                         tr_error *err);
// Every key of the object is one of `names`.
tr_status tr__fields_known(const tr_model_keys *keys, const char *const *names,
                           size_t count, tr_error *err);

#endif

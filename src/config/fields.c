// What the rows of the tables say beyond a key's value: the field that it goes into,
// and when it has no effect.
#include "config/internal.h"

#include <string.h>

bool tr__config_is_said(const tr_config *config, const char *path) {
    tr_origin origin = tr__config_origin(config, path);
    return tr__config_is_given(config, path) && !tr__config_is_auto(config, path) &&
           origin != TR_ORIGIN_AUTO && origin != TR_ORIGIN_DERIVED;
}

static int number_of_choice(const tr_key *key, const char *text) {
    int number = 0;
    while (key->choices[number] && strcmp(key->choices[number], text) != 0) {
        number++;
    }
    return number;
}

static void put_integer(char *field, size_t size, int64_t value) {
    int narrow = (int)value;
    if (size == sizeof narrow) {
        memcpy(field, &narrow, size);
    } else {
        memcpy(field, &value, sizeof value);
    }
}

static void put(const tr_key *key, const json_t *value, char *field) {
    bool truth = json_is_true(value);
    double number = json_number_value(value);
    if (key->types & TR_KEY_BOOL) {
        memcpy(field, &truth, sizeof truth);
    } else if (key->types & TR_KEY_NUMBER) {
        memcpy(field, &number, sizeof number);
    } else if (key->types & TR_KEY_TEXT) {
        put_integer(field, key->size, number_of_choice(key, json_string_value(value)));
    } else {
        put_integer(field, key->size, json_integer_value(value));
    }
}

// "auto" is no value; its key's default may be one.
void tr__config_read_fields(const tr_config *config, void *to) {
    for (size_t i = 0; i < config->count; i++) {
        const tr_entry *entry = &config->entries[i];
        const tr_key *key = entry->key;
        const json_t *value = tr__entry_value(entry);
        bool is_word = json_is_string(value) && !(key->types & TR_KEY_TEXT);
        if (key->size > 0 && value && !is_word && tr__config_in_force(config, key)) {
            put(key, value, (char *)to + key->offset);
        }
    }
}

const tr_key *tr__config_idle(const tr_config *config, const void *object,
                              size_t index) {
    for (size_t i = 0; i < config->count; i++) {
        const tr_key *key = config->entries[i].key;
        if (key->idle && tr__config_in_force(config, key) &&
            tr__config_is_said(config, key->path) && key->idle(object) &&
            index-- == 0) {
            return key;
        }
    }
    return NULL;
}

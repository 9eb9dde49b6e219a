// What became of each "auto" that the user wrote.
#include "config/internal.h"

static bool was_auto(const tr_config *config, const tr_entry *entry) {
    bool resolved =
        entry->origin == TR_ORIGIN_AUTO || entry->origin == TR_ORIGIN_DERIVED;
    return entry->given && (entry->is_auto || resolved) &&
           entry->key->status == TR_KEY_WORKS &&
           tr__config_in_force(config, entry->key) &&
           !tr__config_disabled(config, entry->key->path) &&
           !(entry->key->types & TR_KEY_OBJECT);
}

bool tr__config_auto_at(const tr_config *config, size_t *next, tr_config_auto *out) {
    for (; *next < config->count; (*next)++) {
        const tr_entry *entry = &config->entries[*next];
        if (was_auto(config, entry) && (entry->value || entry->why)) {
            *out = (tr_config_auto){.key = entry->key->path,
                                    .why = entry->why ? entry->why : ""};
            if (entry->value && !entry->is_auto) {
                tr__config_show_value(entry->value, out->value, sizeof out->value);
            }
            (*next)++;
            return true;
        }
    }
    return false;
}

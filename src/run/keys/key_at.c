// The tables of keys, as programs outside see them.
#include "base/arguments.h"
#include "config/config.h"
#include "run/keys/beside_deepspeed.h"
#include "run/keys/keys.h"

#include <tranche/run.h>

#define FIRST_VERSION "0.1.0"

// Is it a key of files, which has to be known to whoever writes one?
static bool is_shown(const tr_key *key) {
    return key->status == TR_KEY_WORKS || key->status == TR_KEY_NO_MEANING;
}

// Shown key number `index`; NULL after the last.
static const tr_key *shown_at(size_t index) {
    const tr_key *key;
    size_t shown = 0;
    for (size_t i = 0; (key = tr__key_at(tr__key_tables, TR_KEY_TABLES, i)); i++) {
        if (is_shown(key) && shown++ == index) {
            return key;
        }
    }
    return NULL;
}

bool tr_run_key_at(size_t index, tr_run_key *out) {
    static const tr_sized known = {"tr_run_key", "TR_RUN_KEY_INIT", sizeof(tr_run_key),
                                   0};
    if (tr__need_sized(out, &known, __func__, NULL) != TR_OK) {
        return false;
    }
    const tr_key *key = shown_at(index);
    if (!key) {
        return false;
    }
    tr_run_key row = {.size = out->size,
                      .path = key->path,
                      .doc = key->doc,
                      .fallback = key->fallback,
                      .choices = key->choices,
                      .where_key = key->where_key,
                      .where = key->where,
                      .works = key->status == TR_KEY_WORKS,
                      .takes_bool = (key->types & TR_KEY_BOOL) != 0,
                      .takes_auto = key->allow_auto,
                      .deepspeed = tr__key_beside_deepspeed(key),
                      .since = key->since ? key->since : FIRST_VERSION};
    tr__config_show_wanted(key, row.takes, sizeof row.takes);
    tr__give_sized(out, &row);
    return true;
}

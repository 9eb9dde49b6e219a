#include "run/given.h"

#include "base/memory.h"
#include "run/keys/keys.h"

#include <string.h>

static tr_status fail_memory(tr_error *err) {
    return tr_fail(err, TR_MEMORY, "no memory for a run");
}

tr_status tr__given_begin(tr_given *given, tr_error *err) {
    *given = (tr_given){.source = tr__strdup("set"), .parts = TR_RUN_PARTS_INIT};
    return given->source ? TR_OK : fail_memory(err);
}

static void clear_value(tr_given_value *value) {
    tr__free(value->key);
    tr__free(value->value);
    tr__free(value->source);
}

void tr__given_clear(tr_given *given) {
    for (size_t i = 0; i < given->count; i++) {
        clear_value(&given->set[i]);
    }
    tr__free(given->set);
    tr__free(given->file);
    tr__free(given->text);
    tr__free(given->source);
    *given = (tr_given){0};
}

static tr_status add(tr_given *given, const tr_given_value *value, const char *source,
                     tr_error *err) {
    void *set = given->set;
    if (!tr__grow(&set, &given->capacity, given->count + 1, sizeof *given->set)) {
        return fail_memory(err);
    }
    given->set = set;
    tr_given_value copy = {.key = tr__strdup(value->key),
                           .value = tr__strdup(value->value),
                           .source = tr__strdup(source),
                           .literal = value->literal,
                           .append = value->append};
    if (!copy.key || !copy.value || !copy.source) {
        clear_value(&copy);
        return fail_memory(err);
    }
    given->set[given->count++] = copy;
    return TR_OK;
}

tr_status tr__given_add(tr_given *given, const tr_given_value *value, tr_error *err) {
    return add(given, value, given->source, err);
}

tr_status tr__given_copy(tr_given *to, const tr_given *from, tr_error *err) {
    tr_status status = TR_OK;
    *to = (tr_given){.file = from->file ? tr__strdup(from->file) : NULL,
                     .text = from->text ? tr__calloc(from->bytes + 1, 1) : NULL,
                     .bytes = from->bytes,
                     .source = tr__strdup(from->source),
                     .parts = from->parts};
    if ((from->file && !to->file) || (from->text && !to->text) || !to->source) {
        return fail_memory(err);
    }
    if (from->text) {
        memcpy(to->text, from->text, from->bytes);
    }
    for (size_t i = 0; i < from->count && status == TR_OK; i++) {
        status = add(to, &from->set[i], from->set[i].source, err);
    }
    return status;
}

tr_status tr__given_read(const tr_given *given, bool rules_out, tr_config **out,
                         tr_error *err) {
    tr_config_override *all = tr__calloc(given->count + 1, sizeof *all);
    const char *name = given->file ? given->file : given->text ? "run" : NULL;
    if (!all) {
        return fail_memory(err);
    }
    for (size_t i = 0; i < given->count; i++) {
        const tr_given_value *value = &given->set[i];
        all[i] = (tr_config_override){.key = value->key,
                                      .value = value->value,
                                      .literal = value->literal,
                                      .append = value->append,
                                      .rules_out = rules_out && !value->literal,
                                      .source = value->source};
    }
    tr_status status =
        tr__config_parse(&(tr_config_text){name, given->text, given->bytes},
                         tr__key_tables, TR_KEY_TABLES, all, given->count, out, err);
    tr__free(all);
    return status;
}

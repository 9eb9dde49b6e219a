// What a `for` goes through.
#include "text/template/run.h"

static const tr_jinja_list *characters(tr_jinja_run *run, tr_jinja_string text) {
    size_t count = (size_t)tr__jinja_length(text), length = 0;
    tr_jinja_value *item = tr__jinja_take(run, count + 1, sizeof *item);
    for (size_t i = 0, at = 0; item && i < count; i++, at += length) {
        tr__jinja_character(text, at, &length);
        item[i] = tr__jinja_of_string(tr__jinja_part(text, at, at + length));
    }
    tr_jinja_value list = tr__jinja_make_list(run, TR_JINJA_LIST, item, count);
    return list.kind == TR_JINJA_LIST ? list.as.list : NULL;
}

static const tr_jinja_list *keys(tr_jinja_run *run, const tr_jinja_dict *dict) {
    tr_jinja_value *item = tr__jinja_take(run, dict->count + 1, sizeof *item);
    for (size_t i = 0; item && i < dict->count; i++) {
        item[i] = dict->entry[i].key;
    }
    tr_jinja_value list = tr__jinja_make_list(run, TR_JINJA_LIST, item, dict->count);
    return list.kind == TR_JINJA_LIST ? list.as.list : NULL;
}

const tr_jinja_list *tr__jinja_iterate(tr_jinja_run *run, const tr_jinja_value *value) {
    static const tr_jinja_list empty = {.extent = {1, 0}};
    if (run->status != TR_OK) {
        return NULL;
    }
    if (value->kind == TR_JINJA_UNDEFINED) {
        return &empty;
    }
    if (value->kind == TR_JINJA_TEXT) {
        return characters(run, value->as.text);
    }
    if (value->kind == TR_JINJA_DICT) {
        return keys(run, value->as.dict);
    }
    if (!tr__jinja_is_series(value)) {
        tr__jinja_fail(run, "a value of type %s has no items to go through",
                       tr__jinja_kind_name(value->kind));
        return NULL;
    }
    if (value->kind == TR_JINJA_GENERATOR) {
        bool taken = value->as.list->taken;
        value->as.list->taken = true;
        return taken ? &empty : value->as.list;
    }
    return value->as.list;
}

void tr__jinja_give_back(const tr_jinja_value *generator, size_t used) {
    tr_jinja_list *list = generator->as.list;
    list->item += used;
    list->count -= used;
    list->taken = false;
}

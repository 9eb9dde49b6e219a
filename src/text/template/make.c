// Values that a rendering makes.
#include "text/template/run.h"

#include <jansson.h>
#include <string.h>

enum { DEPTH_MAX = 500, RANGE_MAX = 100000 };

static const int64_t weight_max = INT64_C(1) << 40;

tr_jinja_value tr__jinja_of_string(tr_jinja_string text) {
    return tr__jinja_text(text.bytes, text.count);
}

tr_jinja_value tr__jinja_make_text(tr_jinja_run *run, tr_jinja_string text) {
    char *copy = tr__jinja_take(run, text.count + 1, 1);
    if (!copy) {
        return tr__jinja_text("", 0);
    }
    if (text.count > 0) {
        memcpy(copy, text.bytes, text.count);
    }
    return tr__jinja_text(copy, text.count);
}

static void extend(tr_jinja_run *run, tr_jinja_extent *extent,
                   const tr_jinja_value *value) {
    tr_jinja_extent more = tr__jinja_extent(value);
    extent->weight += more.weight;
    extent->weight = extent->weight < weight_max ? extent->weight : weight_max;
    extent->depth = more.depth >= extent->depth ? more.depth + 1 : extent->depth;
    if (extent->depth > DEPTH_MAX) {
        tr__jinja_fail(run, "lists and dictionaries are nested too deeply");
    }
}

tr_jinja_value tr__jinja_make_list(tr_jinja_run *run, tr_jinja_kind kind,
                                   tr_jinja_value *item, size_t count) {
    tr_jinja_list *list = tr__jinja_take(run, 1, sizeof *list);
    if (!list || (!item && count > 0)) {
        return tr__jinja_none();
    }
    *list = (tr_jinja_list){.item = item, .count = count, .extent = {1, 0}};
    for (size_t i = 0; i < count; i++) {
        extend(run, &list->extent, &item[i]);
    }
    tr__jinja_charge(run, (int64_t)count);
    return (tr_jinja_value){.kind = kind, .as.list = list};
}

tr_jinja_value tr__jinja_make_range(tr_jinja_run *run, int64_t start, int64_t stop,
                                    int64_t step) {
    __int128 distance = step > 0 ? (__int128)stop - start : (__int128)start - stop;
    __int128 stride = step > 0 ? step : -(__int128)step;
    __int128 count = step == 0 || distance <= 0 ? 0 : (distance + stride - 1) / stride;
    if (step == 0 || count > RANGE_MAX) {
        tr__jinja_fail(run, "range: a step of 0, or over %d items", RANGE_MAX);
        return tr__jinja_none();
    }
    tr_jinja_value *item = tr__jinja_take(run, (size_t)count + 1, sizeof *item);
    for (int64_t i = 0; item && i < count; i++) {
        item[i] = tr__jinja_integer(start + i * step);
    }
    tr_jinja_value range =
        tr__jinja_make_list(run, TR_JINJA_RANGE, item, (size_t)count);
    if (range.kind == TR_JINJA_RANGE) {
        range.as.list->start = start;
        range.as.list->stop = stop;
        range.as.list->step = step;
    }
    return range;
}

tr_jinja_value tr__jinja_make_pair(tr_jinja_run *run, tr_jinja_value a,
                                   tr_jinja_value b) {
    tr_jinja_value *item = tr__jinja_take(run, 2, sizeof *item);
    if (!item) {
        return tr__jinja_none();
    }
    item[0] = a;
    item[1] = b;
    return tr__jinja_make_list(run, TR_JINJA_TUPLE, item, 2);
}

// ---- dictionaries

tr_jinja_dict *tr__jinja_make_dict(tr_jinja_run *run) {
    tr_jinja_dict *dict = tr__jinja_take(run, 1, sizeof *dict);
    if (dict) {
        dict->extent.weight = 1;
    }
    return dict;
}

static tr_jinja_entry *add_entry(tr_jinja_run *run, tr_jinja_dict *dict) {
    if (dict->count == dict->capacity) {
        size_t capacity = dict->capacity ? 2 * dict->capacity : 8;
        tr_jinja_entry *entry = tr__jinja_take(run, capacity, sizeof *entry);
        if (!entry) {
            return NULL;
        }
        if (dict->count > 0) {
            memcpy(entry, dict->entry, dict->count * sizeof *entry);
        }
        dict->entry = entry;
        dict->capacity = capacity;
    }
    return &dict->entry[dict->count++];
}

void tr__jinja_dict_put(tr_jinja_run *run, tr_jinja_dict *dict,
                        const tr_jinja_value *key, const tr_jinja_value *value) {
    if (!dict || run->status != TR_OK) {
        return;
    }
    tr__jinja_charge(run, (int64_t)dict->count / 8);
    tr_jinja_entry *entry = tr__jinja_dict_find(dict, key);
    if (!entry) {
        entry = add_entry(run, dict);
        if (!entry) {
            return;
        }
        entry->key = *key;
        extend(run, &dict->extent, key);
    }
    entry->value = *value;
    extend(run, &dict->extent, value);
}

tr_jinja_value tr__jinja_of_dict(tr_jinja_dict *dict) {
    return dict ? (tr_jinja_value){.kind = TR_JINJA_DICT, .as.dict = dict}
                : tr__jinja_none();
}

// ---- text that grows

void tr__jinja_add(tr_jinja_run *run, tr_jinja_buffer *to, tr_jinja_string text) {
    if (text.count == 0 || run->status != TR_OK) {
        return;
    }
    tr__jinja_charge(run, (int64_t)text.count / 16);
    if (to->capacity - to->count < text.count) {
        size_t capacity = 2 * (to->count + text.count) + 64;
        char *bytes = tr__jinja_take(run, capacity, 1);
        if (!bytes) {
            return;
        }
        if (to->count > 0) {
            memcpy(bytes, to->bytes, to->count);
        }
        to->bytes = bytes;
        to->capacity = capacity;
    }
    memcpy(to->bytes + to->count, text.bytes, text.count);
    to->count += text.count;
}

void tr__jinja_add_word(tr_jinja_run *run, tr_jinja_buffer *to, const char *word) {
    tr__jinja_add(run, to, (tr_jinja_string){word, strlen(word)});
}

// ---- JSON

static tr_jinja_value from_array(tr_jinja_run *run, const json_t *json) {
    size_t count = json_array_size(json);
    tr_jinja_value *item = tr__jinja_take(run, count + 1, sizeof *item);
    for (size_t i = 0; i < count && item && run->status == TR_OK; i++) {
        item[i] = tr__jinja_from_json(run, json_array_get(json, i));
    }
    return tr__jinja_make_list(run, TR_JINJA_LIST, item, count);
}

static tr_jinja_value from_object(tr_jinja_run *run, const json_t *json) {
    tr_jinja_dict *dict = tr__jinja_make_dict(run);
    void *at = json_object_iter((json_t *)json);
    for (; dict && at && run->status == TR_OK;
         at = json_object_iter_next((json_t *)json, at)) {
        const char *name = json_object_iter_key(at);
        tr_jinja_value key = tr__jinja_text(name, json_object_iter_key_len(at));
        tr_jinja_value value = tr__jinja_from_json(run, json_object_iter_value(at));
        tr_jinja_entry *entry = run->status == TR_OK ? add_entry(run, dict) : NULL;
        if (entry) {
            *entry = (tr_jinja_entry){key, value};
            extend(run, &dict->extent, &key);
            extend(run, &dict->extent, &value);
        }
    }
    return tr__jinja_of_dict(dict);
}

// Texts are those of the JSON, which outlives the rendering.
tr_jinja_value tr__jinja_from_json(tr_jinja_run *run, const json_t *json) {
    tr_jinja_value value = tr__jinja_none();
    if (++run->depth > DEPTH_MAX) {
        tr__jinja_fail(run, "lists and dictionaries are nested too deeply");
    } else if (json_is_string(json)) {
        value = tr__jinja_text(json_string_value(json), json_string_length(json));
    } else if (json_is_integer(json)) {
        value = tr__jinja_integer(json_integer_value(json));
    } else if (json_is_real(json)) {
        value = tr__jinja_real(json_real_value(json));
    } else if (json_is_boolean(json)) {
        value = tr__jinja_bool(json_is_true(json));
    } else if (json_is_array(json)) {
        value = from_array(run, json);
    } else if (json_is_object(json)) {
        value = from_object(run, json);
    }
    run->depth--;
    return value;
}

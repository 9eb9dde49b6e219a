#include "models/labels.h"

#include "base/memory.h"

#include <stdio.h>

enum { LABELS_MAX = 1 << 20 };

static const char *const problems[] = {[TR_LABELS_NONE] = "",
                                       [TR_LABELS_CLASS] =
                                           "single_label_classification",
                                       [TR_LABELS_SET] = "multi_label_classification",
                                       [TR_LABELS_VALUE] = "regression"};

void tr__labels_release(tr_task_labels *labels) {
    for (int64_t i = 0; labels->names && i < labels->count; i++) {
        tr__free(labels->names[i]);
    }
    tr__free(labels->names);
    *labels = (tr_task_labels){0};
}

static bool make_room(tr_task_labels *labels, int64_t count) {
    labels->names = tr__calloc((size_t)count, sizeof *labels->names);
    labels->count = count;
    return labels->names != NULL;
}

bool tr__labels_number(tr_task_labels *labels, int64_t count) {
    bool good = make_room(labels, count);
    for (int64_t i = 0; good && i < count; i++) {
        char name[32];
        snprintf(name, sizeof name, "LABEL_%lld", (long long)i);
        labels->names[i] = tr__strdup(name);
        good = labels->names[i] != NULL;
    }
    return good;
}

bool tr__labels_copy(const tr_task_labels *labels, tr_task_labels *out) {
    *out = (tr_task_labels){.kind = labels->kind, .count = labels->count};
    bool good = !labels->names || make_room(out, labels->count);
    for (int64_t i = 0; good && labels->names && i < labels->count; i++) {
        out->names[i] = tr__strdup(labels->names[i]);
        good = out->names[i] != NULL;
    }
    return good;
}

// {"0": "negative", "1": "positive"}
static tr_status read_names(const tr_model_keys *keys, const json_t *names,
                            tr_task_labels *out, tr_error *err) {
    int64_t count = (int64_t)json_object_size(names);
    if (!json_is_object(names) || count < 1 || count > LABELS_MAX) {
        return tr_fail(err, TR_USAGE,
                       "%s: id2label must be an object with the name of each label, "
                       "{\"0\": \"first\", \"1\": \"second\"}",
                       keys->origin);
    }
    if (!make_room(out, count)) {
        return tr_fail(err, TR_MEMORY, "no memory for the names of labels");
    }
    for (int64_t i = 0; i < count; i++) {
        char number[32];
        snprintf(number, sizeof number, "%lld", (long long)i);
        const char *name = json_string_value(json_object_get(names, number));
        if (!name) {
            return tr_fail(err, TR_USAGE,
                           "%s: id2label has %lld labels, and none is \"%s\": they are "
                           "numbered from 0 on",
                           keys->origin, (long long)count, number);
        }
        out->names[i] = tr__strdup(name);
        if (!out->names[i]) {
            return tr_fail(err, TR_MEMORY, "no memory for the names of labels");
        }
    }
    return TR_OK;
}

tr_status tr__labels_read(const tr_model_keys *keys, tr_task_labels *out,
                          tr_error *err) {
    const json_t *names = json_object_get(keys->object, "id2label");
    int64_t count = 0;
    const tr_model_field field = {"num_labels", 1, LABELS_MAX, &count, NULL};
    *out = (tr_task_labels){0};
    tr_status status = tr__fields_read(keys, &field, 1, err);
    int kind = status == TR_OK
                   ? tr__field_choice(keys, "problem_type", problems + 1, 3, -2, err)
                   : 0;
    if (status == TR_OK && kind == -1) {
        status = TR_USAGE;
    }
    if (status == TR_OK && names && !json_is_null(names)) {
        status = read_names(keys, names, out, err);
    } else if (status == TR_OK && count > 0 && !tr__labels_number(out, count)) {
        status = tr_fail(err, TR_MEMORY, "no memory for the names of labels");
    }
    if (status == TR_OK && count > 0 && out->count != count) {
        status = tr_fail(err, TR_USAGE,
                         "%s: num_labels is %lld, and id2label has %lld labels",
                         keys->origin, (long long)count, (long long)out->count);
    }
    out->kind = kind >= 0 ? (tr_label_kind)(kind + 1) : TR_LABELS_NONE;
    if (out->kind == TR_LABELS_NONE && out->count == 1) {
        out->kind = TR_LABELS_VALUE; // as transformers has it
    }
    if (status != TR_OK) {
        tr__labels_release(out);
    }
    return status;
}

bool tr__labels_write(const tr_task_labels *labels, json_t *to) {
    json_t *names = json_object(), *numbers = json_object();
    bool good = names && numbers;
    for (int64_t i = 0; good && i < labels->count; i++) {
        char number[32];
        snprintf(number, sizeof number, "%lld", (long long)i);
        good = json_object_set_new(names, number, json_string(labels->names[i])) == 0 &&
               json_object_set_new(numbers, labels->names[i], json_integer(i)) == 0;
    }
    good = json_object_set_new(to, "id2label", names) == 0 && good;
    good = json_object_set_new(to, "label2id", numbers) == 0 && good;
    return json_object_set_new(to, "problem_type",
                               json_string(problems[labels->kind])) == 0 &&
           good;
}

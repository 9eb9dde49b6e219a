// The metadata of a GGUF file: keys, each with a number, a text or a list of them.
#include "files/gguf/inside.h"

#include "base/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { KEY_MAX = 65535 }; // bytes, by the format

size_t tr__gguf_kind_bytes(tr_gguf_kind kind) {
    static const size_t bytes[TR_GGUF_KINDS] = {
        [TR_GGUF_U8] = 1,  [TR_GGUF_I8] = 1,  [TR_GGUF_U16] = 2,   [TR_GGUF_I16] = 2,
        [TR_GGUF_U32] = 4, [TR_GGUF_I32] = 4, [TR_GGUF_FLOAT] = 4, [TR_GGUF_BOOL] = 1,
        [TR_GGUF_U64] = 8, [TR_GGUF_I64] = 8, [TR_GGUF_DOUBLE] = 8};
    return (unsigned)kind < TR_GGUF_KINDS ? bytes[kind] : 0;
}

const char *tr__gguf_shown(char dst[TR_GGUF_SHOWN_MAX], const char *text) {
    size_t i = 0;
    for (; text[i] && i + 1 < TR_GGUF_SHOWN_MAX; i++) {
        bool good = (unsigned char)text[i] > 0x20 && (unsigned char)text[i] < 0x7f;
        dst[i] = good ? text[i] : '?';
    }
    dst[i] = '\0';
    return dst;
}

static tr_status fail(const tr_gguf_source *source, const tr_gguf_value *value,
                      const char *problem, tr_error *err) {
    char shown[TR_GGUF_SHOWN_MAX];
    return tr_fail(err, TR_IO, "%s: the metadata's %s %s", source->path,
                   tr__gguf_shown(shown, value->key), problem);
}

static tr_status fail_memory(const tr_gguf_source *source, tr_error *err) {
    return tr_fail(err, TR_MEMORY, "%s: no memory for its metadata", source->path);
}

// ---- texts

typedef struct texts {
    unsigned char *bytes;
    size_t used, capacity;
} texts;

static tr_status take_one(tr_gguf_source *source, tr_gguf_value *value, texts *all,
                          tr_error *err) {
    uint64_t length = 0;
    tr_status status = tr__gguf_take_u64(source, &length, value->key, err);
    if (status != TR_OK) {
        return status;
    }
    if (length > (uint64_t)tr__gguf_left(source)) {
        return fail(source, value, "has a text that is longer than the file", err);
    }
    size_t need = all->used + (size_t)length + 1;
    if (!tr__grow((void **)&all->bytes, &all->capacity, need, 1)) {
        return fail_memory(source, err);
    }
    status =
        tr__gguf_take(source, all->bytes + all->used, (size_t)length, value->key, err);
    all->used += (size_t)length;
    all->bytes[all->used++] = 0;
    return status;
}

static tr_status take_texts(tr_gguf_source *source, tr_gguf_value *value,
                            tr_error *err) {
    texts all = {0};
    tr_status status = TR_OK;
    if (value->count > tr__gguf_left(source) / (int64_t)sizeof(uint64_t)) {
        return fail(source, value, "has more texts than the file has room for", err);
    }
    value->begin = tr__calloc((size_t)value->count + 1, sizeof *value->begin);
    if (!value->begin) {
        return fail_memory(source, err);
    }
    for (int64_t i = 0; i < value->count && status == TR_OK; i++) {
        status = take_one(source, value, &all, err);
        value->begin[i + 1] = all.used;
    }
    value->data = all.bytes;
    return status;
}

// ---- values

static tr_status take_numbers(tr_gguf_source *source, tr_gguf_value *value,
                              tr_error *err) {
    size_t bytes = tr__gguf_kind_bytes(value->kind);
    if (value->count > tr__gguf_left(source) / (int64_t)bytes) {
        return fail(source, value, "has more numbers than the file has room for", err);
    }
    value->data = tr__calloc((size_t)value->count + 1, bytes);
    if (!value->data) {
        return fail_memory(source, err);
    }
    return tr__gguf_take(source, value->data, (size_t)value->count * bytes, value->key,
                         err);
}

static tr_status take_kind(tr_gguf_source *source, tr_gguf_value *value,
                           tr_error *err) {
    uint32_t kind = 0;
    tr_status status = tr__gguf_take_u32(source, &kind, value->key, err);
    if (status == TR_OK && kind >= TR_GGUF_KINDS) {
        status = fail(source, value, "is of an unknown kind: the file is damaged", err);
    }
    value->kind = (tr_gguf_kind)kind;
    return status;
}

static tr_status take_array(tr_gguf_source *source, tr_gguf_value *value,
                            tr_error *err) {
    uint64_t count = 0;
    tr_status status = take_kind(source, value, err);
    if (status == TR_OK) {
        status = tr__gguf_take_u64(source, &count, value->key, err);
    }
    if (status == TR_OK && value->kind == TR_GGUF_ARRAY) {
        return fail(source, value, "is a list of lists, which is not supported", err);
    }
    if (status == TR_OK && count > (uint64_t)source->size) {
        return fail(source, value, "has more elements than the file has bytes", err);
    }
    value->array = true;
    value->count = (int64_t)count;
    return status;
}

static tr_status take_key(tr_gguf_source *source, tr_gguf_value *value, tr_error *err) {
    size_t bytes = 0;
    tr_status status =
        tr__gguf_take_text(source, &value->key, &bytes, "a key of its metadata", err);
    if (status == TR_OK &&
        (bytes == 0 || bytes > KEY_MAX || strlen(value->key) != bytes)) {
        status = tr_fail(err, TR_IO,
                         "%s: a key of its metadata is empty, too long, or no text: "
                         "the file is damaged",
                         source->path);
    }
    return status;
}

static tr_status take_value(tr_gguf_source *source, tr_gguf_value *value,
                            tr_error *err) {
    tr_status status = take_key(source, value, err);
    value->count = 1;
    status = status == TR_OK ? take_kind(source, value, err) : status;
    if (status == TR_OK && value->kind == TR_GGUF_ARRAY) {
        status = take_array(source, value, err);
    }
    if (status != TR_OK) {
        return status;
    }
    return value->kind == TR_GGUF_TEXT ? take_texts(source, value, err)
                                       : take_numbers(source, value, err);
}

static int by_key(const void *a, const void *b) {
    return strcmp((*(const tr_gguf_value *const *)a)->key,
                  (*(const tr_gguf_value *const *)b)->key);
}

static tr_status check_once(const tr_gguf *gguf, const tr_gguf_source *source,
                            tr_error *err) {
    size_t count = gguf->value_count;
    const tr_gguf_value **sorted = tr__calloc(count + 1, sizeof *sorted);
    tr_status status = sorted ? TR_OK : fail_memory(source, err);
    for (size_t i = 0; i < count && sorted; i++) {
        sorted[i] = &gguf->value[i];
    }
    if (sorted) {
        qsort(sorted, count, sizeof(const tr_gguf_value *), by_key);
    }
    for (size_t i = 1; i < count && status == TR_OK; i++) {
        if (strcmp(sorted[i - 1]->key, sorted[i]->key) == 0) {
            status = fail(source, sorted[i], "is there twice", err);
        }
    }
    tr__free(sorted);
    return status;
}

tr_status tr__gguf_take_values(tr_gguf *gguf, tr_gguf_source *source, uint64_t count,
                               tr_error *err) {
    for (uint64_t i = 0; i < count; i++) {
        if (!tr__grow((void **)&gguf->value, &gguf->value_capacity,
                      gguf->value_count + 1, sizeof *gguf->value)) {
            return fail_memory(source, err);
        }
        tr_gguf_value *value = &gguf->value[gguf->value_count++];
        *value = (tr_gguf_value){0};
        tr_status status = take_value(source, value, err);
        if (status != TR_OK) {
            return status;
        }
    }
    return check_once(gguf, source, err);
}

// ---- what they are

size_t tr__gguf_value_count(const tr_gguf *gguf) {
    return gguf->value_count;
}

const tr_gguf_value *tr__gguf_value_at(const tr_gguf *gguf, size_t i) {
    return &gguf->value[i];
}

const tr_gguf_value *tr__gguf_find(const tr_gguf *gguf, const char *key) {
    for (size_t i = 0; i < gguf->value_count; i++) {
        if (strcmp(gguf->value[i].key, key) == 0) {
            return &gguf->value[i];
        }
    }
    return NULL;
}

const char *tr__gguf_text(const tr_gguf_value *value, int64_t i, size_t *bytes) {
    *bytes = value->begin[i + 1] - value->begin[i] - 1;
    return (const char *)value->data + value->begin[i];
}

bool tr__gguf_integer(const tr_gguf_value *value, int64_t i, int64_t *out) {
    size_t bytes = tr__gguf_kind_bytes(value->kind);
    bool is_signed = value->kind == TR_GGUF_I8 || value->kind == TR_GGUF_I16 ||
                     value->kind == TR_GGUF_I32 || value->kind == TR_GGUF_I64;
    uint64_t bits = 0;
    if (bytes == 0 || value->kind == TR_GGUF_FLOAT || value->kind == TR_GGUF_DOUBLE) {
        return false;
    }
    memcpy(&bits, value->data + (size_t)i * bytes, bytes);
    if (is_signed && bytes < sizeof bits) {
        uint64_t top = (uint64_t)1 << (8 * bytes - 1);
        bits = (bits ^ top) - top;
    }
    *out = (int64_t)bits;
    return is_signed || bits <= INT64_MAX;
}

bool tr__gguf_number(const tr_gguf_value *value, int64_t i, double *out) {
    int64_t whole = 0;
    if (value->kind == TR_GGUF_FLOAT) {
        float number;
        memcpy(&number, value->data + (size_t)i * sizeof number, sizeof number);
        *out = (double)number;
        return true;
    }
    if (value->kind == TR_GGUF_DOUBLE) {
        memcpy(out, value->data + (size_t)i * sizeof *out, sizeof *out);
        return true;
    }
    bool good = tr__gguf_integer(value, i, &whole);
    *out = (double)whole;
    return good;
}

#include "text/tokenizer/vocabulary.h"

#include "base/hash.h"
#include "base/memory.h"

static bool equals(const tr_vocabulary *v, int32_t id, const void *bytes,
                   size_t count) {
    return v->token[id].count == count &&
           memcmp(tr__vocabulary_bytes(v, id), bytes, count) == 0;
}

// Where the token is or would be.
static size_t find_slot(const tr_vocabulary *v, const void *bytes, size_t count) {
    size_t i = tr__hash(bytes, count) & v->mask;
    while (v->slot[i] >= 0 && !equals(v, v->slot[i], bytes, count)) {
        i = (i + 1) & v->mask;
    }
    return i;
}

static bool grow_slots(tr_vocabulary *v) {
    if (v->slot && (v->used + 1) * 2 <= v->mask + 1) {
        return true;
    }
    size_t size = v->slot ? (v->mask + 1) * 2 : 64;
    int32_t *slot = tr__calloc(size, sizeof *slot);
    if (!slot) {
        return false;
    }
    memset(slot, 0xff, size * sizeof *slot);
    tr__free(v->slot);
    v->slot = slot;
    v->mask = size - 1;
    for (size_t id = 0; id < v->count; id++) {
        const tr_token *token = &v->token[id];
        if (token->present) {
            v->slot[find_slot(v, v->bytes.bytes + token->begin, token->count)] =
                (int32_t)id;
        }
    }
    return true;
}

static bool grow_ids(tr_vocabulary *v, int32_t id) {
    size_t need = (size_t)id + 1;
    if (!tr__grow((void **)&v->token, &v->capacity, need, sizeof *v->token)) {
        return false;
    }
    while (v->count < need) {
        v->token[v->count++] = (tr_token){0};
    }
    return true;
}

tr_status tr__vocabulary_add(tr_vocabulary *v, const tr_node *node, const void *bytes,
                             size_t count, int32_t id, tr_error *err) {
    if (count > TR_TOKEN_BYTES_MAX) {
        return tr__node_fail(node, err, "a token of %zu bytes; at most %d are read",
                             count, TR_TOKEN_BYTES_MAX);
    }
    if (v->slot && tr__vocabulary_find(v, bytes, count) >= 0) {
        return tr__node_fail(node, err, "token %d is there twice", (int)id);
    }
    if ((size_t)id < v->count && v->token[id].present) {
        return tr__node_fail(node, err, "two tokens have the id %d", (int)id);
    }
    if (!grow_ids(v, id) || !grow_slots(v)) {
        return tr_fail(err, TR_MEMORY, "no memory for the tokens of %s", node->file);
    }
    v->token[id].begin = v->bytes.count;
    v->token[id].count = (uint32_t)count;
    tr__text_add(&v->bytes, bytes, count);
    if (v->bytes.failed) {
        return tr_fail(err, TR_MEMORY, "no memory for the tokens of %s", node->file);
    }
    v->slot[find_slot(v, bytes, count)] = id;
    v->token[id].present = true;
    v->used++;
    return TR_OK;
}

tr_status tr__vocabulary_parse(tr_vocabulary *v, const tr_node *node, tr_error *err) {
    const char *token;
    json_t *value;
    tr_status status = tr__node_object(node, err);
    if (status != TR_OK) {
        return status;
    }
    json_object_foreach(node->value, token, value) {
        tr_node entry = *node;
        int64_t id = 0;
        entry.value = value;
        status = tr__node_integer(&entry, 0, TR_TOKEN_ID_MAX, &id, err);
        if (status == TR_OK) {
            status =
                tr__vocabulary_add(v, node, token, strlen(token), (int32_t)id, err);
        }
        if (status != TR_OK) {
            return status;
        }
    }
    return TR_OK;
}

void tr__vocabulary_release(tr_vocabulary *v) {
    tr__text_release(&v->bytes);
    tr__free(v->token);
    tr__free(v->slot);
    *v = (tr_vocabulary){0};
}

int32_t tr__vocabulary_find(const tr_vocabulary *v, const void *bytes, size_t count) {
    return v->slot ? v->slot[find_slot(v, bytes, count)] : -1;
}

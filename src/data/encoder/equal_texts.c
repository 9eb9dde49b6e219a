#include "data/encoder/equal_texts.h"

#include "base/hash.h"
#include "base/memory.h"

#include <string.h>

enum { NONE = -1 };

// Numbers of texts by the hash of their tokens, open addressing.
typedef struct text_index {
    int32_t *text; // [mask + 1]
    uint64_t mask;
} text_index;

static int64_t length_of(const tr_text_list *list, int64_t text) {
    return list->first[text + 1] - list->first[text];
}

static uint64_t hash_of(const tr_text_list *list, int64_t text) {
    int64_t first = list->first[text], count = length_of(list, text);
    return tr__hash_more(0, list->ids.id + first, (size_t)count * sizeof *list->ids.id);
}

static bool are_equal(const tr_text_list *list, int64_t a, int64_t b) {
    size_t count = (size_t)length_of(list, a);
    int64_t at = list->first[a], other = list->first[b];
    return length_of(list, b) == (int64_t)count &&
           memcmp(list->ids.id + at, list->ids.id + other,
                  count * sizeof *list->ids.id) == 0 &&
           memcmp(list->type + at, list->type + other, count) == 0;
}

// The first text that is equal to this one, which is put into the index if it is that.
static int32_t find(const text_index *by, const tr_text_list *list, int64_t text) {
    uint64_t at = hash_of(list, text) & by->mask;
    while (by->text[at] != NONE && !are_equal(list, by->text[at], text)) {
        at = (at + 1) & by->mask;
    }
    if (by->text[at] == NONE) {
        by->text[at] = (int32_t)text;
    }
    return by->text[at];
}

tr_status tr__equal_texts(tr_text_list *list, int64_t *equal, tr_error *err) {
    size_t room = 2;
    while (room < 2 * (size_t)list->count) {
        room *= 2;
    }
    text_index by = {tr__calloc(room, sizeof *by.text), room - 1};
    *equal = 0;
    if (!by.text || !tr__grow((void **)&list->classes, &list->classes_room,
                              (size_t)list->count + 1, sizeof *list->classes)) {
        tr__free(by.text);
        return tr_fail(err, TR_MEMORY, "no memory to look for equal texts");
    }
    for (size_t i = 0; i < room; i++) {
        by.text[i] = NONE;
    }
    for (int64_t i = 0; i < list->count; i++) {
        list->classes[i] = find(&by, list, i);
        *equal += list->classes[i] != i;
    }
    tr__free(by.text);
    return TR_OK;
}

// A mutator for targets whose input is JSON: bytes changed at random seldom parse, so
// every other input is changed as a tree instead. One value becomes another of the
// input's own, or one that programs stumble over, or goes.
#include "fuzz.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                               unsigned seed);

static const char *const values[] = {
    "0",
    "-1",
    "1",
    "2",
    "-0.0",
    "0.5",
    "1e300",
    "1e-320",
    "1e19",
    "null",
    "true",
    "false",
    "\"\"",
    "[]",
    "{}",
    "9223372036854775807",
    "99",
    "-7",
    "\"auto\"",
    "[[0]]",
    "[1,2]",
    "4097",
    "\"nan\"",
    "-9223372036854775808",
    "\"16GiB\"",
    "\"inf\"",
    "\"\\u009b\\u202e\"",
    "65536",
    "2147483648",
    "9007199254740993",
    "\"0xffffffffffffffff\"",
    "{\"a\":{\"b\":[{}]}}",
};
enum { VALUES = sizeof values / sizeof *values };

static unsigned draw(unsigned *seed, size_t below) {
    return below ? (unsigned)rand_r(seed) % (unsigned)below : 0;
}

// The place of one value in the tree.
typedef struct place {
    json_t *object, *array; // one of them
    const char *key;
    size_t index;
} place;

// Counts the values below `at`; the `wanted`-th goes to *found.
static size_t walk(json_t *at, size_t count, size_t wanted, place *found) {
    const char *key;
    json_t *value;
    size_t i;
    json_object_foreach(at, key, value) {
        if (count++ == wanted) {
            *found = (place){.object = at, .key = key};
        }
        count = walk(value, count, wanted, found);
    }
    json_array_foreach(at, i, value) {
        if (count++ == wanted) {
            *found = (place){.array = at, .index = i};
        }
        count = walk(value, count, wanted, found);
    }
    return count;
}

static json_t *value_at(place at) {
    return at.object ? json_object_get(at.object, at.key)
                     : json_array_get(at.array, at.index);
}

static void set(place at, json_t *value) {
    if (at.object) {
        json_object_set_new(at.object, at.key, value);
    } else {
        json_array_set_new(at.array, at.index, value);
    }
}

static void drop(place at) {
    if (at.object) {
        json_object_del(at.object, at.key);
    } else {
        json_array_remove(at.array, at.index);
    }
}

static void change(json_t *root, unsigned *seed) {
    place at = {0}, from = {0};
    size_t count = walk(root, 0, SIZE_MAX, &at);
    if (count == 0) {
        return;
    }
    walk(root, 0, draw(seed, count), &at);
    switch (draw(seed, 6)) {
    case 0:
        drop(at);
        break;
    case 1:
        walk(root, 0, draw(seed, count), &from);
        set(at, json_deep_copy(value_at(from)));
        break;
    case 2: // a number's neighbours
        set(at, json_integer((json_int_t)((uint64_t)json_integer_value(value_at(at)) +
                                          draw(seed, 3) - 1)));
        break;
    default:
        set(at, json_loads(values[draw(seed, VALUES)], JSON_DECODE_ANY, NULL));
    }
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t max_size,
                               unsigned seed) {
    json_t *root =
        seed % 2 ? json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES, NULL)
                 : NULL;
    if (!root) {
        return LLVMFuzzerMutate(data, size, max_size);
    }
    seed /= 2;
    for (unsigned changes = 1 + draw(&seed, 3); changes > 0; changes--) {
        change(root, &seed);
    }
    char *text = json_dumps(root, JSON_COMPACT | JSON_ENCODE_ANY);
    size_t bytes = text ? strlen(text) : 0;
    bool fits = bytes > 0 && bytes <= max_size;
    if (fits) {
        memcpy(data, text, bytes);
    }
    free(text);
    json_decref(root);
    return fits ? bytes : LLVMFuzzerMutate(data, size, max_size);
}

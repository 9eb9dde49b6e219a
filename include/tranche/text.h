// Texts: where the library prints them, and what messages are made of.
#ifndef TRANCHE_TEXT_H
#define TRANCHE_TEXT_H

#include <tranche/api.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Where a text goes that the library prints: a plan, an inspection. The calls come from
// the thread that asks for the text.
typedef struct tr_sink {
    // Takes the next piece of the text, in UTF-8 where names in it are; no zero ends
    // it. False: it takes no more, and the function that prints ends with TR_IO.
    bool (*write)(void *user, const char *text, size_t bytes);
    void *user;
} tr_sink;

// A number of bytes in words, "2.31 GiB". dst: [size], 16 is always enough. Returns
// dst.
TR_API const char *tr_size_words(int64_t bytes, char *dst, size_t size);

// The one of `names` [count] that `word` is meant to be: the nearest, if it is near
// enough for a slip of the keys. NULL: none is.
TR_API const char *tr_nearest(const char *word, const char *const *names, size_t count);

#ifdef __cplusplus
}
#endif
#endif

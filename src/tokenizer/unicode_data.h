// The generated tables of unicode_data.c (tools/unicode_tables.py).
#ifndef TR_TOKENIZER_UNICODE_DATA_H
#define TR_TOKENIZER_UNICODE_DATA_H

#include <stddef.h>
#include <stdint.h>

// Pairs (first code point of a run, flags): see the enum in unicode.h.
extern const uint32_t tr__unicode_classes[];
extern const size_t tr__unicode_classes_count;
// Pairs (code point, its lower case).
extern const uint32_t tr__unicode_lower[];
extern const size_t tr__unicode_lower_count;
// Pairs (first code point of a run, canonical combining class).
extern const uint32_t tr__unicode_combining[];
extern const size_t tr__unicode_combining_count;
// Triples (first, second, composed).
extern const uint32_t tr__unicode_compositions[];
extern const size_t tr__unicode_compositions_count;
// Pairs (code point, kind << 31 | count << 16 | begin), kind 1 being the compatibility
// decomposition; begin and count are places of tr__unicode_decomposed.
extern const uint32_t tr__unicode_decompositions[];
extern const size_t tr__unicode_decompositions_count;
extern const uint32_t tr__unicode_decomposed[];
extern const size_t tr__unicode_decomposed_count;

#endif

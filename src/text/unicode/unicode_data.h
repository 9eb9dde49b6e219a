// The tables of Unicode as the source has them, packed (tools/unicode_tables.py), and
// unpacked.
//
// A number is written in digits of base64url (RFC 4648), of 5 bits each, the lowest
// first; bit 5 of a digit says that another one follows. A signed number has its sign
// in bit 0: 2 n, or -2 n - 1. A table begins with how many numbers it has when it is
// unpacked.
#ifndef TR_TEXT_UNICODE_UNICODE_DATA_H
#define TR_TEXT_UNICODE_UNICODE_DATA_H

#include <tranche/status.h>

#include <stddef.h>
#include <stdint.h>

// How many kinds there are and the flags of each, then pairs (distance from the begin
// of the run before, kind).
extern const char tr__unicode_classes[];
// Series: distance from the last letter before, 2 letters + (step - 1), signed: how far
// away their lower case is.
extern const char tr__unicode_lower[];
// Pairs (distance from the begin of the run before, class).
extern const char tr__unicode_combining[];
// Triples of signed differences from the triple before, the first without a sign.
extern const char tr__unicode_compositions[];
// How many parts all have (behind the number of numbers), then series of characters
// that follow each other: 4 (parts - 1) + 2 kind + (more than one character), distance
// from the last character before, how many characters where there are more than one,
// and the parts of the first: signed, how far each is from the part before. In each of
// the next characters the last part is one further.
extern const char tr__unicode_decompositions[];

typedef struct tr_unicode_table {
    uint32_t *number; // [count], owned
    size_t count;
} tr_unicode_table;

typedef struct tr_unicode_tables {
    // Pairs (first code point of a run, flags): see the enum in unicode.h.
    tr_unicode_table classes;
    // Pairs (code point, its lower case).
    tr_unicode_table lower;
    // Pairs (first code point of a run, canonical combining class).
    tr_unicode_table combining;
    // Triples (first, second, composed).
    tr_unicode_table compositions;
    // Pairs (code point, kind << 31 | count << 16 | begin), kind 1 being the
    // compatibility decomposition; begin and count are places of `decomposed`.
    tr_unicode_table decompositions, decomposed;
} tr_unicode_tables;

// The caller releases them, also after TR_MEMORY.
tr_status tr__unicode_unpack(tr_unicode_tables *tables, tr_error *err);
void tr__unicode_tables_release(tr_unicode_tables *tables);

#endif

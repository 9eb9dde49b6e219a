// Numbers in text, whatever the locale.
#ifndef TR_DATA_SOURCES_NUMBER_H
#define TR_DATA_SOURCES_NUMBER_H

typedef enum tr_number_kind {
    TR_NUMBER_NONE,     // no decimal number
    TR_NUMBER_FINITE,   //
    TR_NUMBER_INFINITE, // "inf", "nan", or too large for f32
} tr_number_kind;

// The whole of `text`, spaces around it allowed.
tr_number_kind tr__number_parse(const char *text, double *value);

#endif

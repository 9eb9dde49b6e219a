// ByteLevel writes each byte as a character that can be seen: most bytes as the
// character of that number, the others as those from 256 on.
#ifndef TR_TEXT_TOKENIZER_BYTE_LEVEL_H
#define TR_TEXT_TOKENIZER_BYTE_LEVEL_H

#include "text/unicode/buffer.h"

// The character of a byte.
uint32_t tr__byte_level_character(unsigned char byte);
// The byte of a character, -1: it stands for none.
int tr__byte_level_byte(uint32_t c);
// Appends the bytes that a token stands for; false, and nothing appended, where a
// character stands for none.
bool tr__byte_level_bytes(const unsigned char *token, size_t count, tr_text *bytes);

#endif

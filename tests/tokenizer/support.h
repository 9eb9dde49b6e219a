// What tests of tokenizers share.
#ifndef TESTS_TOKENIZER_SUPPORT_H
#define TESTS_TOKENIZER_SUPPORT_H

#include "text/tokenizer/tokenizer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

// The committed tokenizers (tests/data/tokenizers), NULL at the end.
extern const char *const tokenizer_names[];
// One of them; fails the test where it cannot be loaded.
tr_tokenizer *tokenizer_load(const char *name);
// All texts of vectors.json, joined, so often that there are `bytes` bytes or more.
tr_text tokenizer_texts(size_t bytes);

#endif

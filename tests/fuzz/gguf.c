// A GGUF file: what is said in it is checked, every tensor read, and a model in it
// becomes a folder that can be read.
#include "fuzz.h"

#include "base/files.h"
#include "files/gguf/gguf.h"
#include "files/safetensors/tensor_set.h"
#include "text/tokenizer/tokenizer.h"

#include <tranche/gguf.h>

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void read_values(const tr_gguf *gguf) {
    for (size_t i = 0; i < tr__gguf_value_count(gguf); i++) {
        const tr_gguf_value *value = tr__gguf_value_at(gguf, i);
        fuzz_check(tr__gguf_find(gguf, value->key) == value,
                   "a value that its own key does not find");
        for (int64_t k = 0; k < value->count; k++) {
            size_t bytes = 0;
            int64_t whole;
            double number;
            if (value->begin) {
                fuzz_check(tr__gguf_text(value, k, &bytes)[bytes] == '\0',
                           "a text without an end");
            } else {
                tr__gguf_integer(value, k, &whole);
                tr__gguf_number(value, k, &number);
            }
        }
    }
}

static void read_tensors(const tr_gguf *gguf) {
    float values[TR_GGUF_BLOCK_MAX];
    for (size_t i = 0; i < tr__gguf_tensor_count(gguf); i++) {
        const tr_gguf_tensor *tensor = tr__gguf_tensor_at(gguf, i);
        tr_error err = {0};
        fuzz_check(tr__gguf_find_tensor(gguf, tensor->name) == tensor,
                   "a tensor that its own name does not find");
        int64_t block = tensor->format->elements;
        tr_status status =
            tr__gguf_read(gguf, tensor, tensor->count - block, block, values, &err);
        fuzz_check_told(status, &err);
        fuzz_check(status == TR_OK, "a tensor that lies in the file and is not read");
    }
}

// What an import has written is whole.
static void read_folder(const char *folder) {
    char path[PATH_MAX];
    tr_error err = {0};
    tr_tensor_set *set = NULL;
    tr_tokenizer *tokenizer = NULL;
    fuzz_check(tr__tensor_set_open(folder, &set, &err) == TR_OK,
               "an import whose weights cannot be read");
    tr__tensor_set_close(set);
    snprintf(path, sizeof path, "%s/tokenizer.json", folder);
    if (access(path, F_OK) == 0) {
        tr_status status = tr_tokenizer_load(path, &tokenizer, &err);
        fuzz_check(status == TR_OK || status == TR_DATA, "a tokenizer that is no file");
        tr_tokenizer_destroy(tokenizer);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char folder[PATH_MAX];
    tr_error err = {0}, why = {0};
    tr_gguf *gguf = NULL;
    const char *path = fuzz_file("model.gguf", data, size);
    tr_status status = tr__gguf_open(path, &gguf, &err);
    fuzz_check_told(status, &err);
    if (status != TR_OK) {
        return 0;
    }
    read_values(gguf);
    read_tensors(gguf);
    tr__gguf_close(gguf);
    snprintf(folder, sizeof folder, "%s/imported", fuzz_folder());
    status = tr_gguf_import(path, folder, &why);
    fuzz_check_told(status, &why);
    fuzz_check(status == TR_OK || status == TR_IO || status == TR_MEMORY,
               "a damaged file that is none");
    if (status == TR_OK) {
        read_folder(folder);
    }
    tr__folder_remove(folder, NULL);
    return 0;
}

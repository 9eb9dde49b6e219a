// A file of records (the first byte says what the loss is on) as ids and labels: a
// label is the id of its place, or none.
#include "fuzz.h"

#include "data/chat/json_lines.h"
#include "data/chat/records.h"

#include <tranche/types.h>

#include <jansson.h>
#include <stdlib.h>

static const char chat_template[] =
    "{% for m in messages %}[{{ m.role }}]{{ m.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}";

// What is the same for all inputs.
static const tr_text_tokenizer *tokenizer(void) {
    static tr_text_tokenizer by;
    const tr_data_options options = {.size = sizeof(tr_data_options),
                                     .format = "jsonl",
                                     .tokenizer =
                                         TR_TEST_DATA "/tokenizers/smollm.json",
                                     .eos_token = "<|end|>"};
    tr_error err = {0};
    if (!by.tokenizer) {
        fuzz_check(tr__text_tokenizer_open(&options, &by, &err) == TR_OK, err.message);
    }
    return &by;
}

static const tr_chat *chat(void) {
    static tr_chat *opened;
    tr_error err = {0};
    if (!opened) {
        const char *path =
            fuzz_file("t.jinja", chat_template, sizeof chat_template - 1);
        fuzz_check(tr__chat_open("", path, NULL, &opened, &err) == TR_OK, err.message);
    }
    return opened;
}

static void check_labels(const tr_records *records) {
    fuzz_check(records->ids.count == records->labels.count, "ids without labels");
    for (size_t i = 0; i < records->ids.count; i++) {
        int32_t id = records->ids.id[i], label = records->labels.id[i];
        fuzz_check(id >= 0 && (label == id || label == TR_NO_TARGET), "a wrong label");
    }
}

static void read_all(const tr_joined *text, tr_records *records) {
    tr_json_lines lines = {.files = text};
    tr_error err = {0};
    json_t *record = NULL;
    tr_status status = TR_OK;
    do {
        status = tr__json_lines_next(&lines, &record, &err);
        if (status == TR_OK && record) {
            status = tr__record_encode(records, record, &err);
        }
        fuzz_check_told(status, &err);
        if (status == TR_OK && record) {
            check_labels(records);
        }
        json_decref(record);
    } while (status == TR_OK && record);
    tr__json_lines_close(&lines);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 2) {
        return 0;
    }
    tr_records records = {.fields = {"text", "prompt", "completion", "messages"},
                          .loss_on = data[0] % 4,
                          .by = tokenizer(),
                          .chat = chat()};
    tr_file_list list = {0};
    tr_joined text = {0};
    tr_error err = {0};
    const char *path = fuzz_file("data.jsonl", data + 1, size - 1);
    fuzz_check(tr__file_list_add(&list, path, &err) == TR_OK, err.message);
    fuzz_check(tr__joined_open(&text, &list, path, 1, &err) == TR_OK, err.message);
    fuzz_check(tr_encoder_create(records.by->tokenizer, &records.encoder, &err) ==
                   TR_OK,
               err.message);
    read_all(&text, &records);
    tr_encoder_destroy(records.encoder);
    tr__records_release(&records);
    tr__joined_close(&text);
    return 0;
}

#include "cli/sample_chat.h"

#include "tokenizer/folder.h"

#include <tranche/checkpoint.h>

#include <jansson.h>
#include <string.h>
#include <time.h>

static tr_status find_folder(const char *path, const char *tokenizer,
                             char folder[PATH_MAX], tr_error *err) {
    char place[PATH_MAX];
    if (!tokenizer) {
        return tr_checkpoint_locate(path, folder, PATH_MAX, err);
    }
    tr_status status = tr__tokenizer_locate(tokenizer, place, err);
    return status == TR_OK ? tr__tokenizer_folder(place, folder, err) : status;
}

static tr_status add(cli_chat *c, const char *role, const char *content, size_t bytes,
                     tr_error *err) {
    json_t *text = json_stringn(content, bytes);
    if (!text) {
        return tr_fail(err, TR_USAGE, "what the %s says is not UTF-8", role);
    }
    json_t *message = json_pack("{s:s, s:o}", "role", role, "content", text);
    return message && json_array_append_new(c->messages, message) == 0
               ? TR_OK
               : tr_fail(err, TR_MEMORY, "no memory for a conversation");
}

tr_status cli_chat_open(cli_chat *c, const char *path, const char *tokenizer,
                        const char *system, tr_error *err) {
    time_t now = time(NULL);
    struct tm today;
    localtime_r(&now, &today);
    *c = (cli_chat){.messages = json_array()};
    tr_status status = find_folder(path, tokenizer, c->folder, err);
    if (status == TR_OK) {
        status = tr__chat_open(c->folder, NULL, &today, &c->chat, err);
    }
    return status == TR_OK && system ? add(c, "system", system, strlen(system), err)
                                     : status;
}

tr_status cli_chat_eos(const cli_chat *c, const tr_tokenizer *tokenizer, int32_t *eos,
                       tr_error *err) {
    return tr__tokenizer_eos(tokenizer, c->folder, eos, err);
}

void cli_chat_close(cli_chat *c) {
    tr__chat_close(c->chat);
    json_decref(c->messages);
    *c = (cli_chat){0};
}

tr_status cli_chat_say(cli_chat *c, const char *said, tr_jinja_rendered *text,
                       tr_error *err) {
    tr_status status = add(c, "user", said, strlen(said), err);
    const tr_conversation conversation = {.messages = c->messages, .answer = true};
    return status == TR_OK ? tr__chat_render(c->chat, &conversation, text, err)
                           : status;
}

tr_status cli_chat_answer(cli_chat *c, const char *answer, size_t bytes,
                          tr_error *err) {
    return add(c, "assistant", answer, bytes, err);
}

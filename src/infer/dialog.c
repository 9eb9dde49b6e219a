// A conversation with a model, as text by the chat template of its folder.
#include "base/arguments.h"
#include "base/memory.h"
#include "data/chat/chat.h"
#include "text/tokenizer/folder.h"

#include <tranche/checkpoint.h>
#include <tranche/sample.h>

#include <jansson.h>
#include <string.h>
#include <time.h>

struct tr_dialog {
    tr_chat *chat;
    json_t *messages;
    tr_jinja_rendered text;
    char folder[PATH_MAX]; // of the template
};

static tr_status find_folder(const char *path, const char *tokenizer,
                             char folder[PATH_MAX], tr_error *err) {
    char place[PATH_MAX];
    if (!tokenizer) {
        return tr_checkpoint_locate(path, folder, PATH_MAX, err);
    }
    tr_status status = tr__tokenizer_locate(tokenizer, place, err);
    return status == TR_OK ? tr__tokenizer_folder(place, folder, err) : status;
}

tr_status tr_dialog_create(const char *path, const char *tokenizer, tr_dialog **out,
                           tr_error *err) {
    static const char name[] = "tr_dialog_create";
    time_t now = time(NULL);
    struct tm today;
    tr_status status = tr__need(tokenizer ? tokenizer : path, name, "path", err);
    status = status == TR_OK ? tr__need(out, name, "out", err) : status;
    if (status != TR_OK) {
        return status;
    }
    localtime_r(&now, &today);
    tr_dialog *dialog = tr__calloc(1, sizeof *dialog);
    json_t *messages = json_array();
    if (!dialog || !messages) {
        json_decref(messages);
        tr__free(dialog);
        return tr_fail(err, TR_MEMORY, "no memory for a conversation");
    }
    dialog->messages = messages;
    status = find_folder(path, tokenizer, dialog->folder, err);
    if (status == TR_OK) {
        status = tr__chat_open(dialog->folder, NULL, &today, &dialog->chat, err);
    }
    if (status != TR_OK) {
        tr_dialog_destroy(dialog);
        return status;
    }
    *out = dialog;
    return TR_OK;
}

void tr_dialog_destroy(tr_dialog *dialog) {
    if (dialog) {
        tr__chat_close(dialog->chat);
        json_decref(dialog->messages);
        tr__jinja_rendered_release(&dialog->text);
        tr__free(dialog);
    }
}

tr_status tr_dialog_add(tr_dialog *dialog, const char *role, const char *content,
                        size_t bytes, tr_error *err) {
    static const char name[] = "tr_dialog_add";
    tr_status status = tr__need(dialog, name, "dialog", err);
    status = status == TR_OK ? tr__need(role, name, "role", err) : status;
    status = status == TR_OK ? tr__need(content, name, "content", err) : status;
    if (status != TR_OK) {
        return status;
    }
    json_t *text = json_stringn(content, bytes);
    if (!text) {
        return tr_fail(err, TR_USAGE, "what the %s says is not UTF-8", role);
    }
    json_t *message = json_pack("{s:s, s:o}", "role", role, "content", text);
    return message && json_array_append_new(dialog->messages, message) == 0
               ? TR_OK
               : tr_fail(err, TR_MEMORY, "no memory for a conversation");
}

tr_status tr_dialog_prompt(tr_dialog *dialog, const char **text, size_t *bytes,
                           tr_error *err) {
    static const char name[] = "tr_dialog_prompt";
    tr_status status = tr__need(dialog, name, "dialog", err);
    status = status == TR_OK ? tr__need(text, name, "text", err) : status;
    if (status != TR_OK) {
        return status;
    }
    const tr_conversation conversation = {.messages = dialog->messages, .answer = true};
    tr__jinja_rendered_release(&dialog->text);
    dialog->text = (tr_jinja_rendered){0};
    status = tr__chat_render(dialog->chat, &conversation, &dialog->text, err);
    if (status == TR_OK) {
        *text = dialog->text.text;
    }
    if (status == TR_OK && bytes) {
        *bytes = dialog->text.bytes;
    }
    return status;
}

tr_status tr_dialog_eos(const tr_dialog *dialog, const tr_tokenizer *tokenizer,
                        int32_t *id, tr_error *err) {
    static const char name[] = "tr_dialog_eos";
    tr_status status = tr__need(dialog, name, "dialog", err);
    status = status == TR_OK ? tr__need(tokenizer, name, "tokenizer", err) : status;
    status = status == TR_OK ? tr__need(id, name, "id", err) : status;
    return status == TR_OK ? tr__tokenizer_eos(tokenizer, dialog->folder, id, err)
                           : status;
}

#include "data/chat/chat.h"

#include "base/files.h"
#include "base/hash.h"
#include "base/memory.h"

#include <jansson.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { FILE_MAX = 64 << 20 };

struct tr_chat {
    tr_jinja *jinja;
    json_t *tokens; // special tokens, by their names
    struct tm now;
    bool has_now;
    uint64_t hash;
};

// ---- the folder

// *text NULL: there is no such file.
static tr_status read_file(const char *folder, const char *name, char path[PATH_MAX],
                           char **text, size_t *bytes, tr_error *err) {
    *text = NULL;
    if (!folder[0]) {
        return TR_OK;
    }
    tr_status status = tr__path_join(path, PATH_MAX, folder, name, err);
    return status == TR_OK && access(path, F_OK) == 0
               ? tr__file_read(path, FILE_MAX, text, bytes, err)
               : status;
}

// An object; *root NULL: there is no such file. Numbers do not matter, and one may be
// of more than 64 bits.
static tr_status read_json(const char *folder, const char *name, char path[PATH_MAX],
                           json_t **root, tr_error *err) {
    char *text = NULL;
    size_t bytes = 0;
    json_error_t problem;
    *root = NULL;
    tr_status status = read_file(folder, name, path, &text, &bytes, err);
    if (status != TR_OK || !text) {
        return status;
    }
    *root = json_loadb(text, bytes, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, &problem);
    tr__free(text);
    return json_is_object(*root) ? TR_OK
                                 : tr_fail(err, TR_DATA, "%s: is no JSON object", path);
}

// "<eos>", or {"content": "<eos>", ...}
static void put_tokens(tr_chat *chat, const json_t *root) {
    static const char *const names[] = {"bos_token", "eos_token", "unk_token",
                                        "sep_token", "pad_token", "cls_token",
                                        "mask_token"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        json_t *token = json_object_get(root, names[i]);
        token = json_is_object(token) ? json_object_get(token, "content") : token;
        if (json_is_string(token) && !json_object_get(chat->tokens, names[i])) {
            json_object_set(chat->tokens, names[i], token);
        }
    }
}

// Of a list of named templates the one called "default".
static json_t *find_template(json_t *root) {
    json_t *found = json_object_get(root, "chat_template");
    for (size_t i = 0; json_is_array(found) && i < json_array_size(found); i++) {
        json_t *one = json_array_get(found, i);
        const char *name = json_string_value(json_object_get(one, "name"));
        if (name && strcmp(name, "default") == 0) {
            return json_object_get(one, "template");
        }
    }
    return found;
}

static tr_status parse(tr_chat *chat, const char *name, const char *text, size_t bytes,
                       tr_error *err) {
    chat->hash = tr__hash_more(chat->hash, text, bytes);
    return tr__jinja_parse(name, text, bytes, &chat->jinja, err);
}

static tr_status parse_file(tr_chat *chat, const char *folder, const char *name,
                            tr_error *err) {
    char path[PATH_MAX], *text = NULL;
    size_t bytes = 0;
    tr_status status = read_file(folder, name, path, &text, &bytes, err);
    if (status == TR_OK && text) {
        status = parse(chat, path, text, bytes, err);
    }
    tr__free(text);
    return status;
}

static tr_status read_config(tr_chat *chat, const char *folder, tr_error *err) {
    char path[PATH_MAX];
    json_t *root = NULL;
    tr_status status = read_json(folder, "tokenizer_config.json", path, &root, err);
    json_t *template = find_template(root);
    put_tokens(chat, root);
    if (status == TR_OK && !chat->jinja && json_is_string(template)) {
        status = parse(chat, path, json_string_value(template),
                       json_string_length(template), err);
    }
    json_decref(root);
    if (status == TR_OK) {
        status = read_json(folder, "special_tokens_map.json", path, &root, err);
        put_tokens(chat, root);
        json_decref(root);
    }
    return status;
}

static tr_status open_template(tr_chat *chat, const char *folder, const char *file,
                               tr_error *err) {
    char *text = NULL;
    size_t bytes = 0;
    tr_status status = TR_OK;
    if (file) {
        status = tr__file_read(file, FILE_MAX, &text, &bytes, err);
        status = status == TR_OK ? parse(chat, file, text, bytes, err) : status;
        tr__free(text);
    } else {
        status = parse_file(chat, folder, "chat_template.jinja", err);
    }
    if (status == TR_OK) {
        status = read_config(chat, folder, err);
    }
    if (status == TR_OK && !chat->jinja) {
        status = tr_fail(err, TR_DATA,
                         "%.400s: has no chat template (chat_template.jinja, or "
                         "\"chat_template\" in tokenizer_config.json)",
                         folder[0] ? folder : "the tokenizer's folder");
    }
    return status;
}

// As TRL has it, texts are padded with the token that ends them where no other is said.
static tr_status finish_tokens(tr_chat *chat, tr_error *err) {
    json_t *eos = json_object_get(chat->tokens, "eos_token");
    if (eos && !json_object_get(chat->tokens, "pad_token")) {
        json_object_set(chat->tokens, "pad_token", eos);
    }
    char *text = json_dumps(chat->tokens, JSON_COMPACT | JSON_SORT_KEYS);
    if (!text) {
        return tr_fail(err, TR_MEMORY, "no memory for a chat template");
    }
    chat->hash = tr__hash_more(chat->hash, text, strlen(text));
    chat->hash = tr__hash_more(chat->hash, &chat->has_now, sizeof chat->has_now);
    const int date[] = {chat->now.tm_year, chat->now.tm_yday};
    chat->hash = tr__hash_more(chat->hash, date, sizeof date);
    free(text);
    return TR_OK;
}

tr_status tr__chat_open(const char *folder, const char *file, const struct tm *now,
                        tr_chat **out, tr_error *err) {
    tr_chat *chat = tr__calloc(1, sizeof *chat);
    if (!chat) {
        return tr_fail(err, TR_MEMORY, "no memory for a chat template");
    }
    chat->tokens = json_object();
    chat->has_now = now != NULL;
    if (now) {
        chat->now = *now;
    }
    tr_status status = open_template(chat, folder, file, err);
    if (status == TR_OK) {
        status = finish_tokens(chat, err);
    }
    if (status != TR_OK) {
        tr__chat_close(chat);
        return status;
    }
    *out = chat;
    return TR_OK;
}

void tr__chat_close(tr_chat *chat) {
    if (chat) {
        tr__jinja_destroy(chat->jinja);
        json_decref(chat->tokens);
        tr__free(chat);
    }
}

uint64_t tr__chat_hash(const tr_chat *chat) {
    return chat->hash;
}

bool tr__chat_marks(const tr_chat *chat) {
    return tr__jinja_marks_generation(chat->jinja);
}

// ---- rendering

// Older names of a message's reasoning, as transformers has them, filled from each
// other.
static json_t *with_reasoning(const json_t *message) {
    static const char *const names[] = {"reasoning_content", "thinking", "reasoning"};
    json_t *reasoning = NULL, *copy = json_object();
    for (size_t i = 0; i < 3 && !reasoning; i++) {
        json_t *value = json_object_get(message, names[i]);
        reasoning = value && !json_is_null(value) ? value : NULL;
    }
    if (reasoning) {
        json_object_set(copy, "thinking", reasoning);
    }
    json_object_update(copy, (json_t *)message);
    if (reasoning) {
        json_object_set(copy, "reasoning_content", reasoning);
    }
    return copy;
}

// The first `count` messages.
static json_t *copy_messages(const json_t *messages, size_t count, tr_error *err) {
    json_t *copy = json_array();
    for (size_t i = 0; i < count; i++) {
        const json_t *message = json_array_get(messages, i);
        if (!json_is_object(message)) {
            tr_fail(err, TR_DATA, "message %zu is no object with a role and a content",
                    i + 1);
            json_decref(copy);
            return NULL;
        }
        json_array_append_new(copy, with_reasoning(message));
    }
    return copy;
}

static tr_status render_first(const tr_chat *chat, const tr_conversation *c,
                              size_t count, bool answer, tr_jinja_rendered *out,
                              tr_error *err) {
    json_t *messages = copy_messages(c->messages, count, err);
    if (!messages) {
        return TR_DATA;
    }
    json_t *variables = json_copy(chat->tokens);
    json_object_update(variables, (json_t *)c->others);
    json_object_set_new(variables, "messages", messages);
    json_object_set_new(variables, "tools",
                        c->tools ? json_incref((json_t *)c->tools) : json_null());
    json_object_set_new(variables, "documents", json_null());
    json_object_set_new(variables, "add_generation_prompt", json_boolean(answer));
    tr_status status = tr__jinja_render(chat->jinja, variables,
                                        chat->has_now ? &chat->now : NULL, out, err);
    json_decref(variables);
    return status;
}

tr_status tr__chat_render(const tr_chat *chat, const tr_conversation *c,
                          tr_jinja_rendered *out, tr_error *err) {
    return render_first(chat, c, json_array_size(c->messages), c->answer, out, err);
}

// ---- spans

static bool begins(const tr_jinja_rendered *text, const tr_jinja_rendered *with) {
    return with->bytes <= text->bytes &&
           memcmp(text->text, with->text, with->bytes) == 0;
}

// The last bytes of what a message says: they are in its text, whatever a template
// leaves out of it. An empty one is in every text.
static tr_jinja_span tail_of(const char *content) {
    enum { TAIL = 32 };
    size_t end = content ? strlen(content) : 0;
    while (end > 0 && strchr(" \t\r\n", content[end - 1])) {
        end--;
    }
    return (tr_jinja_span){end > TAIL ? end - TAIL : 0, end};
}

// Where the message ends in the whole: the text of the conversation that ends with it
// goes on from `begin` as the whole does, but for what templates put before a last
// answer only. 0: it does not.
static size_t find_end(const tr_jinja_rendered *whole, const tr_jinja_rendered *until,
                       size_t begin, const char *content) {
    tr_jinja_span tail = tail_of(content);
    for (size_t skip = begin; skip < until->bytes; skip++) {
        size_t bytes = until->bytes - skip;
        const char *rest = until->text + skip;
        if (whole->bytes - begin >= bytes &&
            memcmp(whole->text + begin, rest, bytes) == 0) {
            bool said =
                tail.end == tail.begin ||
                memmem(rest, bytes, content + tail.begin, tail.end - tail.begin);
            return said ? begin + bytes : 0;
        }
    }
    return 0;
}

static tr_status find_span(const tr_chat *chat, const tr_conversation *c, size_t index,
                           const tr_jinja_rendered *whole, tr_jinja_span *span,
                           tr_error *err) {
    tr_jinja_rendered before = {0}, until = {0};
    const char *content = json_string_value(
        json_object_get(json_array_get(c->messages, index), "content"));
    tr_status status = render_first(chat, c, index, true, &before, err);
    if (status == TR_OK) {
        status = render_first(chat, c, index + 1, false, &until, err);
    }
    if (status == TR_OK) {
        bool in_place = begins(whole, &before) && begins(&until, &before);
        span->begin = before.bytes;
        span->end = in_place ? find_end(whole, &until, before.bytes, content) : 0;
        if (span->end == 0) {
            status = tr_fail(err, TR_DATA,
                             "the chat template renders message %zu of the assistant "
                             "differently when others follow, so that it is not clear "
                             "what the assistant says: use a template with {%% "
                             "generation %%}, or data.loss_on \"all\"",
                             index + 1);
        }
    }
    tr__jinja_rendered_release(&before);
    tr__jinja_rendered_release(&until);
    return status;
}

static bool by_assistant(const json_t *message) {
    const char *role = json_string_value(json_object_get(message, "role"));
    return role && strcmp(role, "assistant") == 0;
}

static tr_status find_spans(const tr_chat *chat, const tr_conversation *c,
                            tr_jinja_rendered *out, tr_error *err) {
    size_t count = json_array_size(c->messages);
    tr_status status = TR_OK;
    tr__free(out->span);
    out->spans = 0;
    out->span = tr__calloc(count + 1, sizeof *out->span);
    if (!out->span) {
        return tr_fail(err, TR_MEMORY, "no memory for a conversation");
    }
    for (size_t i = 0; i < count && status == TR_OK; i++) {
        if (by_assistant(json_array_get(c->messages, i))) {
            status = find_span(chat, c, i, out, &out->span[out->spans++], err);
        }
    }
    return status;
}

tr_status tr__chat_render_spans(const tr_chat *chat, const tr_conversation *c,
                                tr_jinja_rendered *out, tr_error *err) {
    tr_status status = tr__chat_render(chat, c, out, err);
    if (status == TR_OK && !tr__chat_marks(chat)) {
        status = find_spans(chat, c, out, err);
    }
    if (status != TR_OK) {
        tr__jinja_rendered_release(out);
    }
    return status;
}

#include "data/chat/records.h"

#include "data/chat/share_gpt.h"

#include "base/memory.h"
#include "base/text.h"
#include "text/tokenizer/ids.h"

#include <tranche/types.h>

#include <jansson.h>
#include <string.h>

static const char *const loss_names[] = {"all", "completion", "assistant"};

tr_status tr__loss_on_parse(const char *name, tr_loss_on *loss_on, tr_error *err) {
    *loss_on = TR_LOSS_DEFAULT;
    for (size_t i = 0; name && i < 3; i++) {
        if (strcmp(name, loss_names[i]) == 0) {
            *loss_on = (tr_loss_on)(TR_LOSS_ALL + i);
            return TR_OK;
        }
    }
    const char *near = name ? tr__nearest(name, loss_names, 3) : NULL;
    return !name ? TR_OK
                 : tr_fail(err, TR_USAGE, "data.loss_on: '%.100s' is not known%s%s%s",
                           name, near ? "; did you mean '" : "", near ? near : "",
                           near ? "'?" : "; it is one of all, completion, assistant");
}

const char *tr__records_kind(tr_record_kind kind) {
    static const char *const names[] = {"records", "texts", "prompts with completions",
                                        "conversations",
                                        "conversations with completions"};
    return names[kind];
}

static bool has_completion(tr_record_kind kind) {
    return kind == TR_RECORD_COMPLETION || kind == TR_RECORD_CHAT_COMPLETION;
}

static bool is_chat(tr_record_kind kind) {
    return kind == TR_RECORD_CHAT || kind == TR_RECORD_CHAT_COMPLETION;
}

const char *tr__records_loss(const tr_records *r) {
    if (r->loss_on != TR_LOSS_DEFAULT) {
        return loss_names[r->loss_on - TR_LOSS_ALL];
    }
    return loss_names[has_completion(r->kind)];
}

// ---- kinds

static tr_status no_kind(const tr_records *r, tr_error *err) {
    const tr_data_fields *f = &r->fields;
    return tr_fail(err, TR_DATA,
                   "the record has neither \"%.60s\" and \"%.60s\", nor \"%.60s\", nor "
                   "\"%.60s\"; data.fields names them where they are called otherwise",
                   f->prompt, f->completion, f->messages, f->text);
}

// What is null is as good as left out: tables that were written as records have all
// columns in each of them.
static const json_t *member(const json_t *record, const char *name) {
    const json_t *value = json_object_get(record, name);
    return json_is_null(value) ? NULL : value;
}

// ShareGPT calls them conversations.
static const json_t *find_messages(const tr_records *r, const json_t *record) {
    const json_t *messages = member(record, r->fields.messages);
    const json_t *others = member(record, "conversations");
    return messages || !json_is_array(others) ? messages : others;
}

static tr_status find_kind(const tr_records *r, const json_t *record,
                           tr_record_kind *kind, tr_error *err) {
    const tr_data_fields *f = &r->fields;
    const json_t *prompt = member(record, f->prompt);
    const json_t *completion = member(record, f->completion);
    if (prompt && completion) {
        bool messages = json_is_array(prompt);
        *kind = messages ? TR_RECORD_CHAT_COMPLETION : TR_RECORD_COMPLETION;
        return (messages ? json_is_array(completion)
                         : json_is_string(prompt) && json_is_string(completion))
                   ? TR_OK
                   : tr_fail(err, TR_DATA,
                             "\"%.60s\" and \"%.60s\" are both texts or both lists of "
                             "messages; these are not",
                             f->prompt, f->completion);
    }
    const json_t *messages = find_messages(r, record);
    const json_t *text = member(record, f->text);
    *kind = messages ? TR_RECORD_CHAT : TR_RECORD_TEXT;
    if (messages && !json_is_array(messages)) {
        return tr_fail(err, TR_DATA, "\"%.60s\" is not a list of messages",
                       f->messages);
    }
    if (!messages && text && !json_is_string(text)) {
        return tr_fail(err, TR_DATA, "\"%.60s\" is not a string", f->text);
    }
    return messages || text ? TR_OK : no_kind(r, err);
}

static tr_status check_loss(const tr_records *r, tr_error *err) {
    if (r->loss_on == TR_LOSS_COMPLETION && !has_completion(r->kind)) {
        return tr_fail(err, TR_USAGE,
                       "data.loss_on is \"completion\", but the records are %s; "
                       "leave data.loss_on out",
                       tr__records_kind(r->kind));
    }
    if (r->loss_on == TR_LOSS_ASSISTANT && !is_chat(r->kind)) {
        return tr_fail(err, TR_USAGE,
                       "data.loss_on is \"assistant\", but the records are %s; leave "
                       "data.loss_on out",
                       tr__records_kind(r->kind));
    }
    if (is_chat(r->kind) && !r->chat) {
        return tr_fail(err, TR_DATA, "the records are conversations, and %s",
                       r->no_chat ? r->no_chat : "there is no chat template");
    }
    if (!is_chat(r->kind) && r->by->eos < 0) {
        return tr_fail(err, TR_USAGE,
                       "data.eos_token: nothing beside the tokenizer says which token "
                       "ends a text; name it (\"<|endoftext|>\" in GPT-2's)");
    }
    return TR_OK;
}

static tr_status settle_kind(tr_records *r, const json_t *record, tr_error *err) {
    tr_record_kind kind;
    tr_status status = find_kind(r, record, &kind, err);
    if (status != TR_OK) {
        return status;
    }
    if (r->kind == TR_RECORD_NONE) {
        r->kind = kind;
        return check_loss(r, err);
    }
    return kind == r->kind
               ? TR_OK
               : tr_fail(err, TR_DATA,
                         "the record is one of %s; the ones before are %s, and all "
                         "records of a data set are of one kind",
                         tr__records_kind(kind), tr__records_kind(r->kind));
}

// ---- tokens

static tr_status no_memory(tr_error *err) {
    return tr_fail(err, TR_MEMORY, "no memory for the tokens of a record");
}

static tr_status encode(tr_records *r, const char *text, size_t bytes, bool special,
                        tr_token_ids *ids, tr_error *err) {
    const tr_encode_options options = {.size = sizeof(tr_encode_options),
                                       .add_special = special,
                                       .plain_special = r->plain_special};
    ids->count = 0;
    return tr_encoder_encode(r->encoder, text, bytes, &options, ids, err);
}

// Labels: nothing is learnt yet.
static tr_status clear_labels(tr_records *r, tr_error *err) {
    r->labels.count = 0;
    if (!tr__ids_reserve(&r->labels, r->ids.count)) {
        return no_memory(err);
    }
    for (size_t i = 0; i < r->ids.count; i++) {
        r->labels.id[i] = TR_NO_TARGET;
    }
    r->labels.count = r->ids.count;
    return TR_OK;
}

static void learn(tr_records *r, size_t begin, size_t end) {
    for (size_t i = begin; i < end && i < r->ids.count; i++) {
        r->labels.id[i] = r->ids.id[i];
    }
}

// The tokens that the scratch has in common with the record's, from the first on.
static size_t common_tokens(const tr_records *r) {
    size_t count = 0;
    while (count < r->scratch.count && count < r->ids.count &&
           r->scratch.id[count] == r->ids.id[count]) {
        count++;
    }
    return count;
}

// The token in which byte `at` of the text begins or lies.
static tr_status token_at(tr_records *r, const char *text, size_t at, size_t *token,
                          bool *whole, tr_error *err) {
    tr_status status = encode(r, text, at, false, &r->scratch, err);
    *token = common_tokens(r);
    *whole = *token == r->scratch.count; // a token begins there
    return status;
}

// ---- texts

// The text with the token at its end that ends a text, unless it is there already.
static tr_status with_end(const tr_records *r, const json_t *first,
                          const json_t *second, char **out, size_t *bytes,
                          tr_error *err) {
    size_t end_bytes = 0;
    const char *end = tr_tokenizer_token(r->by->tokenizer, r->by->eos, &end_bytes);
    const json_t *last = second ? second : first;
    const char *text = json_string_value(last);
    size_t a = second ? json_string_length(first) : 0, b = json_string_length(last);
    bool ends = b >= end_bytes && memcmp(text + b - end_bytes, end, end_bytes) == 0;
    size_t more = ends ? 0 : end_bytes;
    *bytes = a + b + more;
    *out = tr__calloc(*bytes + 1, 1);
    if (!*out) {
        return no_memory(err);
    }
    memcpy(*out, json_string_value(first), a);
    memcpy(*out + a, text, b);
    memcpy(*out + a + b, end, more);
    return TR_OK;
}

static tr_status encode_text(tr_records *r, const json_t *text, tr_error *err) {
    char *whole = NULL;
    size_t bytes = 0;
    tr_status status = with_end(r, text, NULL, &whole, &bytes, err);
    if (status == TR_OK) {
        status = encode(r, whole, bytes, true, &r->ids, err);
    }
    if (status == TR_OK) {
        status = clear_labels(r, err);
    }
    if (status == TR_OK) {
        learn(r, 0, r->ids.count);
    }
    tr__free(whole);
    return status;
}

// The completion begins where the tokens of the prompt and of both differ.
static tr_status encode_completion(tr_records *r, const json_t *prompt,
                                   const json_t *completion, tr_error *err) {
    char *whole = NULL;
    size_t bytes = 0;
    tr_status status = with_end(r, prompt, completion, &whole, &bytes, err);
    if (status == TR_OK) {
        status = encode(r, whole, bytes, true, &r->ids, err);
    }
    if (status == TR_OK) {
        status = encode(r, json_string_value(prompt), json_string_length(prompt), true,
                        &r->scratch, err);
    }
    if (status == TR_OK) {
        status = clear_labels(r, err);
    }
    if (status == TR_OK) {
        learn(r, r->loss_on == TR_LOSS_ALL ? 0 : common_tokens(r), r->ids.count);
    }
    tr__free(whole);
    return status;
}

// ---- conversations

// What a span of the text is made of: from the token in which it begins to the one in
// which it ends.
static tr_status learn_span(tr_records *r, const char *text, tr_jinja_span span,
                            tr_error *err) {
    size_t begin = 0, end = 0;
    bool whole = true;
    if (span.end <= span.begin) {
        return TR_OK;
    }
    tr_status status = token_at(r, text, span.begin, &begin, &whole, err);
    if (status == TR_OK) {
        status = token_at(r, text, span.end, &end, &whole, err);
    }
    if (status == TR_OK) {
        learn(r, begin, end + !whole);
    }
    return status;
}

static tr_status encode_conversation(tr_records *r, const tr_conversation *c,
                                     tr_error *err) {
    tr_jinja_rendered text = {0};
    bool assistant = r->loss_on == TR_LOSS_ASSISTANT;
    tr_status status = assistant ? tr__chat_render_spans(r->chat, c, &text, err)
                                 : tr__chat_render(r->chat, c, &text, err);
    if (status == TR_OK) {
        status = encode(r, text.text, text.bytes, false, &r->ids, err);
    }
    if (status == TR_OK) {
        status = clear_labels(r, err);
    }
    for (size_t i = 0; assistant && status == TR_OK && i < text.spans; i++) {
        status = learn_span(r, text.text, text.span[i], err);
    }
    if (status == TR_OK && !assistant) {
        learn(r, 0, r->ids.count);
    }
    tr__jinja_rendered_release(&text);
    return status;
}

// The tools that the record has: a list, or its JSON as a text. The caller releases it.
static tr_status read_tools(const json_t *record, json_t **tools, tr_error *err) {
    json_t *given = json_object_get(record, "tools");
    *tools = NULL;
    if (!given || json_is_null(given)) {
        return TR_OK;
    }
    *tools = json_is_string(given)
                 ? json_loadb(json_string_value(given), json_string_length(given),
                              JSON_ALLOW_NUL, NULL)
                 : json_incref(given);
    if (!json_is_array(*tools)) {
        json_decref(*tools);
        *tools = NULL;
        return tr_fail(err, TR_DATA, "\"tools\" is neither a list nor the JSON of one");
    }
    return TR_OK;
}

static tr_status encode_chat(tr_records *r, const json_t *messages,
                             const json_t *record, tr_error *err) {
    json_t *tools = NULL;
    tr_status status = read_tools(record, &tools, err);
    if (status == TR_OK) {
        tr_conversation c = {.messages = messages,
                             .tools = tools,
                             .others = json_object_get(record, "chat_template_kwargs")};
        status = encode_conversation(r, &c, err);
    }
    json_decref(tools);
    return status;
}

static tr_status encode_messages(tr_records *r, const json_t *messages,
                                 const json_t *record, tr_error *err) {
    json_t *as_roles = NULL;
    tr_status status = tr__share_gpt_messages(messages, &as_roles, err);
    if (status == TR_OK) {
        status = encode_chat(r, as_roles, record, err);
    }
    json_decref(as_roles);
    return status;
}

// Takes the prompt out of what is learnt: the tokens up to where its own differ.
static tr_status forget_prompt(tr_records *r, const json_t *prompt,
                               const json_t *record, tr_error *err) {
    json_t *tools = NULL;
    tr_jinja_rendered text = {0};
    tr_status status = read_tools(record, &tools, err);
    if (status == TR_OK) {
        tr_conversation c = {.messages = prompt,
                             .tools = tools,
                             .others = json_object_get(record, "chat_template_kwargs"),
                             .answer = true};
        status = tr__chat_render(r->chat, &c, &text, err);
    }
    if (status == TR_OK) {
        status = encode(r, text.text, text.bytes, false, &r->scratch, err);
    }
    for (size_t i = 0, end = common_tokens(r); status == TR_OK && i < end; i++) {
        r->labels.id[i] = TR_NO_TARGET;
    }
    tr__jinja_rendered_release(&text);
    json_decref(tools);
    return status;
}

static tr_status encode_chat_completion(tr_records *r, const json_t *prompt,
                                        const json_t *completion, const json_t *record,
                                        tr_error *err) {
    json_t *messages = json_copy((json_t *)prompt);
    if (!messages || json_array_extend(messages, (json_t *)completion) != 0) {
        json_decref(messages);
        return no_memory(err);
    }
    tr_status status = encode_chat(r, messages, record, err);
    json_decref(messages);
    return status == TR_OK && r->loss_on != TR_LOSS_ALL
               ? forget_prompt(r, prompt, record, err)
               : status;
}

tr_status tr__record_encode(tr_records *r, const json_t *record, tr_error *err) {
    const tr_data_fields *f = &r->fields;
    tr_status status = settle_kind(r, record, err);
    if (status != TR_OK) {
        return status;
    }
    switch (r->kind) {
    case TR_RECORD_TEXT:
        return encode_text(r, json_object_get(record, f->text), err);
    case TR_RECORD_COMPLETION:
        return encode_completion(r, json_object_get(record, f->prompt),
                                 json_object_get(record, f->completion), err);
    case TR_RECORD_CHAT:
        return encode_messages(r, find_messages(r, record), record, err);
    default:
        return encode_chat_completion(r, json_object_get(record, f->prompt),
                                      json_object_get(record, f->completion), record,
                                      err);
    }
}

void tr__records_release(tr_records *r) {
    tr_token_ids_release(&r->ids);
    tr_token_ids_release(&r->labels);
    tr_token_ids_release(&r->scratch);
}

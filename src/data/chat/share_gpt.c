#include "data/chat/share_gpt.h"

#include <jansson.h>
#include <stdbool.h>
#include <string.h>

static const struct {
    const char *from, *role;
} roles[] = {
    {"human", "user"},       {"user", "user"},
    {"gpt", "assistant"},    {"assistant", "assistant"},
    {"model", "assistant"},  {"chatgpt", "assistant"},
    {"system", "system"},    {"tool", "tool"},
    {"observation", "tool"}, {"function_response", "tool"},
};

static const char *role_of(const char *from) {
    for (size_t i = 0; from && i < sizeof roles / sizeof *roles; i++) {
        if (strcmp(from, roles[i].from) == 0) {
            return roles[i].role;
        }
    }
    return NULL;
}

// A copy with the two members under their other names.
static tr_status convert(const json_t *message, size_t number, json_t **out,
                         tr_error *err) {
    const char *from = json_string_value(json_object_get(message, "from"));
    const char *role = role_of(from);
    json_t *value = json_object_get(message, "value");
    if (!from || !value) {
        return tr_fail(err, TR_DATA,
                       "message %zu: others of the record have \"from\" and \"value\", "
                       "and this one has not",
                       number);
    }
    if (!role) {
        return tr_fail(
            err, TR_DATA,
            "message %zu: \"from\" is \"%.60s\"; human, gpt, system and tool "
            "are known",
            number, from);
    }
    *out = json_copy((json_t *)message);
    bool done = *out && json_object_set_new(*out, "role", json_string(role)) == 0 &&
                json_object_set(*out, "content", value) == 0 &&
                json_object_del(*out, "from") == 0 &&
                json_object_del(*out, "value") == 0;
    return done ? TR_OK : tr_fail(err, TR_MEMORY, "no memory for a conversation");
}

static bool has_from(const json_t *messages) {
    size_t i;
    const json_t *message;
    json_array_foreach((json_t *)messages, i, message) {
        if (json_object_get(message, "from") && !json_object_get(message, "role")) {
            return true;
        }
    }
    return false;
}

tr_status tr__share_gpt_messages(const json_t *messages, json_t **out, tr_error *err) {
    if (!has_from(messages)) {
        *out = json_incref((json_t *)messages);
        return TR_OK;
    }
    json_t *made = json_array();
    tr_status status =
        made ? TR_OK : tr_fail(err, TR_MEMORY, "no memory for a conversation");
    for (size_t i = 0; i < json_array_size(messages) && status == TR_OK; i++) {
        json_t *message = NULL;
        status = convert(json_array_get(messages, i), i + 1, &message, err);
        if (status == TR_OK && json_array_append(made, message) != 0) {
            status = tr_fail(err, TR_MEMORY, "no memory for a conversation");
        }
        json_decref(message);
    }
    if (status != TR_OK) {
        json_decref(made);
        made = NULL;
    }
    *out = made;
    return status;
}

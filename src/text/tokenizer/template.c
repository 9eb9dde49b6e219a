#include "text/tokenizer/template.h"

#include "text/tokenizer/vocabulary.h"

enum { IDS_MAX = 1024 }; // on each side of a text

static tr_status no_memory(tr_error *err) {
    return tr_fail(err, TR_MEMORY, "no memory for a post-processor");
}

static tr_status add_id(const tr_node *node, tr_token_ids *ids, tr_error *err) {
    int64_t value = 0;
    tr_status status = tr__node_integer(node, 0, TR_TOKEN_ID_MAX, &value, err);
    if (status == TR_OK && ids->count >= IDS_MAX) {
        return tr__node_fail(node, err, "over %d tokens beside the text", IDS_MAX);
    }
    int32_t id = (int32_t)value;
    if (status == TR_OK && !tr__ids_add(ids, &id, 1)) {
        status = no_memory(err);
    }
    return status;
}

// {"SpecialToken": {"id": "<s>"}}: the ids are listed apart, under that name.
static tr_status add_special(const tr_node *template, const tr_node *part,
                             tr_token_ids *ids, tr_error *err) {
    const char *name;
    size_t bytes, count = 0;
    tr_node id = tr__node_member(part, "id");
    tr_status status = tr__node_text(&id, &name, &bytes, err);
    if (status != TR_OK) {
        return status;
    }
    tr_node tokens = tr__node_member(template, "special_tokens");
    tr_node token = tr__node_member(&tokens, name);
    tr_node list = tr__node_member(&token, "ids");
    status = tr__node_array(&list, &count, err);
    for (size_t i = 0; i < count && status == TR_OK; i++) {
        tr_node element = tr__node_element(&list, i);
        status = add_id(&element, ids, err);
    }
    return status;
}

// The parts of "single", of which exactly one is the text, "A".
static tr_status parse_single(const tr_node *node, tr_template *own, tr_error *err) {
    size_t count = 0, texts = 0;
    tr_node single = tr__node_member(node, "single");
    tr_status status = tr__node_array(&single, &count, err);
    for (size_t i = 0; i < count && status == TR_OK; i++) {
        tr_node part = tr__node_element(&single, i);
        tr_node special = tr__node_member(&part, "SpecialToken");
        tr_node text = tr__node_member(&part, "Sequence");
        if (special.value) {
            status =
                add_special(node, &special, texts ? &own->after : &own->before, err);
            continue;
        }
        tr_node id = tr__node_member(&text, "id");
        if (!json_is_string(id.value) ||
            strcmp(json_string_value(id.value), "A") != 0) {
            return tr__node_fail(&part, err,
                                 "is neither a SpecialToken nor the Sequence A");
        }
        texts++;
    }
    if (status == TR_OK && texts != 1) {
        status = tr__node_fail(&single, err, "has the text %zu times, not once", texts);
    }
    return status;
}

// ["[CLS]", 101]
static tr_status parse_pair(const tr_node *node, const char *key, tr_token_ids *ids,
                            tr_error *err) {
    size_t count = 0;
    tr_node member = tr__node_member(node, key);
    tr_status status = tr__node_array(&member, &count, err);
    if (status == TR_OK) {
        tr_node id = tr__node_element(&member, 1);
        status = add_id(&id, ids, err);
    }
    return status;
}

// What stands in the template already is the text of this one.
static tr_status wrap(const tr_node *node, tr_template *template, tr_template *own,
                      tr_error *err) {
    if (own->before.count + template->before.count > IDS_MAX ||
        own->after.count + template->after.count > IDS_MAX) {
        return tr__node_fail(node, err, "over %d tokens beside the text", IDS_MAX);
    }
    if (!tr__ids_add(&own->before, template->before.id, template->before.count) ||
        !tr__ids_add(&template->after, own->after.id, own->after.count)) {
        return no_memory(err);
    }
    tr_token_ids before = template->before;
    template->before = own->before;
    own->before = before;
    return TR_OK;
}

static tr_status parse_part(void *context, const tr_node *node, const char *type,
                            tr_error *err) {
    tr_template own = {0};
    tr_status status;
    if (strcmp(type, "ByteLevel") == 0) {
        return TR_OK; // it moves offsets, no ids
    }
    if (strcmp(type, "TemplateProcessing") == 0) {
        status = parse_single(node, &own, err);
    } else if (strcmp(type, "BertProcessing") == 0 ||
               strcmp(type, "RobertaProcessing") == 0) {
        status = parse_pair(node, "cls", &own.before, err);
        if (status == TR_OK) {
            status = parse_pair(node, "sep", &own.after, err);
        }
    } else {
        status = tr__node_refuse(node, type, err);
    }
    if (status == TR_OK) {
        status = wrap(node, context, &own, err);
    }
    tr__template_release(&own);
    return status;
}

tr_status tr__template_parse(const tr_node *node, tr_template *template,
                             tr_error *err) {
    return tr__node_sequence(node, "processors", parse_part, template, err);
}

void tr__template_release(tr_template *template) {
    tr_token_ids_release(&template->before);
    tr_token_ids_release(&template->after);
}

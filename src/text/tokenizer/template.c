#include "text/tokenizer/template.h"

#include "text/tokenizer/vocabulary.h"

enum { IDS_MAX = 1024 }; // on each side of a text

static tr_status no_memory(tr_error *err) {
    return tr_fail(err, TR_MEMORY, "no memory for a post-processor");
}

// ---- parts

static tr_status add_part(tr_template_parts *parts, int32_t part, int32_t type,
                          tr_error *err) {
    return tr__ids_add(&parts->part, &part, 1) && tr__ids_add(&parts->type, &type, 1)
               ? TR_OK
               : no_memory(err);
}

static void release_parts(tr_template_parts *parts) {
    tr_token_ids_release(&parts->part);
    tr_token_ids_release(&parts->type);
}

// The tokens before and behind the one text.
static tr_status find_sides(tr_template *own, tr_error *err) {
    const tr_token_ids *part = &own->single.part;
    bool behind = false, good = true;
    for (size_t i = 0; i < part->count && good; i++) {
        bool text = part->id[i] == TR_TEMPLATE_FIRST;
        good =
            text || tr__ids_add(behind ? &own->after : &own->before, &part->id[i], 1);
        behind = behind || text;
    }
    return good ? TR_OK : no_memory(err);
}

// ---- TemplateProcessing

static tr_status read_type(const tr_node *part, int32_t *type, tr_error *err) {
    int64_t value = 0;
    tr_node node = tr__node_member(part, "type_id");
    tr_status status =
        node.value ? tr__node_integer(&node, 0, TR_TOKEN_ID_MAX, &value, err) : TR_OK;
    *type = (int32_t)value;
    return status;
}

// {"SpecialToken": {"id": "<s>", "type_id": 0}}: the ids are listed apart, under that
// name.
static tr_status add_special(const tr_node *template, const tr_node *part,
                             tr_template_parts *parts, tr_error *err) {
    const char *name;
    size_t bytes, count = 0;
    int32_t type = 0;
    tr_node id = tr__node_member(part, "id");
    tr_status status = tr__node_text(&id, &name, &bytes, err);
    status = status == TR_OK ? read_type(part, &type, err) : status;
    if (status != TR_OK) {
        return status;
    }
    tr_node tokens = tr__node_member(template, "special_tokens");
    tr_node token = tr__node_member(&tokens, name);
    tr_node list = tr__node_member(&token, "ids");
    status = tr__node_array(&list, &count, err);
    for (size_t i = 0; i < count && status == TR_OK; i++) {
        tr_node element = tr__node_element(&list, i);
        int64_t value = 0;
        status = tr__node_integer(&element, 0, TR_TOKEN_ID_MAX, &value, err);
        if (status == TR_OK && parts->part.count >= IDS_MAX) {
            return tr__node_fail(&element, err, "over %d tokens beside the text",
                                 IDS_MAX);
        }
        status = status == TR_OK ? add_part(parts, (int32_t)value, type, err) : status;
    }
    return status;
}

// {"Sequence": {"id": "A", "type_id": 0}}; texts: how often A and B have been there.
static tr_status add_text(const tr_node *part, int most, int texts[2],
                          tr_template_parts *parts, tr_error *err) {
    static const char *const names[] = {"A", "B"};
    int32_t type = 0;
    tr_node text = tr__node_member(part, "Sequence");
    tr_node id = tr__node_member(&text, "id");
    for (int i = 0; i < most && i < 2; i++) {
        if (json_is_string(id.value) &&
            strcmp(json_string_value(id.value), names[i]) == 0) {
            texts[i]++;
            tr_status status = read_type(&text, &type, err);
            return status == TR_OK ? add_part(parts, TR_TEMPLATE_FIRST - i, type, err)
                                   : status;
        }
    }
    return tr__node_fail(part, err, "is neither a SpecialToken nor the Sequence A%s",
                         most > 1 ? " or B" : "");
}

// The parts under `key`, of which each of `most` texts is exactly one.
static tr_status parse_parts(const tr_node *node, const char *key, int most,
                             tr_template_parts *parts, tr_error *err) {
    size_t count = 0;
    int texts[2] = {0};
    tr_node list = tr__node_member(node, key);
    tr_status status = tr__node_array(&list, &count, err);
    for (size_t i = 0; i < count && status == TR_OK; i++) {
        tr_node part = tr__node_element(&list, i);
        tr_node special = tr__node_member(&part, "SpecialToken");
        status = special.value ? add_special(node, &special, parts, err)
                               : add_text(&part, most, texts, parts, err);
    }
    for (int i = 0; i < most && status == TR_OK; i++) {
        if (texts[i] != 1) {
            status = tr__node_fail(&list, err, "has the text %s%d times, not once",
                                   most == 1 ? ""
                                   : i == 0  ? "A "
                                             : "B ",
                                   texts[i]);
        }
    }
    return status;
}

static tr_status parse_template(const tr_node *node, tr_template *own, tr_error *err) {
    tr_node pair = tr__node_member(node, "pair");
    tr_status status = parse_parts(node, "single", 1, &own->single, err);
    if (status == TR_OK && pair.value) {
        status = parse_parts(node, "pair", 2, &own->pair, err);
    }
    return status;
}

// ---- BertProcessing, RobertaProcessing

// ["[CLS]", 101]
static tr_status read_token(const tr_node *node, const char *key, int32_t *id,
                            tr_error *err) {
    size_t count = 0;
    int64_t value = 0;
    tr_node member = tr__node_member(node, key);
    tr_status status = tr__node_array(&member, &count, err);
    if (status == TR_OK) {
        tr_node element = tr__node_element(&member, 1);
        status = tr__node_integer(&element, 0, TR_TOKEN_ID_MAX, &value, err);
    }
    *id = (int32_t)value;
    return status;
}

// [CLS] A [SEP] B [SEP], where B and what is behind it is of type 1; of RoBERTa's, <s>
// A
// </s> </s> B </s>, all of type 0.
static tr_status parse_bert(const tr_node *node, bool roberta, tr_template *own,
                            tr_error *err) {
    int32_t cls = 0, sep = 0;
    tr_status status = read_token(node, "cls", &cls, err);
    status = status == TR_OK ? read_token(node, "sep", &sep, err) : status;
    const int32_t parts[] = {cls, TR_TEMPLATE_FIRST, sep, sep, TR_TEMPLATE_SECOND, sep};
    for (int i = 0; i < 3 && status == TR_OK; i++) {
        status = add_part(&own->single, parts[i], 0, err);
    }
    for (int i = 0; i < 6 && status == TR_OK; i++) {
        int32_t type = i > 3 && !roberta;
        status = i == 3 && !roberta ? TR_OK : add_part(&own->pair, parts[i], type, err);
    }
    return status;
}

// ---- all of them

// Puts the parts of `outer` around those that `inner` has for its texts. Of two
// processors, a pair's texts are not taken apart again.
static tr_status wrap_single(const tr_node *node, tr_template *inner,
                             const tr_template *outer, tr_error *err) {
    tr_template_parts whole = {0};
    tr_status status = TR_OK;
    if (inner->single.part.count + outer->single.part.count > IDS_MAX) {
        return tr__node_fail(node, err, "over %d tokens beside the text", IDS_MAX);
    }
    for (size_t i = 0; i < outer->single.part.count && status == TR_OK; i++) {
        int32_t part = outer->single.part.id[i], type = outer->single.type.id[i];
        bool text = part == TR_TEMPLATE_FIRST && inner->single.part.count > 0;
        for (size_t k = 0; text && k < inner->single.part.count && status == TR_OK;
             k++) {
            status = add_part(&whole, inner->single.part.id[k], type, err);
        }
        status = text || status != TR_OK ? status : add_part(&whole, part, type, err);
    }
    release_parts(&inner->single);
    inner->single = whole;
    return status;
}

static tr_status parse_part(void *context, const tr_node *node, const char *type,
                            tr_error *err) {
    tr_template own = {0}, *template = context;
    tr_status status;
    if (strcmp(type, "ByteLevel") == 0) {
        return TR_OK; // it moves offsets, no ids
    }
    if (strcmp(type, "TemplateProcessing") == 0) {
        status = parse_template(node, &own, err);
    } else if (strcmp(type, "BertProcessing") == 0 ||
               strcmp(type, "RobertaProcessing") == 0) {
        status = parse_bert(node, type[0] == 'R', &own, err);
    } else {
        status = tr__node_refuse(node, type, err);
    }
    if (status == TR_OK) {
        status = wrap_single(node, template, &own, err);
    }
    if (status == TR_OK) {
        release_parts(&template->pair);
        template->pair = own.pair;
        own.pair = (tr_template_parts){0};
        template->steps++;
    }
    tr__template_release(&own);
    return status;
}

tr_status tr__template_parse(const tr_node *node, tr_template *template,
                             tr_error *err) {
    tr_status status = tr__node_sequence(node, "processors", parse_part, template, err);
    if (status == TR_OK && template->steps == 0) { // the texts alone
        status = add_part(&template->single, TR_TEMPLATE_FIRST, 0, err);
        for (int32_t i = 0; i < 2 && status == TR_OK; i++) {
            status = add_part(&template->pair, TR_TEMPLATE_FIRST - i, i, err);
        }
    }
    return status == TR_OK ? find_sides(template, err) : status;
}

// ---- texts

size_t tr__template_more(const tr_template *template, bool pair) {
    size_t all = pair ? template->pair.part.count : template->single.part.count;
    size_t texts = pair ? 2 : 1;
    return all > texts ? all - texts : 0;
}

static tr_status fill(const tr_template_parts *parts, const tr_token_ids *first,
                      const tr_token_ids *second, tr_token_ids *ids,
                      tr_token_ids *types) {
    bool good = true;
    for (size_t i = 0; i < parts->part.count && good; i++) {
        const tr_token_ids one = {&parts->part.id[i], 1, 1};
        const tr_token_ids *from = one.id[0] == TR_TEMPLATE_FIRST    ? first
                                   : one.id[0] == TR_TEMPLATE_SECOND ? second
                                                                     : &one;
        good = tr__ids_add(ids, from->id, from->count);
        for (size_t k = 0; k < from->count && good; k++) {
            good = tr__ids_add(types, &parts->type.id[i], 1);
        }
    }
    return good ? TR_OK : TR_MEMORY;
}

tr_status tr__template_fill(const tr_template *template, const tr_token_ids *first,
                            const tr_token_ids *second, tr_token_ids *ids,
                            tr_token_ids *types, tr_error *err) {
    const tr_template_parts *parts = second ? &template->pair : &template->single;
    if (second && (parts->part.count == 0 || template->steps > 1)) {
        return tr_fail(err, TR_DATA,
                       "the post-processor of the tokenizer does not say how two texts "
                       "are joined: a record of text and text_pair needs one with a "
                       "\"pair\"");
    }
    return fill(parts, first, second, ids, types) == TR_OK
               ? TR_OK
               : tr_fail(err, TR_MEMORY, "no memory for token ids");
}

void tr__template_release(tr_template *template) {
    tr_token_ids_release(&template->before);
    tr_token_ids_release(&template->after);
    release_parts(&template->single);
    release_parts(&template->pair);
}

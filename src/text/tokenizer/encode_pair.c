// Texts with the special tokens and the types that models of the kind of BERT take.
#include "text/tokenizer/tokenizer.h"

#include "base/arguments.h"

static size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

// How many tokens stay of two texts of which `room` may stay: the longer one is cut
// first, and where both are longer than their half, each to that.
static void cut_longest(size_t room, size_t *first, size_t *second) {
    bool swapped = *first > *second;
    size_t less = swapped ? *second : *first, more = swapped ? *first : *second;
    size_t rest = less < room ? room - less : 0;
    if (rest < less) { // each has its half, the second one an odd token
        less = room / 2;
        more = less + room % 2;
    } else {
        more = smaller(more, rest);
    }
    *first = swapped ? more : less;
    *second = swapped ? less : more;
}

static tr_status cut_texts(const tr_template *template, size_t most,
                           tr_token_ids *first, tr_token_ids *second, bool *cut,
                           tr_error *err) {
    size_t more = tr__template_more(template, second != NULL);
    size_t all = first->count + (second ? second->count : 0);
    if (most == 0 || all + more <= most) {
        return TR_OK;
    }
    if (most <= more) {
        return tr_fail(err, TR_DATA,
                       "of %zu tokens at most, %zu are special ones, so there is no "
                       "room for a text; raise data.max_length",
                       most, more);
    }
    *cut = true;
    if (second) {
        cut_longest(most - more, &first->count, &second->count);
    } else {
        first->count = smaller(first->count, most - more);
    }
    return TR_OK;
}

tr_status tr_encoder_encode_pair(tr_encoder *e, const tr_text_pair *texts,
                                 tr_token_ids *ids, tr_token_ids *types, bool *cut,
                                 tr_error *err) {
    static const char name[] = "tr_encoder_encode_pair";
    static const tr_sized known = {"tr_text_pair", "TR_TEXT_PAIR_INIT", sizeof *texts,
                                   0};
    tr_status status = tr__need(e, name, "encoder", err);
    status = status == TR_OK ? tr__need_sized(texts, &known, name, err) : status;
    status = status == TR_OK ? tr__need(types, name, "types", err) : status;
    if (status != TR_OK) {
        return status;
    }
    const tr_encode_options options = {.size = sizeof options,
                                       .plain_special = texts->plain_special};
    const tr_template *template = &e->tokenizer->template;
    tr_token_ids first = {0}, second = {0};
    bool were_cut = false, pair = texts->second != NULL;
    status =
        tr_encoder_encode(e, texts->first, texts->first_bytes, &options, &first, err);
    if (status == TR_OK && pair) {
        status = tr_encoder_encode(e, texts->second, texts->second_bytes, &options,
                                   &second, err);
    }
    if (status == TR_OK) {
        status = cut_texts(template, texts->most, &first, pair ? &second : NULL,
                           &were_cut, err);
    }
    if (status == TR_OK) {
        status =
            tr__template_fill(template, &first, pair ? &second : NULL, ids, types, err);
    }
    tr_token_ids_release(&first);
    tr_token_ids_release(&second);
    if (cut) {
        *cut = were_cut;
    }
    return status;
}

#include "data/encoder/documents.h"

#include "data/encoder/masking.h"

#include "base/checked.h"
#include "base/memory.h"

#include <string.h>

// How files write the space before a word: byte level, and SentencePiece.
static const char byte_space[] = "\xc4\xa0", piece_space[] = "\xe2\x96\x81";

static bool begins(const char *token, size_t bytes, const char *with) {
    size_t length = strlen(with);
    return bytes > length && memcmp(token, with, length) == 0;
}

static bool has_space(const char *token, size_t bytes) {
    return begins(token, bytes, byte_space) || begins(token, bytes, piece_space);
}

tr_word_form tr__word_form(const tr_tokenizer *tokenizer) {
    int64_t pieces = 0, spaces = 0, count = tr_tokenizer_vocabulary(tokenizer);
    for (int64_t id = 0; id < count; id++) {
        size_t bytes = 0;
        const char *token = tr_tokenizer_token(tokenizer, (int32_t)id, &bytes);
        pieces += token && begins(token, bytes, "##");
        spaces += token && has_space(token, bytes);
    }
    return pieces > spaces ? TR_WORDS_PIECE
           : spaces > 0    ? TR_WORDS_SPACE
                           : TR_WORDS_UNKNOWN;
}

static bool goes_on(const tr_text_reading *r, int32_t id) {
    size_t bytes = 0;
    const char *token = tr_tokenizer_token(r->by->tokenizer, id, &bytes);
    if (!token || r->words == TR_WORDS_UNKNOWN) {
        return false;
    }
    return r->words == TR_WORDS_PIECE ? begins(token, bytes, "##")
                                      : !has_space(token, bytes);
}

// ---- the special tokens around a text

// Where a text stands in its frame, which is what an empty one has: behind so many of
// the frame's tokens, of which the others end `whole`.
static size_t place_in(const tr_token_ids *frame, const tr_token_ids *whole) {
    bool some = frame->count > 0 && whole->count >= frame->count;
    for (size_t p = 0; some && p <= frame->count; p++) {
        size_t behind = frame->count - p;
        size_t head = p * sizeof *frame->id, tail = behind * sizeof *frame->id;
        if (memcmp(whole->id, frame->id, head) == 0 &&
            memcmp(whole->id + whole->count - behind, frame->id + p, tail) == 0) {
            return p;
        }
    }
    return 0;
}

static tr_status find_frame(tr_text_reading *r, size_t *before, tr_error *err) {
    const tr_text_pair empty = {.size = sizeof empty, .first = "", .first_bytes = 0};
    tr_token_ids frame = {0};
    r->types.count = 0;
    tr_status status =
        tr_encoder_encode_pair(r->encoder, &empty, &frame, &r->types, NULL, err);
    r->frame = frame;
    *before = place_in(&frame, &r->ids);
    return status;
}

// The place of `text` in the frame of a pair, as its first part, or its second, and the
// type of its tokens there.
static tr_status find_part(tr_text_reading *r, const tr_text_pair *text, bool second,
                           tr_pair_part *part, tr_error *err) {
    tr_text_pair pair = *text;
    tr_token_ids whole = {0};
    pair.second = second ? text->first : "";
    pair.second_bytes = second ? text->first_bytes : 0;
    pair.first = second ? "" : text->first;
    pair.first_bytes = second ? 0 : text->first_bytes;
    r->types.count = 0;
    tr_status status =
        tr_encoder_encode_pair(r->encoder, &pair, &whole, &r->types, NULL, err);
    if (status == TR_OK) {
        part->place = place_in(&r->pairs->ids, &whole);
        part->type = r->types.id[part->place];
    }
    tr_token_ids_release(&whole);
    return status;
}

// `text` has tokens of its own.
static tr_status find_pair_frame(tr_text_reading *r, const tr_text_pair *text,
                                 tr_error *err) {
    const tr_text_pair empty = {.size = sizeof empty, .first = "", .second = ""};
    tr_pair_frame *pairs = r->pairs;
    tr_status status = tr_encoder_encode_pair(r->encoder, &empty, &pairs->ids,
                                              &pairs->types, NULL, err);
    status = status == TR_OK ? find_part(r, text, false, &pairs->part[0], err) : status;
    return status == TR_OK ? find_part(r, text, true, &pairs->part[1], err) : status;
}

static tr_status no_memory(tr_error *err) {
    return tr_fail(err, TR_MEMORY, "no memory for the tokens of documents");
}

// A piece [first, end) of the document's own tokens, as a text of the list.
static tr_status add_piece(tr_text_reading *r, size_t before, size_t first, size_t end,
                           tr_text_list *list, tr_error *err) {
    size_t behind = r->frame.count - before, had = list->ids.count;
    size_t count = r->frame.count + end - first;
    bool room = tr__grow((void **)&list->first, &list->first_room,
                         (size_t)list->count + 2, sizeof *list->first) &&
                tr__grow((void **)&list->type, &list->type_room, had + count, 1);
    if (!room || tr_token_ids_add(&list->ids, r->frame.id, before, err) != TR_OK ||
        tr_token_ids_add(&list->ids, r->ids.id + first, end - first, err) != TR_OK ||
        tr_token_ids_add(&list->ids, r->frame.id + before, behind, err) != TR_OK) {
        return no_memory(err);
    }
    memset(list->type + had, (uint8_t)TR_MASK_NEVER, count);
    for (size_t i = first; i < end; i++) {
        bool on = i > first && goes_on(r, r->ids.id[i]);
        list->type[had + before + i - first] = on ? TR_MASK_GOES_ON : TR_MASK_BEGINS;
    }
    list->first[list->count++] = (int64_t)had;
    list->first[list->count] = (int64_t)(had + count);
    return list->count < INT32_MAX
               ? TR_OK
               : tr_fail(err, TR_DATA, "2^31 texts or more are too many");
}

static tr_status add_pieces(tr_text_reading *r, size_t before, tr_text_list *list,
                            tr_error *err) {
    size_t length = (size_t)r->options->sequence_length, frame = r->frame.count;
    size_t end = r->ids.count - (frame - before);
    tr_status status = TR_OK;
    if (r->pairs) { // spans are taken from it, each with other tokens around it
        r->frame.count = 0;
        return end > before ? add_piece(r, 0, before, end, list, err) : TR_OK;
    }
    if (length <= frame) {
        return tr_fail(err, TR_DATA,
                       "data.max_length is %zu, and the tokenizer puts %zu tokens "
                       "around a text: raise it",
                       length, frame);
    }
    for (size_t at = before; at < end && status == TR_OK; at += length - frame) {
        size_t piece = end - at < length - frame ? end - at : length - frame;
        status = add_piece(r, before, at, at + piece, list, err);
    }
    return status;
}

tr_status tr__document_add(tr_text_reading *r, const char *text, size_t bytes,
                           tr_text_list *list, tr_error *err) {
    const tr_text_pair whole = {.size = sizeof whole,
                                .first = text,
                                .first_bytes = bytes,
                                .plain_special = r->options->plain_special};
    size_t before = 0;
    r->ids.count = r->types.count = 0;
    tr_status status =
        tr_encoder_encode_pair(r->encoder, &whole, &r->ids, &r->types, NULL, err);
    tr_token_ids_release(&r->frame);
    status = status == TR_OK ? find_frame(r, &before, err) : status;
    if (status == TR_OK && r->pairs && r->pairs->ids.count == 0 &&
        r->ids.count > r->frame.count) {
        status = find_pair_frame(r, &whole, err);
    }
    return status == TR_OK ? add_pieces(r, before, list, err) : status;
}

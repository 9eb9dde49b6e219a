// A whole text: in parts that fit the processor's caches, on as many threads as wished.
#include "tokenizer/stream.h"
#include "tokenizer/tokenizer.h"

#include <omp.h>

enum { PART = 1 << 16 }; // bytes of a part, about

static tr_status no_memory(tr_error *err) {
    return tr_fail(err, TR_MEMORY, "no memory for token ids");
}

static bool specials(const tr_encode_options *options) {
    return !options || !options->plain_special;
}

static tr_status add_template(const tr_token_ids *of, const tr_encode_options *options,
                              tr_token_ids *ids, tr_error *err) {
    bool wanted = options && options->add_special;
    return !wanted || tr__ids_add(ids, of->id, of->count) ? TR_OK : no_memory(err);
}

static size_t part_end(const tr_tokenizer *t, const unsigned char *text, size_t bytes,
                       size_t begin) {
    return bytes - begin <= PART ? bytes
                                 : tr__tokenizer_cut(t, text, bytes, begin + PART);
}

tr_status tr_encoder_encode(tr_encoder *e, const char *text, size_t bytes,
                            const tr_encode_options *options, tr_token_ids *ids,
                            tr_error *err) {
    const tr_tokenizer *t = e->tokenizer;
    const unsigned char *from = (const unsigned char *)text;
    tr_status status = add_template(&t->template.before, options, ids, err);
    for (size_t at = 0, end; at < bytes && status == TR_OK; at = end) {
        end = part_end(t, from, bytes, at);
        status = tr__encode_part(e, from + at, end - at, at == 0, specials(options),
                                 ids, err);
    }
    return status == TR_OK ? add_template(&t->template.after, options, ids, err)
                           : status;
}

// The parts of a text and what has come of each.
typedef struct parts {
    const tr_tokenizer *tokenizer;
    const unsigned char *text;
    tr_span *span;     // [count]
    tr_token_ids *ids; // [count]
    size_t count, capacity;
    bool begins, specials;
} parts;

static bool find_parts(parts *p, size_t bytes) {
    for (size_t at = 0, end; at < bytes; at = end) {
        end = part_end(p->tokenizer, p->text, bytes, at);
        if (!tr__grow((void **)&p->span, &p->capacity, p->count + 1, sizeof *p->span)) {
            return false;
        }
        p->span[p->count++] = (tr_span){at, end};
    }
    p->ids = tr__calloc(p->count, sizeof *p->ids);
    return p->ids != NULL;
}

// Works off parts until there are none; the first error ends it.
static void work(const parts *p, int threads, tr_error *first) {
#pragma omp parallel num_threads(threads)
    {
        tr_error own = {0};
        tr_encoder *encoder = NULL;
        tr_status status = tr_encoder_create(p->tokenizer, &encoder, &own);
#pragma omp for schedule(dynamic)
        for (size_t i = 0; i < p->count; i++) {
            if (status == TR_OK) {
                tr_span span = p->span[i];
                status = tr__encode_part(encoder, p->text + span.begin,
                                         span.end - span.begin, p->begins && i == 0,
                                         p->specials, &p->ids[i], &own);
            }
        }
        tr_encoder_destroy(encoder);
        if (status != TR_OK) {
#pragma omp critical(tr_tokenizer_error)
            tr_fail(first, status, "%s", own.message);
        }
    }
}

static tr_status join(const parts *p, tr_token_ids *ids, tr_error *err) {
    size_t total = 0;
    for (size_t i = 0; i < p->count; i++) {
        total += p->ids[i].count;
    }
    if (!tr__ids_reserve(ids, total)) {
        return no_memory(err);
    }
    for (size_t i = 0; i < p->count; i++) {
        tr__ids_add(ids, p->ids[i].id, p->ids[i].count);
    }
    return TR_OK;
}

static void release(parts *p) {
    for (size_t i = 0; p->ids && i < p->count; i++) {
        tr_token_ids_release(&p->ids[i]);
    }
    tr__free(p->ids);
    tr__free(p->span);
}

static int threads_for(int threads, size_t count) {
    size_t most = threads > 0 ? (size_t)threads : (size_t)omp_get_max_threads();
    return (int)(most < count ? most : count);
}

static tr_status encode_parts(parts *p, size_t bytes, int threads, tr_token_ids *ids,
                              tr_error *err) {
    tr_error first = {0};
    tr_status status = TR_OK;
    if (bytes == 0) {
        return TR_OK;
    }
    if (!find_parts(p, bytes)) {
        status = no_memory(err);
    } else {
        work(p, threads_for(threads, p->count), &first);
        status = first.status == TR_OK
                     ? join(p, ids, err)
                     : tr_fail(err, first.status, "%s", first.message);
    }
    release(p);
    return status;
}

tr_status tr__tokenizer_block(const tr_tokenizer *t, const tr_block *block,
                              const tr_encode_options *options, int threads,
                              tr_token_ids *ids, size_t *used, tr_error *err) {
    parts p = {.tokenizer = t,
               .text = (const unsigned char *)block->text,
               .begins = block->begins,
               .specials = specials(options)};
    tr_status status = TR_OK;
    *used =
        block->ends ? block->bytes : tr__tokenizer_last_cut(t, p.text, block->bytes);
    if (*used == 0 && !block->ends) {
        return TR_OK;
    }
    if (block->begins) {
        status = add_template(&t->template.before, options, ids, err);
    }
    if (status == TR_OK) {
        status = encode_parts(&p, *used, threads, ids, err);
    }
    return status == TR_OK && block->ends
               ? add_template(&t->template.after, options, ids, err)
               : status;
}

tr_status tr_tokenizer_encode(const tr_tokenizer *t, const char *text, size_t bytes,
                              const tr_encode_options *options, int threads,
                              tr_token_ids *ids, tr_error *err) {
    tr_block whole = {text, bytes, true, true};
    return tr__tokenizer_block(t, &whole, options, threads, ids, &bytes, err);
}

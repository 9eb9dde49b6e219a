// A whole text: in parts that fit the processor's caches, on as many threads as wished.
#include "base/parallel.h"
#include "base/arguments.h"
#include "text/tokenizer/stream.h"
#include "text/tokenizer/tokenizer.h"

#include <pthread.h>
#include <stdatomic.h>

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

tr_status tr__encode_options_check(const tr_encode_options *options,
                                   const char *function, tr_error *err) {
    static const tr_sized known = {"tr_encode_options", "TR_ENCODE_OPTIONS_INIT",
                                   sizeof *options, 0};
    return options ? tr__need_sized(options, &known, function, err) : TR_OK;
}

tr_status tr_encoder_encode(tr_encoder *e, const char *text, size_t bytes,
                            const tr_encode_options *options, tr_token_ids *ids,
                            tr_error *err) {
    static const char own_name[] = "tr_encoder_encode";
    tr_status given = tr__need(e, own_name, "encoder", err);
    given =
        given == TR_OK ? tr__need(bytes > 0 ? text : "", own_name, "text", err) : given;
    given = given == TR_OK ? tr__need(ids, own_name, "ids", err) : given;
    given = given == TR_OK ? tr__encode_options_check(options, own_name, err) : given;
    if (given != TR_OK) {
        return given;
    }
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

// A part of a text and what has come of it.
typedef struct part {
    const unsigned char *text;
    size_t bytes;
    bool begins; // the text begins with it
    tr_token_ids ids;
} part;

// The parts of blocks, in their order.
typedef struct parts {
    part *part; // [count]
    size_t count, capacity;
} parts;

// Parts of the first `bytes` bytes of a block.
static bool find_parts(const tr_tokenizer *t, const tr_block *block, size_t bytes,
                       parts *p) {
    const unsigned char *text = (const unsigned char *)block->text;
    for (size_t at = 0, end; at < bytes; at = end) {
        end = part_end(t, text, bytes, at);
        if (!tr__grow((void **)&p->part, &p->capacity, p->count + 1, sizeof *p->part)) {
            return false;
        }
        p->part[p->count++] =
            (part){text + at, end - at, block->begins && at == 0, {0}};
    }
    return true;
}

static void release_parts(parts *p) {
    for (size_t i = 0; i < p->count; i++) {
        tr_token_ids_release(&p->part[i].ids);
    }
    tr__free(p->part);
}

// Parts that threads work off, and the first error, which ends the work.
typedef struct parts_work {
    tr_text_stream *stream;
    const parts *parts;
    pthread_mutex_t lock;
    atomic_bool failed;
    tr_error first;
} parts_work;

static tr_status encode_item(tr_text_stream *s, part *here, int thread, tr_error *err) {
    tr_encoder **encoder = &s->encoder[thread];
    tr_status status = *encoder ? TR_OK : tr_encoder_create(s->tokenizer, encoder, err);
    return status == TR_OK
               ? tr__encode_part(*encoder, here->text, here->bytes, here->begins,
                                 !s->options.plain_special, &here->ids, err)
               : status;
}

static void work(void *what, int64_t item, int thread) {
    parts_work *w = what;
    tr_error own = {0};
    if (atomic_load(&w->failed) ||
        encode_item(w->stream, &w->parts->part[item], thread, &own) == TR_OK) {
        return;
    }
    pthread_mutex_lock(&w->lock);
    w->first = w->first.status == TR_OK ? own : w->first;
    pthread_mutex_unlock(&w->lock);
    atomic_store(&w->failed, true);
}

// Room for an encoder of each thread. Returns how many threads work; 0: no memory.
static int prepare_encoders(tr_text_stream *s, size_t count) {
    if (!s->encoder) {
        s->encoder_count = s->threads > 0 ? s->threads : tr__parallel_threads();
        s->encoder = tr__calloc((size_t)s->encoder_count, sizeof(tr_encoder *));
    }
    size_t most = s->encoder ? (size_t)s->encoder_count : 0;
    return (int)(most < count ? most : count);
}

static tr_status encode_parts(tr_text_stream *s, const parts *p, tr_error *err) {
    parts_work w = {.stream = s, .parts = p, .lock = PTHREAD_MUTEX_INITIALIZER};
    int threads = p->count > 0 ? prepare_encoders(s, p->count) : 0;
    if (p->count == 0) {
        return TR_OK;
    }
    if (threads == 0) {
        return no_memory(err);
    }
    tr__parallel_items(threads, (int64_t)p->count, work, &w);
    return w.first.status == TR_OK
               ? TR_OK
               : tr_fail(err, w.first.status, "%s", w.first.message);
}

// Appends a block's ids: `bytes` of it have some, in the parts from *next on.
static tr_status join(const tr_text_stream *s, const tr_block *block, size_t bytes,
                      const parts *p, size_t *next, tr_token_ids *ids, tr_error *err) {
    const tr_template *template = &s->tokenizer->template;
    tr_status status = TR_OK;
    bool good = !block->begins || !block->before || tr__ids_add(ids, block->before, 1);
    if (block->begins) {
        status = add_template(&template->before, &s->options, ids, err);
    }
    for (size_t done = 0; done < bytes && good; (*next)++) {
        const part *here = &p->part[*next];
        good = tr__ids_add(ids, here->ids.id, here->ids.count);
        done += here->bytes;
    }
    if (status == TR_OK && block->ends) {
        status = add_template(&template->after, &s->options, ids, err);
    }
    return good ? status : no_memory(err);
}

tr_status tr__text_stream_encode(tr_text_stream *s, const tr_block *block, size_t count,
                                 tr_token_ids *ids, size_t *used, tr_error *err) {
    const tr_tokenizer *t = s->tokenizer;
    const tr_block *last = &block[count - 1];
    parts p = {0};
    size_t next = 0;
    bool good = true;
    *used = last->ends ? last->bytes
                       : tr__tokenizer_last_cut(t, (const unsigned char *)last->text,
                                                last->bytes);
    count -= *used == 0 && !last->ends;
    for (size_t i = 0; i < count && good; i++) {
        good = find_parts(t, &block[i], &block[i] == last ? *used : block[i].bytes, &p);
    }
    tr_status status = good ? encode_parts(s, &p, err) : no_memory(err);
    for (size_t i = 0; i < count && status == TR_OK; i++) {
        status = join(s, &block[i], &block[i] == last ? *used : block[i].bytes, &p,
                      &next, ids, err);
    }
    release_parts(&p);
    return status;
}

void tr__text_stream_release(tr_text_stream *s) {
    for (int i = 0; s->encoder && i < s->encoder_count; i++) {
        tr_encoder_destroy(s->encoder[i]);
    }
    tr__free(s->encoder);
    s->encoder = NULL;
    s->encoder_count = 0;
}

tr_status tr_tokenizer_encode(const tr_tokenizer *t, const char *text, size_t bytes,
                              const tr_encode_options *options, int threads,
                              tr_token_ids *ids, tr_error *err) {
    static const char own_name[] = "tr_tokenizer_encode";
    tr_status given = tr__need(t, own_name, "tokenizer", err);
    given =
        given == TR_OK ? tr__need(bytes > 0 ? text : "", own_name, "text", err) : given;
    given = given == TR_OK ? tr__need(ids, own_name, "ids", err) : given;
    given = given == TR_OK ? tr__encode_options_check(options, own_name, err) : given;
    if (given != TR_OK) {
        return given;
    }
    tr_block whole = {text, bytes, true, true, NULL};
    tr_text_stream stream = {.tokenizer = t, .threads = threads};
    if (options) {
        stream.options = *options;
    }
    tr_status status = tr__text_stream_encode(&stream, &whole, 1, ids, &bytes, err);
    tr__text_stream_release(&stream);
    return status;
}

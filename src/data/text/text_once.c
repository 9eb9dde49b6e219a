#include "data/text/text_once.h"

#include "data/sources/formats.h"

#include "base/clock.h"

static const double looked_every = 0.05, // seconds; whether another process is done
    said_after = 1, stalled_after = 60;

tr_status tr__text_go_on(const tr_data_options *options, tr_error *err) {
    return options->stop && options->stop(options->stop_user)
               ? tr_fail(err, TR_INTERRUPTED, "interrupted")
               : TR_OK;
}

// Another process that has the ids under way.
typedef struct waiting {
    double begun, moved; // tr__seconds(); when it was last seen to go on
    int64_t progress;
    bool said;
} waiting;

static void wait_a_little(const tr_text_once *s, waiting *w) {
    int64_t progress = tr__text_cache_progress(s->cache);
    double now = tr__seconds();
    w->moved = progress != w->progress ? now : w->moved;
    w->progress = progress;
    if (!w->said && now > w->begun + said_after) {
        w->said = true;
        tr__data_say(s->options, "%s: another process tokenizes the same text; waiting",
                     s->key);
    }
    tr__sleep(looked_every);
}

// Between a look for the ids and a claim another process may have come to its end.
static tr_status make_ids(const tr_text_once *s, bool alone, bool *done,
                          tr_error *err) {
    tr_text_writer writer = {.file = -1};
    tr_text_claim claim = TR_TEXT_TAKEN;
    tr_status status = tr__text_cache_claim(s->cache, alone, &writer, &claim, err);
    if (status == TR_OK && claim == TR_TEXT_OURS) {
        *done = true;
        status = tr__text_cache_find(s->cache) ? TR_OK : s->make(s->user, &writer, err);
    }
    tr__text_cache_drop(&writer);
    return status;
}

tr_status tr__text_once(const tr_text_once *s, tr_error *err) {
    double now = tr__seconds();
    waiting w = {now, now, 0, false};
    bool done = tr__text_cache_find(s->cache);
    tr_status status = TR_OK;
    while (!done && status == TR_OK) {
        status = make_ids(s, tr__seconds() > w.moved + stalled_after, &done, err);
        if (!done && status == TR_OK) {
            status = tr__text_go_on(s->options, err);
            wait_a_little(s, &w);
            done = tr__text_cache_find(s->cache);
        }
    }
    return status;
}

// Is there room on the disk for the checkpoints of a run? Asked before its first step.
#include "base/checked.h"
#include "base/text.h"
#include "train/engine.h"

#include <tranche/checkpoint.h>

#include <inttypes.h>
#include <sys/statvfs.h>

// The tensors' bytes: by far most of a checkpoint.
static int64_t bytes_of_one(const tr_engine *engine) {
    const tr_plan *plan = engine->plan;
    int64_t parameters = tr_plan_parameters(plan), bytes = 0;
    int64_t each = (1 + tr__plan_states(plan)) * (int64_t)sizeof(float);
    if (engine->settings->checkpoint_dtype != TR_F32) { // beside those of f32
        each += (int64_t)tr_dtype_bytes(engine->settings->checkpoint_dtype);
    }
    if (!tr__mul_i64(parameters, each, &bytes)) {
        return INT64_MAX;
    }
    for (size_t i = 0; i < plan->state_count; i++) {
        bytes += tr_tensor_bytes(plan->states[i].desc);
    }
    return bytes;
}

// How many of this run's are there already.
static int64_t count_there(const tr_engine *engine) {
    tr_checkpoint_entry *entries = NULL;
    size_t count = 0;
    int64_t own = 0;
    tr_checkpoint_list(engine->settings->out, &entries, &count, NULL);
    for (size_t i = 0; !engine->anew && i < count; i++) {
        own += entries[i].complete && entries[i].step <= engine->own_until;
    }
    tr_checkpoint_list_destroy(entries, count);
    return own;
}

// The most that this run may yet write.
static int64_t count_to_come(const tr_engine *engine) {
    const tr_settings *s = engine->settings;
    int64_t left = tr__max_i64(s->steps - engine->count.step, 0);
    if (s->checkpoint_minutes > 0 || s->checkpoint_best) {
        return left;
    }
    int64_t periodic = s->checkpoint_every > 0 ? left / s->checkpoint_every : 0;
    return tr__min_i64(left, periodic + 1);
}

// How many more than now are there at a time: an old one goes only after the new one is
// complete, and the best may be one more.
static int64_t count_more(const tr_engine *engine) {
    const tr_settings *s = engine->settings;
    int64_t there = count_there(engine), come = count_to_come(engine);
    int64_t keep = s->keep < 1 ? INT64_MAX / 2 : s->keep;
    int64_t most = tr__min_i64(there + come, keep + 1 + s->checkpoint_best);
    return s->keep < 1 ? tr__min_i64(come, 1) : tr__max_i64(most - there, 0);
}

tr_status tr__engine_check_room(const tr_engine *engine, tr_error *err) {
    const tr_settings *s = engine->settings;
    struct statvfs disk;
    int64_t one = bytes_of_one(engine), more = count_more(engine), need = 0, have = 0;
    char needs[32], has[32], each[32];
    if (statvfs(s->out, &disk) != 0 || disk.f_blocks == 0) {
        return TR_OK; // a file system that does not tell
    }
    bool fits = tr__mul_i64((int64_t)disk.f_bavail, (int64_t)disk.f_frsize, &have);
    need = tr__mul_i64(one, more, &need) ? need : INT64_MAX;
    if (!fits || need <= have) {
        return TR_OK;
    }
    tr__print_size(needs, sizeof needs, need);
    tr__print_size(has, sizeof has, have);
    tr__print_size(each, sizeof each, one);
    return tr_fail(err, TR_IO,
                   "%s: needs %s of disk for %" PRId64 " more checkpoint%s of %s each, "
                   "and has %s: free some, choose another \"out\" (--out), or lower "
                   "checkpoint.keep (now %d; one more is there while a new one is "
                   "written%s)",
                   s->out, needs, more, tr__plural(more), each, has, s->keep,
                   s->checkpoint_best ? ", and the best" : "");
}

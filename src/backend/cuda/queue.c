// A queue is a stream, and a ring of events that its steps have recorded.
#include "backend/cuda/backend.h"
#include "backend/cuda/driver.h"
#include "base/clock.h"
#include "base/memory.h"

#include <stdlib.h>

enum { EVENTS = 4096 };

struct tr_device_queue {
    void *stream;
    void
        *event[EVENTS]; // of step n at n % EVENTS; [0] too is recorded at the beginning
    int64_t marks;
    int64_t copied; // bytes
    void *scratch;  // of libraries
    int64_t scratch_bytes;
    int error; // CUDA's first
    // What was put in last, up to the first error: a kernel, and whose work it is of.
    // NULL: nothing yet; nobody's.
    const char *what, *subject;
    tr_status failed; // of the first launch that did
    // Steps watched_from + 1 .. are noted, those up to `noted` have been.
    tr_task_span *spans;
    int64_t watched_from, count, noted;
    double origin; // tr__seconds() when step watched_from was done
};

static void note_error(tr_device_queue *q, int error) {
    q->error = q->error ? q->error : error;
}

void tr__cuda_queue_note(tr_device_queue *q, const char *what, int error) {
    if (q && q->error == 0) {
        q->error = error;
        q->what = what;
    }
}

void *tr__cuda_scratch(const tr_device_queue *q, int64_t *bytes) {
    *bytes = q ? q->scratch_bytes : 0;
    return q ? q->scratch : NULL;
}

void *tr__cuda_stream(const tr_device_queue *q) {
    return q ? q->stream : NULL;
}

static void destroy(tr_device_queue *q) {
    const tr_cuda_driver *driver = tr__cuda_driver();
    if (!q) {
        return;
    }
    if (q->stream) {
        driver->stream_wait(q->stream);
    }
    for (int i = 0; i < EVENTS && q->event[i]; i++) {
        driver->event_destroy(q->event[i]);
    }
    if (q->stream) {
        driver->stream_destroy(q->stream);
    }
    tr__free(q);
}

static int open(tr_device_queue *q) {
    const tr_cuda_driver *driver = tr__cuda_driver();
    int error = driver->stream_create(&q->stream);
    for (int i = 0; i < EVENTS && error == 0; i++) {
        error = driver->event_create(&q->event[i]);
    }
    return error == 0 ? driver->event_record(q->event[0], q->stream) : error;
}

static tr_status create(int workers, tr_device_queue **out, tr_error *err) {
    tr_device_queue *q = tr__calloc(1, sizeof *q);
    (void)workers;
    *out = NULL;
    if (!q) {
        return tr_fail(err, TR_MEMORY, "no memory for a queue of the device");
    }
    int error = open(q);
    if (error != 0) {
        destroy(q);
        return tr_fail(err, TR_INTERNAL, "the device refuses a queue: %s",
                       tr__cuda_driver()->error_text(error));
    }
    *out = q;
    return TR_OK;
}

static void launch(tr_device_queue *q, const tr_device_work *work) {
    tr_status failed = TR_OK;
    tr_launch mine = *work->launch;
    mine.queue = q;
    mine.failed = &failed;
    if (q->failed == TR_OK && q->error == 0) {
        q->subject = work->subject ? work->subject : work->kernel->name;
    }
    work->kernel->launch(work->desc, work->state, &mine);
    q->failed = q->failed != TR_OK ? q->failed : failed;
}

static void copy(tr_device_queue *q, const void *from, void *to, int64_t bytes) {
    int error = tr__cuda_driver()->copy(to, from, (size_t)bytes, q->stream);
    tr__cuda_queue_note(q, "a copy", error);
    q->copied += bytes;
}

static int64_t mark(tr_device_queue *q) {
    q->marks++;
    note_error(q,
               tr__cuda_driver()->event_record(q->event[q->marks % EVENTS], q->stream));
    return q->marks;
}

static int64_t newest(const tr_device_queue *q) {
    return q->marks;
}

static int64_t copied(const tr_device_queue *q) {
    return q->copied;
}

// The event of a step; of one that is long done, that of a later one.
static void *event_of(const tr_device_queue *q, int64_t ticket) {
    int64_t oldest = q->marks - EVENTS + 1;
    ticket = ticket > q->marks ? q->marks : ticket < oldest ? oldest : ticket;
    return q->event[ticket > 0 ? ticket % EVENTS : 0];
}

static void follow(tr_device_queue *q, tr_device_queue *other, int64_t ticket) {
    note_error(q, tr__cuda_driver()->event_follow(event_of(other, ticket), q->stream));
}

// Times of steps that are done, from the event before each to its own.
static void note_spans(tr_device_queue *q, int64_t done) {
    int64_t last = q->watched_from + q->count;
    for (; q->spans && q->noted < done && q->noted < last; q->noted++) {
        int64_t at = q->noted - q->watched_from;
        double begin = at > 0 ? q->spans[at - 1].end : q->origin, seconds = 0;
        note_error(q, tr__cuda_driver()->event_seconds(
                          event_of(q, q->noted), event_of(q, q->noted + 1), &seconds));
        q->spans[at] = (tr_task_span){begin, begin + seconds};
    }
}

// CUDA tells of a kernel that failed at some later call, and from then on at each:
// which kernel it was, it tells only where each launch waits for its end.
static tr_status fail_for_good(const tr_device_queue *q, const char *of,
                               tr_error *err) {
    bool exact = getenv("CUDA_LAUNCH_BLOCKING") != NULL;
    return tr_fail(err, TR_INTERNAL, "the device failed in %s%s%s%s: %s%s",
                   q->what ? q->what : "a copy", of, q->subject ? q->subject : "",
                   exact ? "" : " or in what was launched before it",
                   tr__cuda_driver()->error_text(q->error),
                   exact ? ""
                         : "; start with CUDA_LAUNCH_BLOCKING=1 in the environment "
                           "to learn which kernel it is");
}

// A function of the program's that could not do its work has broken nothing: it is told
// once, and the queue goes on.
static tr_status fail_launch(tr_device_queue *q, tr_error *err) {
    tr_status failed = q->failed;
    q->failed = failed == TR_DATA ? TR_OK : failed;
    return tr__backend_fail_launch(failed, q->subject, err);
}

static tr_status fail(tr_device_queue *q, tr_error *err) {
    const tr_cuda_driver *driver = tr__cuda_driver();
    const char *of = q->subject ? " of " : "";
    if (q->error == 0) {
        return fail_launch(q, err);
    }
    return driver->stream_wait(q->stream) != 0
               ? fail_for_good(q, of, err)
               : tr_fail(err, TR_INTERNAL, "the device refuses %s%s%s: %s",
                         q->what ? q->what : "an event", of,
                         q->subject ? q->subject : "", driver->error_text(q->error));
}

static tr_status wait(tr_device_queue *q, int64_t ticket, tr_error *err) {
    note_error(q, tr__cuda_driver()->event_wait(event_of(q, ticket)));
    if (q->failed != TR_OK || q->error != 0) {
        return fail(q, err);
    }
    note_spans(q, ticket < q->marks ? ticket : q->marks);
    return TR_OK;
}

static tr_status look(tr_device_queue *q, int64_t ticket, bool *done, tr_error *err) {
    *done = false;
    if (q->error == 0) {
        note_error(q, tr__cuda_driver()->event_look(event_of(q, ticket), done));
    }
    return q->failed != TR_OK || q->error != 0 ? fail(q, err) : TR_OK;
}

static void watch(tr_device_queue *q, tr_task_span *spans, int64_t count) {
    note_error(q, tr__cuda_driver()->stream_wait(q->stream));
    q->spans = spans;
    q->watched_from = q->noted = q->marks;
    q->count = count;
    q->origin = tr__seconds();
}

// As many bytes wherever they begin: which algorithm a library takes depends on them.
static void lend(tr_device_queue *q, void *memory, int64_t bytes) {
    uintptr_t before = (uintptr_t)memory % TR_CUDA_SCRATCH_ALIGNMENT;
    q->scratch = (char *)memory + (TR_CUDA_SCRATCH_ALIGNMENT - before);
    q->scratch_bytes = bytes - TR_CUDA_SCRATCH_ALIGNMENT;
}

const tr_queue_table tr__cuda_queues = {
    .create = create,
    .destroy = destroy,
    .launch = launch,
    .lend = lend,
    .copy = copy,
    .follow = follow,
    .mark = mark,
    .newest = newest,
    .handle = tr__cuda_stream,
    .copied = copied,
    .wait = wait,
    .look = look,
    .watch = watch,
};

#include "sim/stages.h"

#include "base/memory.h"
#include "plan/flow/step.h"

#include <math.h>

typedef struct stages {
    tr_sim_walk *walks;
    size_t count;
    double *next;   // [count] when something comes next; infinite: nothing by itself
    size_t *moved;  // [count] stages that may go on
    bool *is_moved; // [count]
    size_t moved_count;
} stages;

static void note_moved(stages *s, size_t i) {
    if (!s->is_moved[i]) {
        s->is_moved[i] = true;
        s->moved[s->moved_count++] = i;
    }
}

// Lets time pass for a stage until then, which is no later than what it comes to next.
static void bring_to(tr_sim_walk *w, double now) {
    double step = now - w->now;
    if (step > 0) {
        tr__walk_pass(w, w->step >= 0 ? fmin(step, w->step) : step);
    }
}

// ---- meetings

// What a stage has at the front of a stream that is as far, and of the same stages.
static tr_walk_job *find_front(tr_sim_walk *w, const tr_tape_work *work,
                               tr_meeting meeting, tr_stream *on) {
    for (int i = 0; i < TR_STREAMS; i++) {
        tr_walk_job *front = tr__walk_front(w, (tr_stream)i);
        if (tr__stream_exchanges((tr_stream)i) && front && front->meeting == meeting &&
            tr__tape_meet(tr__walk_work(w, front), work)) {
            *on = (tr_stream)i;
            return front;
        }
    }
    return NULL;
}

static bool all_are(stages *s, const tr_tape_work *work, tr_meeting meeting) {
    tr_stream on;
    bool are = true;
    for (size_t i = 0; i < s->count && are; i++) {
        are = !tr__tape_needs(work, s->walks[i].tape->stage) ||
              find_front(&s->walks[i], work, meeting, &on);
    }
    return are;
}

// A time that is not certain: its mean, and its variance.
typedef struct expected {
    double mean, variance;
} expected;

static double density(double x) {
    return exp(-x * x / 2) / sqrt(2 * acos(-1));
}

static double below(double x) {
    return erfc(-x / sqrt(2)) / 2;
}

// The later of two normal values (Clark, Operations Research 9(2), 1961).
static expected later_of(expected a, expected b) {
    double apart = sqrt(a.variance + b.variance);
    if (apart == 0) {
        return a.mean >= b.mean ? a : b;
    }
    double d = a.mean - b.mean, x = d / apart, p = below(x), q = below(-x);
    double mean = d * p + apart * density(x); // from b's mean on
    double square = (d * d + a.variance) * p + b.variance * q + d * apart * density(x);
    return (expected){b.mean + mean, fmax(0, square - mean * mean)};
}

// When the slowest rank of all stages that meet is expected.
static double expected_at(stages *s, const tr_tape_work *work) {
    expected all = {-INFINITY, 0};
    tr_stream on;
    for (size_t i = 0; i < s->count; i++) {
        tr_sim_walk *w = &s->walks[i];
        if (tr__tape_needs(work, w->tape->stage)) {
            const tr_walk_job *job = find_front(w, work, TR_MEETS_LATER, &on);
            expected own = {job->expected, job->apart};
            all = isinf(all.mean) ? own : later_of(all, own);
        }
    }
    return all.mean;
}

// The last has come to it: it begins. Or it is done for the last: it ends.
static void meet(stages *s, const tr_tape_work *work, bool begins, double now) {
    double ready = begins ? expected_at(s, work) : 0;
    tr_meeting meeting = begins ? TR_MEETS_LATER : TR_MEETS_NO_MORE;
    for (size_t i = 0; i < s->count; i++) {
        tr_sim_walk *w = &s->walks[i];
        tr_stream on;
        if (!tr__tape_needs(work, w->tape->stage)) {
            continue;
        }
        bring_to(w, now);
        tr_walk_job *job = find_front(w, work, meeting, &on);
        if (begins) {
            job->meeting = TR_MEETS;
            job->begin = now;
            job->ready = ready > now ? ready : 0;
        } else {
            tr__walk_finish(w, on);
        }
        tr__walk_look_ahead(w);
        note_moved(s, i);
    }
}

// Does what this stage has come to change anything for others?
static void look_for_meeting(stages *s, size_t i, tr_stream on) {
    tr_sim_walk *w = &s->walks[i];
    const tr_walk_job *front = tr__walk_front(w, on);
    if (!front ||
        (front->meeting != TR_MEETS_LATER && front->meeting != TR_MEETS_NO_MORE)) {
        return;
    }
    tr_tape_work work = *tr__walk_work(w, front);
    tr_meeting meeting = front->meeting;
    if (all_are(s, &work, meeting)) {
        meet(s, &work, meeting == TR_MEETS_LATER, w->now);
    }
}

// ---- time

// A stage goes on, and what it has come to may let others go on: no time passes.
static void go_on(stages *s, size_t first) {
    note_moved(s, first);
    while (s->moved_count > 0) {
        size_t i = s->moved[--s->moved_count];
        tr_sim_walk *w = &s->walks[i];
        s->is_moved[i] = false;
        tr__walk_go_on(w);
        for (int e = 0; e < TR_STREAMS; e++) {
            if (tr__stream_exchanges((tr_stream)e)) {
                look_for_meeting(s, i, (tr_stream)e);
            }
        }
        s->next[i] = w->ended || w->step < 0 ? INFINITY : w->now + w->step;
    }
}

// ---- circles

static tr_walk_job *waiting_front(tr_sim_walk *w) {
    tr_walk_job *front = NULL;
    for (int e = 0; e < TR_STREAMS; e++) {
        bool waits = front && front->meeting == TR_MEETS_LATER;
        front = waits || !tr__stream_exchanges((tr_stream)e)
                    ? front
                    : tr__walk_front(w, (tr_stream)e);
    }
    return front;
}

static const char *word_of(tr_sim_walk *w, long long *step) {
    const tr_walk_job *job = w->ended ? NULL : waiting_front(w);
    *step = job ? w->tape->steps[job->at].step : -1;
    return job ? tr__verb_name((tr_verb)w->tape->steps[job->at].verb) : "the end";
}

// A stage that has not come to what another one waits for.
static bool is_awaited(stages *s, const tr_tape_work *work, size_t k) {
    tr_stream on;
    return tr__tape_needs(work, s->walks[k].tape->stage) &&
           !find_front(&s->walks[k], work, TR_MEETS_LATER, &on);
}

static tr_status fail_circle(stages *s, tr_error *err) {
    size_t i = 0, k = 0;
    long long own, others;
    while (s->walks[i].ended) {
        i++;
    }
    tr_sim_walk *w = &s->walks[i];
    const tr_walk_job *job = waiting_front(w);
    while (job && k + 1 < s->count && !is_awaited(s, tr__walk_work(w, job), k)) {
        k++;
    }
    const char *a = word_of(w, &own), *b = word_of(&s->walks[k], &others);
    return tr_fail(err, TR_INTERNAL,
                   "the stages of the pipeline wait for each other for ever: stage "
                   "%lld at step %lld (%s) for stage %lld, which is at step %lld (%s)",
                   (long long)w->tape->stage, own, a,
                   (long long)s->walks[k].tape->stage, others, b);
}

// ----

static size_t find_next(const stages *s) {
    size_t next = 0;
    for (size_t i = 1; i < s->count; i++) {
        next = s->next[i] < s->next[next] ? i : next;
    }
    return next;
}

static bool have_ended(const stages *s) {
    bool ended = true;
    for (size_t i = 0; i < s->count; i++) {
        ended = ended && s->walks[i].ended;
    }
    return ended;
}

static tr_status walk_all(stages *s, tr_error *err) {
    for (size_t i = 0; i < s->count; i++) {
        s->next[i] = INFINITY;
    }
    for (size_t i = 0; i < s->count; i++) {
        go_on(s, i);
    }
    size_t k = find_next(s);
    while (!isinf(s->next[k])) {
        tr__walk_pass(&s->walks[k], s->walks[k].step);
        go_on(s, k);
        k = find_next(s);
    }
    return have_ended(s) ? TR_OK : fail_circle(s, err);
}

tr_status tr__walk_stages(tr_sim_walk *walks, size_t count, tr_error *err) {
    stages s = {.walks = walks, .count = count};
    s.next = tr__calloc(count, sizeof *s.next);
    s.moved = tr__calloc(count, sizeof *s.moved);
    s.is_moved = tr__calloc(count, sizeof *s.is_moved);
    tr_status status = s.next && s.moved && s.is_moved ? walk_all(&s, err) : TR_MEMORY;
    for (size_t i = 0; i < count; i++) {
        status = status == TR_OK ? walks[i].status : status;
    }
    tr__free(s.next);
    tr__free(s.moved);
    tr__free(s.is_moved);
    return status == TR_MEMORY ? tr_fail(err, TR_MEMORY, "no memory for a simulation")
                               : status;
}

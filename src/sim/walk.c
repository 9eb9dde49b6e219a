#include "sim/walk.h"

#include "base/memory.h"

#include <math.h>

#define LEAST_SPEED 0.1 // of computing, whatever goes on beside it

static const tr_tape_step *step_at(const tr_sim_walk *w, int32_t at) {
    return &w->tape->steps[at];
}

const tr_tape_work *tr__walk_work(const tr_sim_walk *w, const tr_walk_job *job) {
    return &w->tape->works[step_at(w, job->at)->work];
}

tr_walk_job *tr__walk_front(tr_sim_walk *w, tr_stream on) {
    tr_walk_stream *s = &w->streams[on];
    return s->count > 0 ? &s->queue[s->first] : NULL;
}

static void add_span(tr_sim_walk *w, int32_t at, tr_stream on, double begin) {
    const tr_tape_step *step = step_at(w, at);
    if (!w->keeps_spans || w->status != TR_OK) {
        return;
    }
    if (!tr__grow((void **)&w->spans, &w->span_capacity, w->span_count + 1,
                  sizeof *w->spans)) {
        w->status = TR_MEMORY;
        return;
    }
    w->spans[w->span_count++] = (tr_span){.step = step->step,
                                          .verb = (tr_verb)step->verb,
                                          .subject = (tr_subject)step->subject,
                                          .unit = step->unit,
                                          .micro = step->micro,
                                          .of_micro_batch = step->of_micro_batch,
                                          .stream = on,
                                          .begin = begin,
                                          .end = w->now};
}

// ---- what goes on beside each other

void tr__walk_finish(tr_sim_walk *w, tr_stream on) {
    tr_walk_stream *s = &w->streams[on];
    const tr_walk_job *front = &s->queue[s->first];
    const tr_tape_work *work = tr__walk_work(w, front);
    double took = w->now - front->begin;
    add_span(w, front->at, on, front->begin);
    w->verb_seconds[step_at(w, front->at)->verb] += took;
    s->busy += took;
    s->variance = front->variance;
    s->together = !work->meets        ? 1U << TR_WALK_RANKS
                  : work->members > 1 ? 1U << TR_WALK_RANKS | 1U << TR_WALK_STAGES
                                      : 1U << TR_WALK_STAGES;
    s->done++;
    s->first = (s->first + 1) % TR_WALK_QUEUE;
    s->count--;
    s->queue[s->first].begin = w->now;
}

// Does it wait for slower ranks?
static bool is_late(const tr_sim_walk *w, const tr_walk_stream *s) {
    return s->count > 0 && s->queue[s->first].ready > w->now;
}

// Does its front move nothing, because another stage has not come to it?
static bool is_early(const tr_walk_stream *s) {
    return s->count > 0 && s->queue[s->first].meeting == TR_MEETS_LATER;
}

// Is its front at work?
static bool is_busy(const tr_sim_walk *w, const tr_walk_stream *s) {
    tr_meeting meeting = s->queue[s->first].meeting;
    return s->count > 0 && !is_late(w, s) &&
           (meeting == TR_MEETS_NOBODY || meeting == TR_MEETS);
}

// The speed of computing beside what is under way.
static double compute_speed(const tr_sim_walk *w) {
    double speed = 1;
    for (int i = 0; i < TR_STREAMS; i++) {
        const tr_walk_stream *s = &w->streams[i];
        speed -= is_busy(w, s) ? s->interference : 0;
    }
    return speed > LEAST_SPEED ? speed : LEAST_SPEED;
}

static tr_walk_need need_of(const tr_sim_walk *w, const tr_walk_stream *s,
                            bool beside) {
    const tr_walk_job *front = &s->queue[s->first];
    tr_walk_need n = {-1, beside ? 1 - s->interference : 1, is_late(w, s)};
    if (n.late) {
        n.seconds = front->ready - w->now;
    } else if (is_busy(w, s)) {
        n.seconds = front->left / n.speed;
    }
    return n;
}

// The front of a stream goes on for `step` seconds.
static void pass_job(tr_sim_walk *w, tr_stream on, double step, const tr_walk_need *n) {
    tr_walk_job *front = &w->streams[on].queue[w->streams[on].first];
    if (n->late) {
        front->ready = n->seconds <= step ? 0 : front->ready;
        front->begin = w->now;
        return;
    }
    front->left -= step * n->speed;
    if (n->seconds > step) {
        return;
    }
    if (front->meeting == TR_MEETS) {
        front->meeting = TR_MEETS_NO_MORE;
    } else {
        tr__walk_finish(w, on);
    }
}

// Until something is done, or ready: the front of a stream, or what is computed.
void tr__walk_look_ahead(tr_sim_walk *w) {
    w->speed = w->computes ? compute_speed(w) : 1;
    w->step = w->computes ? w->left / w->speed : -1;
    for (int i = 0; i < TR_STREAMS; i++) {
        w->needs[i] = need_of(w, &w->streams[i], w->computes);
        double seconds = w->needs[i].seconds;
        w->step =
            seconds >= 0 && (w->step < 0 || seconds < w->step) ? seconds : w->step;
    }
}

static void pass_compute(tr_sim_walk *w, double step) {
    bool ends = w->left / w->speed <= step;
    double before = w->left;
    w->left = ends ? 0 : w->left - step * w->speed;
    double slowed = step - (before - w->left);
    w->result.slowed_seconds += slowed > 0 ? slowed : 0;
}

// Seconds in which nothing is computed, by what is waited for.
static double *spent_on(tr_sim_walk *w) {
    tr_walk_stream *s = &w->streams[w->awaited];
    return is_late(w, s) ? &w->result.slower_seconds
           : is_early(s) ? &w->result.bubble_seconds
                         : &s->exposed;
}

void tr__walk_pass(tr_sim_walk *w, double step) {
    if (w->ended) { // until other stages have
        w->now += step;
        return;
    }
    double *spent = w->computes ? NULL : spent_on(w);
    w->now += step;
    if (spent) {
        *spent += step;
    } else {
        pass_compute(w, step);
    }
    for (int i = 0; i < TR_STREAMS; i++) {
        if (w->needs[i].seconds >= 0) {
            pass_job(w, (tr_stream)i, step, &w->needs[i]);
        }
    }
}

// ---- the walk

static bool is_done(const tr_sim_walk *w) {
    const tr_walk_stream *s = &w->streams[w->awaited];
    return s->done >= w->wanted || s->count == 0;
}

// From now on the walk waits until `done` steps of a stream are done, or nothing is
// left on it.
static void wait_for(tr_sim_walk *w, tr_stream on, int64_t done) {
    w->awaited = on;
    w->wanted = done;
    w->waits = !is_done(w);
}

// Ranks that have waited are together.
static void end_wait(tr_sim_walk *w) {
    const tr_walk_stream *s = &w->streams[w->awaited];
    w->waits = false;
    if (!tr__stream_exchanges(w->awaited)) {
        return;
    }
    for (int g = 0; g < TR_WALK_GROUPS; g++) {
        if (s->together >> g & 1) {
            w->together[g] = fmax(w->together[g], s->variance);
        }
    }
}

static double since_together(const tr_sim_walk *w, int group) {
    return fmax(0, w->variance - w->together[group]);
}

static void add_job(tr_sim_walk *w, const tr_tape_step *step) {
    const tr_tape_work *work = &w->tape->works[step->work];
    tr_walk_stream *s = &w->streams[step->stream];
    tr_walk_job job = {.at = (int32_t)w->at,
                       .left = work->seconds,
                       .begin = w->now,
                       .variance = w->variance};
    if (step->kind == TR_TAPE_EXCHANGE && w->apart > 0) {
        job.ready = w->now + tr__reached_slowest(work->members) * w->apart;
    }
    if (work->meets) { // stages.c says when it is ready
        job.meeting = TR_MEETS_LATER;
        job.expected = fmax(w->now, job.ready);
        job.apart = since_together(w, TR_WALK_STAGES);
        job.ready = 0;
    }
    s->queue[(s->first + s->count++) % TR_WALK_QUEUE] = job;
    w->result.gather_bytes += work->gathered;
    w->result.reduce_bytes += work->reduced;
    w->result.between_bytes += work->between;
    w->result.copied_bytes += work->copied;
    w->result.stored_bytes += work->stored;
}

static void begin_compute(tr_sim_walk *w, const tr_tape_step *step) {
    const tr_tape_work *work = &w->tape->works[step->work];
    w->begin = w->now;
    w->left = work->seconds;
    w->computes = w->left > 0;
    w->variance += work->variance;
    w->result.product_seconds += work->products;
    w->result.attention_seconds += work->attention;
    w->result.compute_seconds += work->seconds;
    w->result.flops += work->flops;
    w->result.model_flops += work->model_flops;
    w->result.update_seconds += step->verb == TR_VERB_update ? work->seconds : 0;
}

static void end_compute(tr_sim_walk *w, const tr_tape_step *step) {
    w->verb_seconds[step->verb] += w->now - w->begin;
    add_span(w, (int32_t)w->at, (tr_stream)step->stream, w->begin);
}

// What a step goes through: waits for all streams, for each as it says, for room on its
// own; then it begins, and may be waited for itself.
enum {
    PHASE_ALL,
    PHASE_EACH = PHASE_ALL + TR_STREAMS,
    PHASE_ROOM = PHASE_EACH + TR_STREAMS,
    PHASE_BEGIN,
    PHASE_END,
    PHASES
};

static void enter(tr_sim_walk *w, const tr_tape_step *step) {
    tr_stream on = (tr_stream)step->stream;
    const tr_walk_stream *s = &w->streams[on];
    bool computes = step->kind == TR_TAPE_COMPUTE;
    if (w->phase < PHASE_EACH) {
        if (step->waits_for_all) {
            wait_for(w, (tr_stream)(w->phase - PHASE_ALL), INT64_MAX);
        }
    } else if (w->phase < PHASE_ROOM) {
        tr_stream each = (tr_stream)(w->phase - PHASE_EACH);
        wait_for(w, each, step->wait[each]);
    } else if (w->phase == PHASE_ROOM) {
        w->verb_steps[step->verb]++;
        w->apart = sqrt(since_together(w, TR_WALK_RANKS));
        if (!computes && s->count == TR_WALK_QUEUE) {
            wait_for(w, on, s->done + 1);
        }
    } else if (w->phase == PHASE_BEGIN && computes) {
        begin_compute(w, step);
    } else if (w->phase == PHASE_BEGIN) {
        add_job(w, step);
    } else if (computes) {
        end_compute(w, step);
    } else if (step->kind == TR_TAPE_EXCHANGE && on == TR_STREAM_DATA) {
        wait_for(w, on, INT64_MAX); // the walk waits for what it exchanges itself
    }
}

// After the last step, the walk waits for what is under way on each stream.
static void enter_end(tr_sim_walk *w) {
    if (w->phase < TR_STREAMS) {
        wait_for(w, (tr_stream)w->phase, INT64_MAX);
    } else {
        w->ended = true;
    }
}

void tr__walk_go_on(tr_sim_walk *w) {
    if (w->waits && is_done(w)) {
        end_wait(w);
    }
    w->computes = w->computes && w->left > 0;
    while (!w->waits && !w->computes && !w->ended) {
        if (w->phase == PHASES) {
            w->phase = 0;
            w->at++;
        }
        if (w->at == w->tape->count) {
            enter_end(w);
        } else {
            enter(w, &w->tape->steps[w->at]);
        }
        w->phase++;
    }
    tr__walk_look_ahead(w);
}

void tr__walk_begin(tr_sim_walk *w, const tr_tape *tape, bool keeps_spans) {
    const tr_machine *machine = tape->share.machine;
    *w = (tr_sim_walk){.tape = tape, .keeps_spans = keeps_spans};
    for (int i = 0; i < TR_STREAMS; i++) {
        w->streams[i].interference = tr__stream_interference(machine, (tr_stream)i);
    }
}

void tr__walk_clear(tr_sim_walk *w) {
    tr__free(w->spans);
    w->spans = NULL;
}

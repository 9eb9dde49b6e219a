// What each ZeRO stage, each way of offloading and each wave takes of a run's step.
#include "plan/flow/request.h"
#include "run/run.h"

#include <math.h>

// Where the optimizer's states and the parameters live.
static const struct {
    tr_space optimizer, params;
} offloads[] = {
    {TR_SPACE_DEVICE, TR_SPACE_DEVICE}, {TR_SPACE_HOST, TR_SPACE_DEVICE},
    {TR_SPACE_HOST, TR_SPACE_HOST},     {TR_SPACE_NVME, TR_SPACE_DEVICE},
    {TR_SPACE_NVME, TR_SPACE_NVME},
};

enum { OFFLOADS = sizeof offloads / sizeof *offloads, WAVES = 3 };

// A row, and the words that it points to.
typedef struct row {
    tr_compared told;
    tr_error why;
} row;

// The run, and what its plans are for.
typedef struct comparison {
    const tr_plan_request *run;
    const tr_machine *machine; // NULL: this one
    tr_room room;
    int64_t own_wave; // of the run's own plan; 0: there is none
} comparison;

static tr_plan_request request_of(const tr_plan_request *run, const tr_compared *of) {
    tr_plan_request r = *run;
    r.stage = of->stage;
    r.wave = of->wave;
    r.optimizer_placement = of->optimizer;
    r.param_placement = of->parameters;
    r.grad_placement = TR_SPACE_DEVICE; // where the update is
    r.optimizer_stays = 0;
    r.update_elements = 0;
    r.update_slots = 0;
    return r;
}

// The budget that a plan is over; NULL: it fits, or nobody knows.
static const char *over(const tr_room *room, int64_t process,
                        const int64_t total[TR_SPACES]) {
    int64_t device = total[TR_SPACE_DEVICE];
    int64_t host = total[TR_SPACE_HOST] + process;
    return device > room->bytes[TR_SPACE_DEVICE] ? "over the device's memory"
           : host > room->bytes[TR_SPACE_HOST]   ? "over the host's memory"
           : room->one_pool && device + host > room->bytes[TR_ROOM_TOTAL]
               ? "over the machine's memory"
           : total[TR_SPACE_NVME] > room->bytes[TR_SPACE_NVME] ? "over the disk"
                                                               : NULL;
}

static tr_status simulate(const tr_plan *plan, const tr_machine *machine,
                          double *seconds, tr_error *err) {
    tr_simulated *simulated = NULL;
    tr_status status = tr_simulate(plan, machine, &simulated, err);
    if (status == TR_OK) {
        *seconds = tr_simulated_result(simulated)->seconds;
    }
    tr_simulated_destroy(simulated);
    return status;
}

static tr_status look_at(const comparison *c, const tr_plan *plan, row *to) {
    const tr_ledger *ledger = tr_plan_ledger(plan);
    tr_compared *told = &to->told;
    told->possible = true;
    for (int s = 0; s < TR_SPACES; s++) {
        told->bytes[s] = ledger->total[s];
    }
    told->over = over(&c->room, tr__request_process(&plan->request), told->bytes);
    tr_status status =
        c->machine ? simulate(plan, c->machine, &told->seconds, &to->why) : TR_OK;
    return status == TR_USAGE ? TR_OK : status;
}

// What no plan can be made for, or no time told of, is a row without figures.
static tr_status make_row(const comparison *c, row *to, tr_error *err) {
    const tr_plan_request *run = c->run;
    tr_compared *told = &to->told;
    tr_plan_request request = request_of(run, told);
    tr_plan *plan = NULL;
    told->size = sizeof *told;
    told->seconds = NAN;
    told->own = run->stage == told->stage && run->optimizer_stays == 0 &&
                run->optimizer_placement == request.optimizer_placement &&
                run->param_placement == request.param_placement &&
                (c->own_wave == 0 || c->own_wave == told->wave);
    tr_status status = tr_plan_make(&request, &plan, &to->why);
    if (status == TR_OK) {
        status = look_at(c, plan, to);
    }
    tr_plan_destroy(plan);
    return status == TR_OK || status == TR_USAGE
               ? TR_OK
               : tr_fail(err, status, "%s", to->why.message);
}

// One micro-batch at a time, what the run file says, and all at once, ascending.
static int find_waves(const tr_plan_request *run, int64_t waves[WAVES]) {
    int64_t all[WAVES] = {1, run->wave, run->accumulation_steps};
    int count = 0;
    for (int i = 0; i < WAVES; i++) {
        if (all[i] > 0 && (count == 0 || all[i] > waves[count - 1])) {
            waves[count++] = all[i];
        }
    }
    return count;
}

// The rows of one stage and offload. Waves that it does not take are left out, if it
// takes another one.
static tr_status make_rows(const comparison *c, int stage, int offload, row rows[WAVES],
                           int *count, tr_error *err) {
    int64_t waves[WAVES];
    int tried = find_waves(c->run, waves);
    tr_status status = TR_OK;
    *count = 0;
    for (int i = 0; i < tried && status == TR_OK; i++) {
        row made = {.told = {.stage = stage,
                             .optimizer = offloads[offload].optimizer,
                             .parameters = offloads[offload].params,
                             .wave = waves[i]}};
        status = make_row(c, &made, err);
        if (*count > 0 && !rows[*count - 1].told.possible) {
            --*count; // the reason of the last one counts
        }
        if (*count == 0 || made.told.possible) {
            rows[(*count)++] = made;
        }
    }
    return status;
}

// The wave that the run's own plan has.
static int64_t wave_of(const tr_plan_request *run) {
    tr_plan *plan = NULL;
    int64_t wave = 0;
    if (tr_plan_make(run, &plan, NULL) == TR_OK) {
        wave = plan->request.wave;
    }
    tr_plan_destroy(plan);
    return wave;
}

tr_status tr_run_compare(const tr_run *run, const tr_machine *machine,
                         void (*take)(void *user, const tr_compared *row), void *user,
                         tr_error *err) {
    static const char name[] = "tr_run_compare";
    tr_status status = tr__run_need_resolved(run, name, err);
    if (status != TR_OK) {
        return status;
    }
    if (!take) {
        return tr_fail(err, TR_USAGE, "%s: the function `take` is NULL", name);
    }
    const tr_plan_request *own = &run->request;
    const comparison c = {own, machine, tr__run_room(run, machine), wave_of(own)};
    // One rank has nothing to share out.
    int stages = tr_mesh_ranks(&own->mesh) > 1 ? 4 : 1;
    for (int i = 0; i < stages * OFFLOADS && status == TR_OK; i++) {
        row rows[WAVES];
        int count = 0;
        status = make_rows(&c, i / OFFLOADS, i % OFFLOADS, rows, &count, err);
        for (int r = 0; r < count && status == TR_OK; r++) {
            rows[r].told.why = rows[r].why.message;
            take(user, &rows[r].told);
        }
    }
    return status;
}

// tranche plan --compare: what each ZeRO stage, each way of offloading and each wave
// takes.
#include "cli/plan_compare.h"

#include "plan/plan.h"
#include "plan/print.h"
#include "run/run.h"

#include "base/json_writer.h"
#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

// Where the optimizer's state and the parameters live.
static const struct {
    const char *name;
    tr_space optimizer, params;
} offloads[] = {
    {"none", TR_SPACE_DEVICE, TR_SPACE_DEVICE},
    {"optimizer to host", TR_SPACE_HOST, TR_SPACE_DEVICE},
    {"optimizer, parameters to host", TR_SPACE_HOST, TR_SPACE_HOST},
    {"optimizer to NVMe", TR_SPACE_NVME, TR_SPACE_DEVICE},
    {"optimizer, parameters to NVMe", TR_SPACE_NVME, TR_SPACE_NVME},
};

enum { OFFLOADS = sizeof offloads / sizeof *offloads, WAVES = 3, WHY_TEXT = 256 };

typedef struct row {
    tr_status status; // TR_USAGE: there is no such plan
    int stage, offload;
    int64_t wave;
    tr_ledger ledger;
    double seconds;     // 0: not known
    char why[WHY_TEXT]; // there is no plan, or no time
    bool own;           // as the run file has it
} row;

// The run, and what its plans are for.
typedef struct comparison {
    const tr_plan_request *run;
    const tr_machine *machine; // NULL: this one
    tr_room room;
    int64_t own_wave; // of the run's own plan; 0: there is none
} comparison;

static tr_plan_request request_of(const tr_plan_request *run, const row *of) {
    tr_plan_request r = *run;
    r.stage = of->stage;
    r.wave = of->wave;
    r.optimizer_placement = offloads[of->offload].optimizer;
    r.param_placement = offloads[of->offload].params;
    r.grad_placement = TR_SPACE_DEVICE; // where the update is
    r.optimizer_stays = 0;
    r.update_elements = 0;
    r.update_slots = 0;
    return r;
}

static tr_status simulate(const tr_plan *plan, const tr_machine *machine, row *to,
                          tr_error *err) {
    tr_simulated *simulated = NULL;
    tr_status status = tr_simulate(plan, machine, &simulated, err);
    if (status == TR_OK) {
        to->seconds = tr_simulated_result(simulated)->seconds;
    }
    tr_simulated_destroy(simulated);
    return status;
}

// What no plan can be made for, or no time told of, is a row without figures.
static tr_status make_row(const comparison *c, row *to, tr_error *err) {
    const tr_plan_request *run = c->run;
    tr_plan_request request = request_of(run, to);
    tr_plan *plan = NULL;
    tr_error why = {0};
    to->own = run->stage == to->stage && run->optimizer_stays == 0 &&
              run->optimizer_placement == request.optimizer_placement &&
              run->param_placement == request.param_placement &&
              (c->own_wave == 0 || c->own_wave == to->wave);
    to->status = tr_plan_make(&request, &plan, &why);
    if (to->status == TR_OK) {
        to->ledger = *tr_plan_ledger(plan);
    }
    if (to->status == TR_OK && c->machine) {
        tr_status timed = simulate(plan, c->machine, to, &why);
        to->status = timed == TR_USAGE ? TR_OK : timed;
    }
    tr_plan_destroy(plan);
    snprintf(to->why, sizeof to->why, "%.*s", WHY_TEXT - 1, why.message);
    return to->status == TR_OK || to->status == TR_USAGE
               ? TR_OK
               : tr_fail(err, to->status, "%s", why.message);
}

// The budget that the row's plan is over; NULL: it fits, or nobody knows.
static const char *over(const comparison *c, const row *of) {
    const int64_t *total = of->ledger.total;
    bool one = c->room.one_pool;
    int64_t device = total[TR_SPACE_DEVICE];
    int64_t host = total[TR_SPACE_HOST] + TR_PROCESS_BYTES;
    if (of->status != TR_OK) {
        return NULL;
    }
    return device > c->room.bytes[TR_SPACE_DEVICE] ? "over the device's memory"
           : host > c->room.bytes[TR_SPACE_HOST]   ? "over the host's memory"
           : one && device + host > c->room.bytes[TR_ROOM_TOTAL]
               ? "over the machine's memory"
           : total[TR_SPACE_NVME] > c->room.bytes[TR_SPACE_NVME] ? "over the disk"
                                                                 : NULL;
}

static void print_head(const tr_plan_request *r, bool machine) {
    printf("a rank of %" PRId64 "; ", tr_mesh_ranks(&r->mesh));
    tr__plan_print_batch(r, stdout);
    printf("\n\n");
    printf("%-5s  %-30s %6s %11s %11s %11s", "stage", "offload", "wave", "device",
           "host", "NVMe");
    printf(machine ? "   s a step\n" : "\n");
}

static void print_row(const comparison *c, const row *of) {
    bool timed = c->machine != NULL;
    const char *too_much = over(c, of);
    printf("%-5d  %-30s", of->stage, offloads[of->offload].name);
    if (of->status != TR_OK) {
        printf("      - no such plan: %s\n", of->why);
        return;
    }
    printf(" %6" PRId64, of->wave);
    for (int s = 0; s < TR_SPACES; s++) {
        char size[32];
        int64_t bytes = of->ledger.total[s];
        tr__print_size(size, sizeof size, bytes);
        printf(" %11s", bytes > 0 ? size : "-");
    }
    if (timed && of->seconds > 0) {
        printf(" %10.4g", of->seconds);
    } else if (timed) {
        printf(" %10s", "-");
    }
    printf("%s%s%s%s%s\n", of->own ? "  <- the run file's" : "", too_much ? "  " : "",
           too_much ? too_much : "", of->why[0] ? "  no time: " : "", of->why);
}

static void put_text_or_null(tr_json_writer *w, const char *key, const char *text) {
    if (text && text[0]) {
        tr__json_put_text(w, key, text);
    } else {
        tr__json_key(w, key);
        tr__json_add_null(w);
    }
}

static void print_object(const comparison *c, const row *of, tr_json_writer *w) {
    static const char *const names[TR_SPACES] = {"none", "cpu", "nvme"};
    tr__json_line(w, 2);
    tr__json_open(w, '{');
    tr__json_put_integer(w, "stage", of->stage);
    tr__json_put_text(w, "offload_optimizer", names[offloads[of->offload].optimizer]);
    tr__json_put_text(w, "offload_param", names[offloads[of->offload].params]);
    tr__json_put_integer(w, "wave", of->wave);
    tr__json_put_bool(w, "run_file", of->own);
    if (of->status == TR_OK) {
        const int64_t *bytes = of->ledger.total;
        tr__json_put_open(w, "bytes", '{');
        tr__json_put_integer(w, "device", bytes[TR_SPACE_DEVICE]);
        tr__json_put_integer(w, "host", bytes[TR_SPACE_HOST]);
        tr__json_put_integer(w, "nvme", bytes[TR_SPACE_NVME]);
        tr__json_close(w, '}');
    } else {
        tr__json_key(w, "bytes");
        tr__json_add_null(w);
    }
    tr__json_put_real(w, "seconds", of->seconds > 0 ? of->seconds : NAN);
    put_text_or_null(w, "over", over(c, of));
    put_text_or_null(w, "why", of->why);
    tr__json_close(w, '}');
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
        row made = {.stage = stage, .offload = offload, .wave = waves[i]};
        status = make_row(c, &made, err);
        if (*count > 0 && rows[*count - 1].status != TR_OK) {
            --*count; // the reason of the last one counts
        }
        if (*count == 0 || made.status == TR_OK) {
            rows[(*count)++] = made;
        }
    }
    return status;
}

// The wave that the run's own plan has.
static int64_t wave_of(const tr_plan_request *run) {
    tr_plan *plan = NULL;
    tr_error why = {0};
    int64_t wave = 0;
    if (tr_plan_make(run, &plan, &why) == TR_OK) {
        wave = plan->request.wave;
    }
    tr_plan_destroy(plan);
    return wave;
}

static tr_status print_rows(const comparison *c, int i, tr_json_writer *w,
                            tr_error *err) {
    row rows[WAVES];
    int count = 0;
    tr_status status = make_rows(c, i / OFFLOADS, i % OFFLOADS, rows, &count, err);
    for (int r = 0; r < count && status == TR_OK; r++) {
        if (w) {
            print_object(c, &rows[r], w);
        } else {
            print_row(c, &rows[r]);
        }
    }
    return status;
}

tr_status cli_plan_compare(const tr_run *of, const tr_machine *machine, bool json,
                           tr_error *err) {
    const tr_plan_request *run = tr_run_plan_request(of);
    const comparison c = {run, machine, tr__run_room(of, machine), wave_of(run)};
    int stages =
        tr_mesh_ranks(&run->mesh) > 1 ? 4 : 1; // one rank has nothing to share out
    tr_status status = TR_OK;
    tr_json_writer w = tr__json_writer(stdout);
    if (json) {
        tr__json_open(&w, '{');
        tr__json_put_integer(&w, "ranks", tr_mesh_ranks(&run->mesh));
        tr__json_put_open(&w, "plans", '[');
    } else {
        print_head(run, machine != NULL);
    }
    for (int i = 0; i < stages * OFFLOADS && status == TR_OK; i++) {
        status = print_rows(&c, i, json ? &w : NULL, err);
    }
    if (json) {
        tr__json_line(&w, 0);
        tr__json_close(&w, ']');
        tr__json_close(&w, '}');
        putchar('\n');
    } else if (!machine) {
        printf("\n--machine FILE adds the predicted time of a step\n");
    }
    return status;
}

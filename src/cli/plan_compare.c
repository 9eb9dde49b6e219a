// tranche plan --compare: what each ZeRO stage and each way of offloading takes.
#include "cli/plan_compare.h"

#include "plan/plan.h"
#include "plan/print.h"

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

enum { OFFLOADS = sizeof offloads / sizeof *offloads };

typedef struct row {
    tr_status status; // TR_USAGE: there is no such plan
    tr_ledger ledger;
    double seconds; // 0: not known
    bool own;       // as the run file has it
} row;

static tr_plan_request request_of(const tr_plan_request *run, int stage, int offload) {
    tr_plan_request r = *run;
    r.stage = stage;
    r.optimizer_placement = offloads[offload].optimizer;
    r.param_placement = offloads[offload].params;
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
static tr_status make_row(const tr_plan_request *run, int stage, int offload,
                          const tr_machine *machine, row *to, tr_error *err) {
    tr_plan_request request = request_of(run, stage, offload);
    tr_plan *plan = NULL;
    tr_error why = {0};
    *to = (row){.own = run->stage == stage && run->optimizer_stays == 0 &&
                       run->optimizer_placement == request.optimizer_placement &&
                       run->param_placement == request.param_placement};
    to->status = tr_plan_make(&request, &plan, &why);
    if (to->status == TR_OK) {
        to->ledger = *tr_plan_ledger(plan);
    }
    if (to->status == TR_OK && machine) {
        tr_status timed = simulate(plan, machine, to, &why);
        to->status = timed == TR_USAGE ? TR_OK : timed;
    }
    tr_plan_destroy(plan);
    return to->status == TR_OK || to->status == TR_USAGE
               ? TR_OK
               : tr_fail(err, to->status, "%s", why.message);
}

static void print_head(const tr_plan_request *r, const char *machine) {
    printf("a rank of %" PRId64 "; ", tr_mesh_ranks(&r->mesh));
    tr__plan_print_batch(r, stdout);
    printf("\n\n");
    printf("%-5s  %-30s %11s %11s %11s", "stage", "offload", "device", "host", "NVMe");
    printf(machine ? "   s a step\n" : "\n");
}

static void print_row(const row *of, int stage, int offload, bool timed) {
    printf("%-5d  %-30s", stage, offloads[offload].name);
    for (int s = 0; s < TR_SPACES && of->status == TR_OK; s++) {
        char size[32];
        int64_t bytes = of->ledger.total[s];
        tr__print_size(size, sizeof size, bytes);
        printf(" %11s", bytes > 0 ? size : "-");
    }
    if (of->status != TR_OK) {
        printf(" no such plan");
    } else if (timed && of->seconds > 0) {
        printf(" %10.4g", of->seconds);
    } else if (timed) {
        printf(" %10s", "-");
    }
    printf("%s\n", of->own ? "  <- the run file's" : "");
}

static void print_object(const row *of, int stage, int offload, tr_json_writer *w) {
    static const char *const names[TR_SPACES] = {"none", "cpu", "nvme"};
    tr__json_line(w, 2);
    tr__json_open(w, '{');
    tr__json_put_integer(w, "stage", stage);
    tr__json_put_text(w, "offload_optimizer", names[offloads[offload].optimizer]);
    tr__json_put_text(w, "offload_param", names[offloads[offload].params]);
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
    tr__json_close(w, '}');
}

tr_status cli_plan_compare(const tr_plan_request *run, const tr_machine *machine,
                           const char *machine_name, bool json, tr_error *err) {
    int stages =
        tr_mesh_ranks(&run->mesh) > 1 ? 4 : 1; // one rank has nothing to share out
    tr_status status = TR_OK;
    tr_json_writer w = tr__json_writer(stdout);
    if (json) {
        tr__json_open(&w, '{');
        tr__json_put_integer(&w, "ranks", tr_mesh_ranks(&run->mesh));
        tr__json_put_open(&w, "plans", '[');
    } else {
        print_head(run, machine_name);
    }
    for (int i = 0; i < stages * OFFLOADS && status == TR_OK; i++) {
        row of;
        status = make_row(run, i / OFFLOADS, i % OFFLOADS, machine, &of, err);
        if (status == TR_OK && json) {
            print_object(&of, i / OFFLOADS, i % OFFLOADS, &w);
        } else if (status == TR_OK) {
            print_row(&of, i / OFFLOADS, i % OFFLOADS, machine != NULL);
        }
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

// What a run leaves to the planner: which keys, within which budgets, and what comes of
// it. Rank 0 chooses for all.
#include "backend/backend.h"
#include "base/checked.h"
#include "base/memory.h"
#include "base/text.h"
#include "base/wait.h"
#include "calibrate/calibrate.h"
#include "comm/alone.h"
#include "files/checkpoint/checkpoint.h"
#include "models/models.h"
#include "planner/planner.h"
#include "run/run.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

// ---- an earlier choice

static void name_of(const char *name, char dst[TR_STATE_NAME_MAX]) {
    snprintf(dst, TR_STATE_NAME_MAX, "planner.%s", name);
}

void tr__run_keep_choice(const tr_run *run, tr_state_numbers *numbers) {
    for (int d = 0; d < TR_DIMENSIONS; d++) {
        char name[TR_STATE_NAME_MAX];
        name_of(tr__plan_settings[d].name, name);
        if (run->chosen >> d & 1) {
            tr__state_numbers_set(numbers, name, (double)run->choice[d]);
        }
    }
}

// By its name of today, else by that of earlier versions.
static bool get_number(const tr_state *state, const tr_plan_setting *setting,
                       double *number) {
    char name[TR_STATE_NAME_MAX];
    name_of(setting->name, name);
    if (tr__state_numbers_get(&state->numbers, name, number)) {
        return true;
    }
    name_of(setting->old_name ? setting->old_name : setting->name, name);
    return tr__state_numbers_get(&state->numbers, name, number);
}

static bool get_choice(const tr_state *state, unsigned free, int64_t *value) {
    for (int d = 0; d < TR_DIMENSIONS; d++) {
        double number = 0;
        if (!(free >> d & 1)) {
            continue;
        }
        if (!get_number(state, &tr__plan_settings[d], &number)) {
            return false;
        }
        value[d] = (int64_t)number;
    }
    return true;
}

// What is wrong with the checkpoint is said where it is resumed from.
bool tr__run_find_kept(const tr_run *run, tr_state *state) {
    char folder[PATH_MAX] = "";
    const char *resume = run->settings.resume;
    if (run->settings.plan_only || strcmp(resume, "never") == 0) {
        return false;
    }
    if (strcmp(resume, "auto") != 0) {
        snprintf(folder, sizeof folder, "%s", resume);
    } else if (tr__checkpoint_find_latest(run->settings.out, TR_VERIFY_SIZES, NULL,
                                          folder, sizeof folder, NULL) != TR_OK) {
        return false;
    }
    return folder[0] && tr__checkpoint_verify(folder, TR_VERIFY_SIZES, NULL, state,
                                              NULL, NULL) == TR_OK;
}

// ---- what came of it

static tr_status take_choice(tr_run *run, const tr_planner_request *request,
                             tr_error *err) {
    tr_point point = tr__planner_start(request);
    tr_status status = TR_OK;
    for (int d = 0; d < TR_DIMENSIONS && status == TR_OK; d++) {
        if (run->chosen >> d & 1) {
            tr__plan_settings[d].set(&point, run->choice[d]);
            status = tr__run_record_setting(run, &tr__plan_settings[d], run->choice[d],
                                            TR_ORIGIN_AUTO, "planner", err);
        }
    }
    run->request = point.plan;
    run->settings.batches.multiple =
        point.plan.micro_batch * tr__data_ranks(&point.plan);
    if (status == TR_OK) {
        status = tr__run_resolve_nvme(run, err);
    }
    unsigned of_steps = 1u << TR_DIMENSION_micro_batch |
                        1u << TR_DIMENSION_tensor_ranks |
                        1u << TR_DIMENSION_pipeline_stages;
    if (status == TR_OK && run->chosen & of_steps) {
        status = tr__run_record_setting(
            run, &tr__plan_settings[TR_SETTING_ACCUMULATION_STEPS],
            point.plan.accumulation_steps, TR_ORIGIN_DERIVED,
            "from the batch's other keys", err);
    }
    return status == TR_OK && request->sliced
               ? tr__model_slice(request->sliced, (int)point.slices, err)
               : status;
}

// What predictions go by: this machine as measured, or, where no choice may depend on
// time or there is none, one of the usual proportions. Collective.
static tr_status open_machine(const tr_run *run, bool choice, tr_machine **out,
                              tr_error *err) {
    const tr_plan_request *r = &run->request;
    if (r->reproducible || !choice) {
        return tr__calibrate_nominal(r, out, err);
    }
    tr_calibration how = {.nvme = tr__run_nvme_folder(run), .log = &run->log};
    return tr__calibrate(r, run->comm, &how, out, err);
}

tr_status tr_run_machine(const tr_run *run, tr_machine **out, tr_error *err) {
    tr_status status = tr__run_need_resolved(run, "tr_run_machine", err);
    return status == TR_OK ? open_machine(run, true, out, err) : status;
}

tr_status tr_run_calibrate(const tr_run *run, tr_machine **out, tr_error *err) {
    tr_status status = tr__run_need_resolved(run, "tr_run_calibrate", err);
    tr_calibration how = {
        .nvme = tr__run_nvme_folder(run), .again = true, .log = &run->log};
    return status == TR_OK ? tr__calibrate(&run->request, run->comm, &how, out, err)
                           : status;
}

static void tell_planning(void *user, size_t plans) {
    tr__wait_count(user, (int64_t)plans, "plans made");
}

static tr_status choose(tr_run *run, tr_planner_request *request, tr_error *err) {
    tr_wait wait = tr__wait_begin(&run->log, "planning");
    tr_state state;
    tr__run_set_budgets(run, run->given.parts.machine, true, request);
    if (tr__run_find_kept(run, &state)) {
        request->has_kept = get_choice(&state, request->free, request->kept);
    }
    tr_run_levers levers = {.run = run};
    request->levers = tr__run_levers;
    request->lever_user = &levers;
    request->tell = tell_planning;
    request->tell_user = &wait;
    tr_status status = tr_planner_choose(request, &run->planned, err);
    tr__run_levers_end(&levers);
    request->levers = NULL;
    request->lever_user = NULL;
    request->tell = NULL;
    request->tell_user = NULL;
    if (status == TR_OK) {
        memcpy(run->choice, tr_planned_choice(run->planned)->value, sizeof run->choice);
    }
    return status;
}

static void say_choice(const tr_run *run, const tr_planner_request *request) {
    char words[256];
    tr_point point = tr__point_of(request, run->choice);
    tr__point_say(&point, run->chosen, words, sizeof words);
    if (run->chosen) {
        tr__note(&run->log, "planner: %s%s", words,
                 run->planned && tr_planned_is_kept(run->planned)
                     ? " (as in the checkpoint)"
                     : "");
    }
}

// Rank 0's bytes to all; alone, nothing.
static tr_status share(const tr_run *run, void *data, size_t bytes, tr_error *err) {
    return tr__comm_count(run->comm) > 1
               ? tr__comm_broadcast(run->comm, 0, data, bytes, err)
               : TR_OK;
}

// A file that says what cannot be has been refused by now.
static tr_planner_request request_of(const tr_run *run, unsigned free) {
    const char *slices = "execution.vocabulary_slices";
    bool open = tr__config_is_auto(run->config, slices);
    bool tokens = run->own_model && tr__model_type_reads_tokens(run->own_model->type);
    tr_planner_request request = {
        .plan = run->request,
        .free = free,
        .sliced = tokens ? run->own_model : NULL,
        .vocabulary_slices = open ? 1 : tr__config_int(run->config, slices),
    };
    if (free >> TR_DIMENSION_pipeline_stages & 1) {
        tr__run_read_pipeline(run, &request.plan, NULL);
    }
    return request;
}

// All ranks measure; rank 0 chooses, and tells the others.
static tr_status choose_for_all(tr_run *run, tr_planner_request *request,
                                tr_error *err) {
    tr_error mine = {0};
    tr_machine *own = NULL;
    tr_status status = TR_OK;
    request->machine = run->given.parts.machine;
    if (!request->machine) {
        status = open_machine(run, request->free != 0, &own, &mine);
        request->machine = own;
    }
    if (status == TR_OK && tr__comm_leads(run->comm)) {
        status = choose(run, request, &mine);
    }
    tr_machine_close(own);
    request->machine = NULL;
    status = tr__agree(run->comm, status, &mine, err);
    return status == TR_OK ? share(run, run->choice, sizeof run->choice, err) : status;
}

tr_status tr__run_resolve_plan(tr_run *run, tr_error *err) {
    struct {
        unsigned free;
        bool budgets;
    } asked = {tr__run_left_open(run), tr__run_has_budget(run)};
    tr_error mine = {0};
    // Files that differ among ranks are told of later: here rank 0's counts.
    tr_status status = share(run, &asked, sizeof asked, err);
    if (status != TR_OK || (!asked.free && !asked.budgets)) {
        return status;
    }
    // A share that stays is not yet one of the things that the planner weighs.
    bool away = run->request.optimizer_placement != TR_SPACE_DEVICE ||
                asked.free >> TR_DIMENSION_optimizer_placement & 1;
    double ratio =
        tr__config_number(run->config, "zero_optimization.offload_optimizer.ratio");
    if (away && ratio > 0 && ratio < 1) {
        tr_fail(
            &mine, TR_USAGE,
            "zero_optimization.offload_optimizer.ratio below 1 where the planner "
            "chooses (memory, \"auto\") is not yet supported: leave one of them out");
        return tr__agree(run->comm, TR_USAGE, &mine, err);
    }
    tr_planner_request request = request_of(run, asked.free);
    status = choose_for_all(run, &request, err);
    if (status != TR_OK) {
        return status;
    }
    run->chosen = asked.free;
    status = take_choice(run, &request, &mine);
    say_choice(run, &request);
    return tr__agree(run->comm, status, &mine, err);
}

// ---- another batch

// What may be chosen anew while a run is at work: nothing that says where parameters
// and optimizer states live, nor the micro-batch, which changes the rounding.
static unsigned changeable(const tr_run *run) {
    unsigned free = 0;
    for (int d = 0; d < TR_DIMENSIONS; d++) {
        free |= (unsigned)!tr__plan_settings[d].fixed << d;
    }
    return run->chosen & free;
}

// The first batch's choice where that still fits; else what fits, by a machine of the
// usual proportions, so that a resumed run chooses the same.
static tr_status choose_again(const tr_run *run, const tr_planner_request *asked,
                              int64_t value[TR_DIMENSIONS], tr_error *err) {
    tr_planner_request request = *asked;
    tr_machine *machine = NULL;
    tr_planned *planned = NULL;
    int64_t *wave = &request.kept[TR_DIMENSION_wave];
    memcpy(request.kept, run->choice, sizeof request.kept);
    *wave = tr__min_i64(*wave, request.plan.accumulation_steps);
    request.has_kept = request.choice_only = true;
    tr__run_set_budgets(run, NULL, false, &request);
    tr_status status = tr__calibrate_nominal(&request.plan, &machine, err);
    if (status == TR_OK) {
        request.machine = machine;
        status = tr_planner_choose(&request, &planned, err);
    }
    if (status == TR_OK) {
        memcpy(value, tr_planned_choice(planned)->value, TR_DIMENSIONS * sizeof *value);
    }
    tr_planned_destroy(planned);
    tr_machine_close(machine);
    return status;
}

tr_status tr__run_choose_again(const tr_run *run, tr_plan_request *plan,
                               tr_error *err) {
    int64_t value[TR_DIMENSIONS] = {0};
    tr_error mine = {0};
    if (!run->chosen && !tr__run_has_budget(run)) {
        return TR_OK;
    }
    tr_planner_request request = request_of(run, changeable(run));
    request.plan = *plan;
    tr_status status =
        tr__comm_leads(run->comm) ? choose_again(run, &request, value, &mine) : TR_OK;
    status = tr__agree(run->comm, status, &mine, err);
    if (status == TR_OK) {
        status = share(run, value, sizeof value, err);
    }
    if (status == TR_OK) {
        *plan = tr__point_of(&request, value).plan;
    }
    return status;
}

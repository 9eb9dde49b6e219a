// Labels: guard
// What is measured, and what is kept of it.
#include "base/files.h"
#include "base/hash.h"
#include "base/memory.h"
#include "calibrate/calibrate.h"
#include "calibrate/measure.h"
#include "plan/models.h"

#include <dirent.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { PATH_BYTES = 512 };

static char folder[] = "/tmp/calibrate-XXXXXX";
static int notes;

static void count_notes(void *user, tr_log_level level, const char *line) {
    (void)user;
    assert_int_equal(level, TR_LOG_NOTE);
    bool begins = strstr(line, "measuring this machine") != NULL; // each says so
    assert_true(begins || strstr(line, "measure"));
    notes += !begins;
}

static const tr_log counted = {count_notes, NULL};

static tr_calibration quick(const char *cache) {
    return (tr_calibration){
        .cache = cache, .memory = 1 << 20, .seconds = 0.2, .log = &counted};
}

static tr_machine *calibrate(const tr_plan_request *request,
                             const tr_calibration *how) {
    tr_machine *machine = NULL;
    tr_error err = {0};
    if (tr__calibrate(request, NULL, how, &machine, &err) != TR_OK) {
        fail_msg("not calibrated: %s", err.message);
    }
    return machine;
}

static char *printed(const tr_machine *machine) {
    char *text = NULL;
    size_t bytes = 0;
    tr_error err = {0};
    FILE *to = open_memstream(&text, &bytes);
    assert_non_null(to);
    assert_int_equal(tr__machine_print(machine, NULL, 0, to, &err), TR_OK);
    fclose(to);
    return text;
}

static void assert_same(const tr_machine *a, const tr_machine *b, bool same) {
    char *text_a = printed(a), *text_b = printed(b);
    assert_int_equal(strcmp(text_a, text_b) == 0, same);
    free(text_a);
    free(text_b);
}

static void assert_way(const tr_machine *machine, tr_way way, bool there) {
    assert_int_equal(machine->way[way].rate > 1e3, there);
    assert_true(machine->way[way].latency >= 0 && machine->way[way].latency < 10);
}

// The only file of the folder; NULL: none. Fails the test where there are more.
static const char *only_file(const char *in) {
    static char path[PATH_BYTES];
    DIR *open = opendir(in);
    int count = 0;
    for (struct dirent *entry; open && (entry = readdir(open));) {
        if (entry->d_name[0] != '.') {
            snprintf(path, sizeof path, "%s/%s", in, entry->d_name);
            count++;
        }
    }
    if (open) {
        closedir(open);
    }
    assert_true(count <= 1);
    return count ? path : NULL;
}

static int make_folder(void **state) {
    strcpy(folder + strlen(folder) - 6, "XXXXXX");
    notes = 0;
    *state = mkdtemp(folder);
    return *state ? 0 : -1;
}

static int remove_folder(void **state) {
    tr_error err = {0};
    return tr__folder_remove(*state, &err) == TR_OK ? 0 : -1;
}

// ---- what is measured

// What utilisation is measured by is what products of large sizes reach, whatever
// sizes were measured: a mean of their rates.
static void assert_mean_of_products(const tr_machine *machine) {
    static const tr_rated_op products[] = {TR_RATED_linear,
                                           TR_RATED_linear_backward_input,
                                           TR_RATED_linear_backward_weight};
    double least = INFINITY, most = 0;
    for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
        least = fmin(least, machine->op_flops[products[i]]);
        most = fmax(most, machine->op_flops[products[i]]);
    }
    assert_true(machine->flops >= least * 0.999 && machine->flops <= most * 1.001);
}

// A plan of the model can be simulated on what was measured, offload and all.
static void a_machine_is_measured(void **state) {
    tr_model *model = test_model_small_gpt2(0.1);
    tr_plan_request request = test_request(model, 4, 2);
    tr_calibration how = quick("");
    how.nvme = *state;
    tr_machine *machine = calibrate(&request, &how);
    assert_int_equal(notes, 0);
    assert_int_equal(machine->ranks_per_node, 1);
    assert_true(machine->flops > 1e6 && machine->memory_rate > 1e6);
    assert_true(machine->host_rate > 1e6 && machine->launch < 1);
    assert_mean_of_products(machine);
    assert_true(machine->op_flops[TR_RATED_linear] > 1e3);
    assert_true(machine->op_launch[TR_RATED_linear] >= 0);
    assert_true(machine->op_flops[TR_RATED_attention_backward] > 1e3);
    assert_true(machine->op_flops[TR_RATED_relu] == 0); // the model has none
    assert_way(machine, TR_WAY_INSIDE, false);
    assert_way(machine, TR_WAY_TO_DEVICE, true);
    assert_way(machine, TR_WAY_TO_HOST, true);
    assert_way(machine, TR_WAY_NVME_READ, true);
    assert_way(machine, TR_WAY_NVME_WRITE, true);
    assert_null(only_file(*state)); // what was read and written is gone
    request.optimizer_placement = request.param_placement = TR_SPACE_HOST;
    tr_plan *plan = test_plan(&request);
    tr_simulated *simulated = NULL;
    tr_error err = {0};
    assert_int_equal(tr_simulate(plan, machine, &simulated, &err), TR_OK);
    assert_true(tr_simulated_result(simulated)->seconds > 0);
    tr_simulated_destroy(simulated);
    tr_plan_destroy(plan);
    tr_machine_close(machine);
    tr_model_destroy(model);
}

// Every op that a model's plans ask for has a rate of its own: a new one wants a place
// in TR_RATED_OP_LIST.
static void look_at_ops(const tr_program *program) {
    for (size_t i = 0; i < program->count; i++) {
        const tr_instruction *at = &program->instructions[i];
        tr_cost cost = {0};
        at->kernel->cost(&at->desc, &cost);
        if (cost.flops > 0 && tr__rated_op_find(at->desc.op->name) == TR_RATED_OPS) {
            fail_msg("%s has no rate", at->desc.op->name);
        }
    }
}

static void look_at_model(tr_model *model) {
    tr_plan_request request = test_request(model, 2, 1);
    tr_plan *plan = test_plan(&request);
    for (int u = 0; u < plan->unit_count; u++) {
        const tr_unit_program *unit = plan->units[u].program;
        for (int s = 0; s < unit->segments; s++) {
            look_at_ops(tr__unit_piece(unit, TR_VARIANT_FORWARD, s));
            look_at_ops(tr__unit_piece(unit, TR_VARIANT_BACKWARD, s));
        }
    }
    tr_plan_destroy(plan);
    tr_model_destroy(model);
}

static void every_op_can_be_rated(void **state) {
    (void)state;
    look_at_model(test_model_mlp());
    look_at_model(test_model_small_gpt2(0.1));
    look_at_model(test_model_sliced_gpt2(0, 3));
}

// Ranks that are not there: their links are supposed.
static void links_of_ranks_alone(void **state) {
    (void)state;
    tr_model *model = test_model_mlp();
    tr_plan_request request = test_request(model, 2, 1);
    tr_calibration how = quick("");
    request.mesh = tr_mesh_of_data(3, 0);
    request.train_batch_size *= 3;
    tr_machine *machine = calibrate(&request, &how);
    assert_int_equal(machine->ranks_per_node, 3);
    assert_way(machine, TR_WAY_INSIDE, true);
    tr_machine_close(machine);
    tr_model_destroy(model);
}

static void a_folder_that_is_not_there(void **state) {
    tr_model *model = test_model_mlp();
    tr_plan_request request = test_request(model, 2, 1);
    tr_calibration how = quick(*state);
    char none[PATH_BYTES];
    snprintf(none, sizeof none, "%s/none", folder);
    how.nvme = none;
    tr_machine *machine = calibrate(&request, &how);
    assert_int_equal(notes, 1);
    assert_way(machine, TR_WAY_NVME_READ, false);
    assert_way(machine, TR_WAY_TO_HOST, true);
    assert_null(only_file(*state)); // it is measured again the next time
    tr_machine_close(machine);
    tr_model_destroy(model);
}

// Where a launch takes longer than any kernel (many threads on few cores), a kernel
// still computes beside what moves, for as long as it takes.
static void launches_longer_than_kernels(void **state) {
    (void)state;
    tr_model *model = test_model_small_gpt2(0);
    tr_plan_request request = test_request(model, 2, 1);
    tr_plan *plan = test_plan(&request);
    tr_machine machine = {.flops = 1e9};
    tr_error err = {0};
    tr_measuring m = {.request = &request,
                      .backend = tr__backend(request.backend),
                      .overhead = 1,
                      .memory = 1 << 20,
                      .seconds = 0.2,
                      .plans = {plan},
                      .plan_count = 1,
                      .machine = &machine,
                      .err = &err};
    assert_int_equal(tr__measure_open(&m, &err), TR_OK);
    assert_int_equal(tr__measure_kernels(&m), TR_OK);
    tr__measure_close(&m);
    assert_non_null(m.usual);
    assert_true(m.usual_seconds > 0 && m.usual_seconds < 1);
    tr__arena_destroy(m.cold);
    tr__arena_destroy(m.warm);
    tr__arena_destroy(m.ids);
    tr_plan_destroy(plan);
    tr_model_destroy(model);
}

// ---- what is kept

static void overwrite(const char *path, const char *text) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void what_was_measured_is_kept(void **state) {
    tr_model *model = test_model_mlp();
    tr_plan_request request = test_request(model, 2, 1);
    char cache[PATH_BYTES];
    snprintf(cache, sizeof cache, "%s/a/b", folder); // made where it is missing
    tr_calibration how = quick(cache);
    tr_machine *first = calibrate(&request, &how);
    const char *path = only_file(cache);
    assert_non_null(path);
    // What is there is what counts.
    tr_machine *kept = NULL;
    tr_error err = {0};
    assert_int_equal(tr_machine_open(path, &kept, &err), TR_OK);
    assert_same(first, kept, true);
    kept->flops = 12345;
    char *text = printed(kept);
    overwrite(path, text);
    free(text);
    tr_machine *second = calibrate(&request, &how);
    assert_same(second, kept, true);
    // Where it is asked for, all is measured again.
    how.again = true;
    tr_machine *third = calibrate(&request, &how);
    assert_true(third->flops > 12345);
    how.again = false;
    // How the batch is cut and where things live does not matter, the model does.
    request.optimizer_placement = TR_SPACE_HOST;
    request.wave = 1;
    request.stage = 1;
    tr_machine *fourth = calibrate(&request, &how);
    assert_same(third, fourth, true);
    assert_int_equal(notes, 0);
    tr_machine_close(first);
    tr_machine_close(second);
    tr_machine_close(third);
    tr_machine_close(fourth);
    tr_machine_close(kept);
    tr_model_destroy(model);
    (void)state;
}

static void what_differs_is_measured_apart(void **state) {
    tr_model *mlp = test_model_mlp(), *gpt2 = test_model_small_gpt2(0);
    tr_plan_request request = test_request(mlp, 2, 1);
    tr_calibration how = quick(*state);
    enum { KINDS = 5 };
    tr_machine *machines[KINDS];
    char *names[KINDS];
    for (int i = 0; i < KINDS; i++) {
        request.model = i == 1 ? gpt2 : mlp;
        request.threads = i == 2 ? 2 : 1;
        request.level_limit = i == 3 ? 1 : 0;
        request.compute = i == 4 ? TR_BF16 : TR_F32;
        machines[i] = calibrate(&request, &how);
        names[i] = machines[i]->fingerprint;
        for (int k = 0; k < i; k++) {
            assert_string_not_equal(names[i], names[k]);
        }
        const char *path = only_file(*state);
        assert_non_null(path);
        assert_int_equal(unlink(path), 0);
    }
    for (int i = 0; i < KINDS; i++) {
        tr_machine_close(machines[i]);
    }
    tr_model_destroy(mlp);
    tr_model_destroy(gpt2);
}

// A file that is no machine, is cut short, is of another fingerprint: measured again.
static void a_damaged_cache_is_no_error(void **state) {
    tr_model *model = test_model_mlp();
    tr_plan_request request = test_request(model, 2, 1);
    tr_calibration how = quick(*state);
    tr_machine *first = calibrate(&request, &how);
    char *path = tr__strdup(only_file(*state)), *text = printed(first);
    text[strlen(text) / 2] = '\0';
    tr__free(first->fingerprint);
    first->fingerprint = tr__strdup("another");
    char *other = printed(first);
    const char *const damaged[] = {"", "{", text, other};
    for (int i = 0; i < 4; i++) {
        overwrite(path, damaged[i]);
        tr_machine *machine = calibrate(&request, &how), *kept = NULL;
        tr_error err = {0};
        assert_int_equal(notes, i + 1);
        assert_int_equal(tr_machine_open(path, &kept, &err), TR_OK);
        assert_same(machine, kept, true);
        tr_machine_close(machine);
        tr_machine_close(kept);
    }
    free(other);
    free(text);
    tr__free(path);
    tr_machine_close(first);
    tr_model_destroy(model);
}

static void a_cache_that_cannot_be_written_is_no_error(void **state) {
    tr_model *model = test_model_mlp();
    tr_plan_request request = test_request(model, 2, 1);
    char file[PATH_BYTES], below[PATH_BYTES];
    snprintf(file, sizeof file, "%s/file", folder);
    snprintf(below, sizeof below, "%s/file/cache", folder);
    overwrite(file, "no folder");
    tr_calibration how = quick(below);
    tr_machine_close(calibrate(&request, &how));
    assert_int_equal(notes, 1);
    assert_string_equal(only_file(*state), file);
    tr_model_destroy(model);
}

// $XDG_CACHE_HOME, or ~/.cache.
static void the_users_folder(void **state) {
    tr_model *model = test_model_mlp();
    tr_plan_request request = test_request(model, 2, 1);
    tr_calibration how = quick(NULL);
    char at[PATH_BYTES];
    setenv("XDG_CACHE_HOME", *state, 1);
    tr_machine_close(calibrate(&request, &how));
    snprintf(at, sizeof at, "%s/tranche", folder);
    assert_non_null(only_file(at));
    setenv("XDG_CACHE_HOME", "not/from/the/root", 1);
    setenv("HOME", *state, 1);
    tr_machine_close(calibrate(&request, &how));
    snprintf(at, sizeof at, "%s/.cache/tranche", folder);
    assert_non_null(only_file(at));
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    tr_machine_close(calibrate(&request, &how));
    tr_model_destroy(model);
}

// ---- without measuring

static void nominal_machines_are_the_same(void **state) {
    (void)state;
    tr_model *model = test_model_mlp();
    tr_plan_request request = test_request(model, 2, 1);
    tr_machine *a = NULL, *b = NULL, *c = NULL;
    tr_error err = {0};
    assert_int_equal(tr__calibrate_nominal(&request, &a, &err), TR_OK);
    assert_int_equal(tr__calibrate_nominal(&request, &b, &err), TR_OK);
    request.threads = 2;
    assert_int_equal(tr__calibrate_nominal(&request, &c, &err), TR_OK);
    assert_same(a, b, true);
    assert_same(a, c, false);
    assert_true(c->flops == 2 * a->flops);
    for (int way = 0; way < TR_WAYS; way++) {
        assert_way(a, (tr_way)way, true);
    }
    tr_machine_close(a);
    tr_machine_close(b);
    tr_machine_close(c);
    tr_model_destroy(model);
}

static tr_status calibrate_once(const tr_plan_request *request, tr_error *err) {
    tr_calibration how = {.cache = folder, .memory = 1 << 20, .seconds = 0.01};
    tr_machine *machine = NULL;
    tr_status status = tr__calibrate(request, NULL, &how, &machine, err);
    tr_machine_close(machine);
    return status;
}

// From what was kept: the plans, the file, the machine.
static void every_missing_allocation_is_an_error(void **state) {
    (void)state;
    tr_model *model = test_model_mlp();
    tr_plan_request request = test_request(model, 2, 1);
    tr_error none = {0};
    int failures = 0;
    assert_int_equal(calibrate_once(&request, &none), TR_OK);
    for (int64_t nth = 1; failures >= 0; nth += 1 + nth / 8) {
        tr_error err = {0};
        tr__memory_fail_at(nth);
        tr_status status = calibrate_once(&request, &err);
        tr__memory_fail_at(0);
        assert_true(status == TR_OK || status == TR_MEMORY);
        assert_int_equal(err.status, status);
        if (status == TR_MEMORY) {
            failures++;
        } else if (nth > 2000) {
            break;
        }
    }
    assert_true(failures > 10);
    tr_model_destroy(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_machine_is_measured, make_folder,
                                        remove_folder),
        cmocka_unit_test(every_op_can_be_rated),
        cmocka_unit_test(links_of_ranks_alone),
        cmocka_unit_test(launches_longer_than_kernels),
        cmocka_unit_test_setup_teardown(a_folder_that_is_not_there, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(what_was_measured_is_kept, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(what_differs_is_measured_apart, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(a_damaged_cache_is_no_error, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(a_cache_that_cannot_be_written_is_no_error,
                                        make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(the_users_folder, make_folder, remove_folder),
        cmocka_unit_test(nominal_machines_are_the_same),
        cmocka_unit_test_setup_teardown(every_missing_allocation_is_an_error,
                                        make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

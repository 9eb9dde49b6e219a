// Run on W ranks: all get the same machine, from measuring and from the cache, which
// one rank keeps; and it has what ranks need.
#include "base/files.h"
#include "calibrate/calibrate.h"
#include "comm/comm.h"
#include "on_ranks.h"
#include "plan/models.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { TEXT_MAX = 16384 };

static tr_comm *comm;

static tr_machine *calibrate(const tr_plan_request *request,
                             const tr_calibration *how) {
    tr_machine *machine = NULL;
    tr_error err = {0};
    if (tr__calibrate(request, comm, how, &machine, &err) != TR_OK) {
        fail_msg("not calibrated: %s", err.message);
    }
    return machine;
}

// The same as rank 0's.
static void assert_shared(const tr_machine *machine) {
    char own[TEXT_MAX] = "", first[TEXT_MAX];
    tr_error err = {0};
    FILE *to = fmemopen(own, sizeof own, "w");
    assert_non_null(to);
    assert_int_equal(tr__machine_print(machine, NULL, 0, to, &err), TR_OK);
    fclose(to);
    memcpy(first, own, sizeof own);
    assert_int_equal(tr__comm_broadcast(comm, 0, first, sizeof first, &err), TR_OK);
    assert_string_equal(own, first);
}

static void ranks_have_one_machine(void **state) {
    tr_model *model = test_model_small_gpt2(0);
    tr_plan_request request = test_request(model, 2, 2);
    char cache[] = "/tmp/calibrate-ranks-XXXXXX";
    tr_error err = {0};
    tr_calibration how = {.cache = "/nowhere", .memory = 1 << 20, .seconds = 0.2};
    (void)state;
    if (tr_comm_rank(comm) == 0) { // the others' is not looked at
        how.cache = mkdtemp(cache);
        assert_non_null(how.cache);
    }
    request.mesh = tr_mesh_of_data(tr_comm_ranks(comm), tr_comm_rank(comm));
    request.train_batch_size *= tr_comm_ranks(comm);
    tr_machine *first = calibrate(&request, &how);
    assert_shared(first);
    assert_int_equal(first->ranks_per_node, tr_comm_ranks(comm));
    assert_true(first->way[TR_WAY_INSIDE].rate > 1e3);
    assert_true(first->op_flops[TR_RATED_linear] > 1e3);
    tr_machine *kept = calibrate(&request, &how);
    assert_shared(kept);
    assert_true(kept->flops == first->flops);
    tr_machine_close(first);
    tr_machine_close(kept);
    tr_model_destroy(model);
    if (tr_comm_rank(comm) == 0) {
        assert_int_equal(tr__folder_remove(cache, &err), TR_OK);
    }
}

static int run(const char *which) {
    (void)which;
    const struct CMUnitTest tests[] = {cmocka_unit_test(ranks_have_one_machine)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(int argc, char **argv) {
    return on_ranks(&comm, run, argc, argv);
}

// What is measured of a device with queues and memory of its own.
#include "calibrate/calibrate.h"
#include "cuda/device.h"
#include "plan/models.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const tr_plan_fp8 none = {0};

static tr_status calibrate(tr_model *model, tr_plan_fp8 fp8, tr_machine **out,
                           tr_error *err) {
    tr_plan_request request = test_request(model, 2, 2);
    request.backend = TR_BACKEND_CUDA;
    request.discrete = true;
    request.fp8 = fp8;
    request.compute = fp8.enabled ? TR_BF16 : request.compute;
    const tr_calibration how = {.cache = "", .memory = 1 << 20, .seconds = 0.1};
    tr_status status = tr__calibrate(&request, NULL, &how, out, err);
    tr_model_destroy(model);
    return status;
}

static void a_device_is_measured(void **state) {
    tr_machine *machine = NULL;
    tr_error err = {0};
    (void)state;
    test_device_set_memory((size_t)3 << 30);
    assert_int_equal(calibrate(test_model_small_gpt2(0), none, &machine, &err), TR_OK);
    assert_int_equal(machine->capacity[TR_SPACE_DEVICE], (int64_t)3 << 30);
    assert_true(machine->capacity[TR_SPACE_HOST] > (int64_t)1 << 30);
    assert_false(machine->host_is_device);
    assert_non_null(strstr(machine->fingerprint, "device 0 for tests of 3221225472"));
    assert_true(machine->launch > 0 && machine->launch < 0.1);
    assert_true(machine->memory_rate > 1e4 && machine->host_rate > 1e6);
    assert_true(machine->op_flops[TR_RATED_linear] > 1e3);
    assert_true(machine->op_flops[TR_RATED_attention_backward] > 1e3);
    assert_true(machine->way[TR_WAY_TO_DEVICE].rate > 1e5);
    assert_true(machine->way[TR_WAY_TO_HOST].rate > 1e5);
    tr_machine_close(machine);
}

static void products_of_8_bits_are_measured_apart(void **state) {
    const tr_plan_fp8 all = {.enabled = true}, one = {true, .first_blocks_bf16 = 1};
    tr_machine *machine = NULL;
    tr_error err = {0};
    (void)state;
    assert_int_equal(calibrate(test_model_wide_gpt2(), one, &machine, &err), TR_OK);
    assert_true(machine->op_flops[TR_RATED_linear_fp8] > 1e3);
    assert_true(machine->op_flops[TR_RATED_linear] > 1e3);
    assert_true(machine->fp8_flops > 1e3 && machine->fp8_flops != machine->half_flops);
    tr_machine_close(machine);
    assert_int_equal(calibrate(test_model_wide_gpt2(), all, &machine, &err), TR_OK);
    assert_true(machine->fp8_flops > 1e3 && machine->fp8_flops == machine->half_flops);
    assert_true(machine->op_flops[TR_RATED_linear] == 0);
    tr_machine_close(machine);
}

static void a_device_that_fails_is_an_error(void **state) {
    tr_machine *machine = NULL;
    (void)state;
    for (int call = TEST_LAUNCH; call <= TEST_COPY; call++) {
        tr_error err = {0};
        test_device_fail((test_device_call)call, 3, false);
        assert_int_equal(calibrate(test_model_small_gpt2(0), none, &machine, &err),
                         TR_INTERNAL);
        if (!strstr(err.message, "the device failed in ")) {
            fail_msg("%s", err.message);
        }
        assert_null(machine);
        test_device_mend();
    }
}

static void a_device_that_is_not_here_is_a_usual_one(void **state) {
    tr_machine *machine = NULL;
    tr_error err = {0};
    (void)state;
    test_device_set_count(0);
    assert_int_equal(calibrate(test_model_small_gpt2(0), none, &machine, &err), TR_OK);
    test_device_set_count(1);
    assert_non_null(strstr(machine->name, "not measured"));
    assert_false(machine->host_is_device);
    tr_machine_close(machine);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_device_is_measured),
        cmocka_unit_test(products_of_8_bits_are_measured_apart),
        cmocka_unit_test(a_device_that_fails_is_an_error),
        cmocka_unit_test(a_device_that_is_not_here_is_a_usual_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

// Kernels are held to what oneDNN is held to.
#include "backend/cpu/isa.h"
#include "backend/cpu/matmul.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

// What a process that is held so chooses, as its exit status; oneDNN reads the variable
// once.
static int chosen_when_held(const char *isa) {
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        setenv("DNNL_MAX_CPU_ISA", isa, 1);
        _exit((int)tr__cpu_isa() | tr__cpu_has_bf16() << 4 |
              tr__matmul_has(TR_BF16) << 5);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void held_with_onednn(void **state) {
    (void)state;
    assert_int_equal(chosen_when_held("SSE41"), TR_ISA_GENERIC);
    assert_true(chosen_when_held("AVX2") <= TR_ISA_AVX2);
    assert_true(chosen_when_held("AVX512_CORE") <= TR_ISA_AVX512);
}

// Children asked before; this process has not.
static void all_when_not_held(void **state) {
    (void)state;
    unsetenv("DNNL_MAX_CPU_ISA");
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
        assert_int_equal(tr__cpu_isa(), TR_ISA_AVX512);
    } else {
        assert_true(tr__cpu_isa() <= TR_ISA_AVX2);
    }
#else
    assert_int_equal(tr__cpu_isa(), TR_ISA_GENERIC);
#endif
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(held_with_onednn),
        cmocka_unit_test(all_when_not_held),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

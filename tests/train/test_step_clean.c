// A step does only its work: it takes no memory, opens no file and starts no thread,
// the reading thread included.
#include "backend/cpu/isa.h"
#include "base/memory.h"
#include "scratch.h"
#include "trial.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

// ---- calls for memory, by whomever: the libraries that Tranche uses find these
// functions before those of the C library

static atomic_llong taken;

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define SEES_LIBRARIES 1
// glibc's own.
void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t bytes);
void *__libc_memalign(size_t alignment, size_t bytes);

void *malloc(size_t bytes) {
    atomic_fetch_add(&taken, 1);
    return __libc_malloc(bytes);
}

void *calloc(size_t count, size_t size) {
    atomic_fetch_add(&taken, 1);
    return __libc_calloc(count, size);
}

void *realloc(void *memory, size_t bytes) {
    atomic_fetch_add(&taken, 1);
    return __libc_realloc(memory, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes) {
    atomic_fetch_add(&taken, 1);
    return __libc_memalign(alignment, bytes);
}

int posix_memalign(void **out, size_t alignment, size_t bytes) {
    atomic_fetch_add(&taken, 1);
    *out = __libc_memalign(alignment, bytes);
    return *out ? 0 : ENOMEM;
}

void *mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset) {
    atomic_fetch_add(&taken, 1);
    return (void *)syscall(SYS_mmap, at, bytes, protection, flags, file, offset);
}
#else // which have functions of their own
#define SEES_LIBRARIES 0
#endif

enum { WARM = 2, STEPS = 10, TEXT_MAX = 2048, NO_FILTER = 77 };

static const char gpt2[] =
    "{\"model\": {\"model_type\": \"gpt2\", \"n_layer\": 2, \"n_embd\": 32, "
    "\"n_head\": 4, \"n_positions\": 16, \"vocab_size\": 256}, \"data\": {\"train\": "
    "[\"%s\", \"%s\"]}, \"train_batch_size\": 8, \"train_micro_batch_size_per_gpu\": "
    "3, \"execution\": {\"wave\": 2}, \"activation_checkpointing\": "
    "{\"number_checkpoints\": 1}, \"steps\": %d, \"log\": {\"every_seconds\": 0}, "
    "\"out\": \"%s\"}";
static const char mlp[] =
    "{\"model\": {\"model_type\": \"mlp\", \"layer_sizes\": [3, 20, 2]}, \"data\": "
    "{\"format\": \"csv\", \"train\": [\"%s\", \"%s\"]}, \"train_batch_size\": 4, "
    "\"train_micro_batch_size_per_gpu\": 3, \"optimizer\": {\"type\": \"SGD\", "
    "\"params\": {\"momentum\": 0.9}}, \"steps\": %d, \"out\": \"%s\"}";

static void print_gpt2(void *const *state, char text[TEXT_MAX]) {
    snprintf(text, TEXT_MAX, gpt2, scratch_words(state, "a.txt", 700, 1),
             scratch_words(state, "b.txt", 500, 2), STEPS, scratch_path(state, "out"));
}

static void print_mlp(void *const *state, char text[TEXT_MAX]) {
    const char *a =
        scratch_text(state, "a.csv", "x,y,z,c\n1,2,3,0\n4,5,6,1\n7,8,9,0\n");
    const char *b = scratch_text(state, "b.csv", "x,y,z,c\n.1,2,.3,1\n4,.5,.6,1\n");
    snprintf(text, TEXT_MAX, mlp, a, b, STEPS, scratch_path(state, "out"));
}

static void check_no_memory(const char *text) {
    run_options options = {.text = text, .resume = "never"};
    trial t;
    trial_open(&t, &options);
    trial_steps(&t, WARM, NULL);
    int64_t before = tr__memory_calls(), taken_before = atomic_load(&taken);
    trial_steps(&t, STEPS - WARM, NULL);
    assert_int_equal(tr__memory_calls(), before);
    assert_int_equal(atomic_load(&taken), taken_before);
    trial_close(&t);
}

static void calls_of_libraries_are_seen(void **state) {
    (void)state;
    if (!SEES_LIBRARIES) {
        skip();
    }
    int64_t before = atomic_load(&taken);
    free(strdup("the C library calls malloc"));
    assert_int_equal(atomic_load(&taken), before + 1);
}

static void steps_take_no_memory(void **state) {
    char text[TEXT_MAX];
    print_gpt2(state, text);
    check_no_memory(text);
    print_mlp(state, text);
    check_no_memory(text);
}

static void steps_in_bf16_take_no_memory(void **state) {
    char text[TEXT_MAX];
    if (tr__cpu_has_tiles()) { // there oneDNN multiplies, which takes some
        skip();
    }
    print_gpt2(state, text);
    size_t length = strlen(text);
    snprintf(text + length - 1, TEXT_MAX - length, ", \"bf16\": {\"enabled\": true}}");
    check_no_memory(text);
}

// Calls for memory by the last time that the run asked whether to stop.
typedef struct calls_seen {
    const tr_engine *engine;
    int64_t warm, last;
} calls_seen;

static bool watch(void *user) {
    calls_seen *seen = user;
    seen->last = tr__memory_calls();
    if (tr_engine_steps_done(seen->engine) == WARM) {
        seen->warm = seen->last;
    }
    return false;
}

// Nor does what happens between steps: metrics and progress.
static void a_run_takes_no_memory_between_steps(void **state) {
    char text[TEXT_MAX];
    tr_error err = {0};
    trial t;
    print_gpt2(state, text);
    run_options options = {.text = text, .resume = "never"};
    trial_open(&t, &options);
    trial_ok(tr_run_begin(t.run, t.plan, &err), &err);
    calls_seen seen = {.engine = t.engine};
    tr_train_options how = TR_TRAIN_OPTIONS_INIT;
    how.stop = watch;
    how.stop_user = &seen;
    trial_ok(tr_engine_train(t.engine, &how, &err), &err);
    assert_int_equal(tr_engine_steps_done(t.engine), STEPS);
    assert_true(seen.warm > 0);
    assert_int_equal(seen.last, seen.warm);
    trial_close(&t);
}

// ---- files, threads: a process of its own that the kernel ends when it opens or
// starts one

#ifdef SYS_open
#define OPEN_NUMBER SYS_open
#else
#define OPEN_NUMBER SYS_openat
#endif

// For all threads of this process. false: not to be had here.
static bool forbid(void) {
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, OPEN_NUMBER, 5, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 4, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 3, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog program = {sizeof steps / sizeof *steps, steps};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC,
                   &program) == 0;
}

static void *nothing(void *argument) {
    return argument;
}

// What may not be done, once.
static void offend(const char *what) {
    pthread_t thread;
    if (strcmp(what, "open") == 0) {
        close(open("/dev/null", O_RDONLY | O_CLOEXEC));
    } else if (strcmp(what, "start") == 0) {
        pthread_create(&thread, NULL, nothing, NULL);
    }
}

// "steps": warm steps, then guarded ones. "open", "start": does what it may not.
static int guarded(const char *what, const char *text) {
    run_options options = {.text = text, .resume = "never"};
    tr_error err = {0};
    tr_run *run = NULL;
    tr_plan *plan = NULL;
    tr_engine *engine = NULL;
    tr_status status = run_open(&options, &run, &err);
    if (status == TR_OK) {
        status = tr_plan_make(tr_run_plan_request(run), &plan, &err);
    }
    if (status == TR_OK) {
        status = tr_engine_create(run, plan, &engine, &err);
    }
    for (int i = 0; i < STEPS && status == TR_OK; i++) {
        tr_step_result result = TR_STEP_RESULT_INIT;
        if (i == WARM && !forbid()) {
            return NO_FILTER;
        }
        if (i == WARM) {
            offend(what);
        }
        status = tr_engine_step(engine, &result, &err);
    }
    return tr_status_exit(status);
}

// The exit status of that process; 1000 + signal when one ended it.
static int run_guarded(const char *what, const char *text) {
    int status = 0;
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        setenv("OMP_NUM_THREADS", "5", 1); // some work is not worth so many
        execl("/proc/self/exe", "step_clean", what, text, (char *)NULL);
        _exit(127);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static void steps_open_no_file_and_start_no_thread(void **state) {
    char text[TEXT_MAX];
    print_gpt2(state, text);
    int status = run_guarded("open", text);
    if (status == NO_FILTER) {
        skip();
    }
    assert_int_equal(status, 1000 + SIGSYS); // the guard works
    assert_int_equal(run_guarded("start", text), 1000 + SIGSYS);
    assert_int_equal(run_guarded("steps", text), 0);
    print_mlp(state, text);
    assert_int_equal(run_guarded("steps", text), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, scratch_make, scratch_remove)

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        TEST(steps_open_no_file_and_start_no_thread),
        TEST(calls_of_libraries_are_seen),
        TEST(steps_take_no_memory),
        TEST(steps_in_bf16_take_no_memory),
        TEST(a_run_takes_no_memory_between_steps),
    };
    if (argc == 3) {
        _exit(guarded(argv[1], argv[2]));
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}

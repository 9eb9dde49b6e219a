// A device of the host's memory and threads, in place of NVIDIA's: streams are queues
// whose tasks begin as base/pace.h lets them (exchanges, after a while also by
// themselves, because another process may wait for them), and its memory can be touched
// by the work of streams alone.
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <pthread.h>
#include <stdint.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "cuda/device.h"
#include "cuda/peers.h"
#include "cuda/shim.h"

#include <atomic>

extern "C" {
#include "backend/cuda/driver.h"
#include "base/half.h"
#include "base/pace.h"
}

namespace {
enum { BAD_ADDRESS = 1, NO_MEMORY, BAD_LAUNCH, NO_KERNEL, FAILED };
enum { CAPACITY = 1024 };

// ---- faults

std::atomic<int> broken; // the error that every call returns; 0: none
std::atomic<int64_t>
    calls_left[TEST_EXCHANGE + 1]; // up to the one that goes wrong; 0: none
bool refuses;

// Is it the turn of this call?
bool is_chosen(test_device_call call) {
    return calls_left[call] > 0 && --calls_left[call] == 0;
}

// ---- memory: as many pages as asked for, behind the bytes nothing

size_t memory = (size_t)1 << 34; // of a device
std::atomic<size_t> taken;       // in pages
std::atomic<int64_t> moved;      // bytes, by copies in no stream

struct region {
    char *memory;
    size_t length;
    bool pinned; // of the host: never closed
    region *next;
};

pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // of regions and `working`
region *regions;
int working; // works under way: while there are any, memory is open

void protect(int how) {
    for (region *r = regions; r; r = r->next) {
        if (!r->pinned && mprotect(r->memory, r->length, how) != 0) {
            abort();
        }
    }
}

void open_memory() {
    pthread_mutex_lock(&lock);
    if (working++ == 0) {
        protect(PROT_READ | PROT_WRITE);
    }
    pthread_mutex_unlock(&lock);
}

void close_memory() {
    pthread_mutex_lock(&lock);
    if (--working == 0) {
        protect(PROT_NONE);
    }
    pthread_mutex_unlock(&lock);
}

void keep(char *memory, size_t length, bool pinned) {
    pthread_mutex_lock(&lock);
    regions = new region{memory, length, pinned, regions};
    pthread_mutex_unlock(&lock);
}

// The region that begins there, taken off the list; length 0: there is none.
region forget(void *memory) {
    region found = {NULL, 0, false, NULL};
    pthread_mutex_lock(&lock);
    for (region **at = &regions; *at; at = &(*at)->next) {
        if ((*at)->memory == memory) {
            region *r = *at;
            found = *r;
            *at = r->next;
            delete r;
            break;
        }
    }
    pthread_mutex_unlock(&lock);
    return found;
}

int take(size_t bytes, void **out) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t length = (bytes + page - 1) / page * page;
    void *memory = mmap(NULL, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *out = memory;
    if (memory == MAP_FAILED) {
        *out = NULL;
        return NO_MEMORY;
    }
    madvise(memory, length, MADV_HUGEPAGE); // opened and closed many times: fewer pages
    pthread_mutex_lock(&lock);
    if (working > 0) {
        mprotect(memory, length, PROT_READ | PROT_WRITE);
    }
    pthread_mutex_unlock(&lock);
    keep((char *)memory, length, false);
    return 0;
}

int give_back(void *memory) {
    region r = memory ? forget(memory) : region{NULL, 0, false, NULL};
    return !memory ? 0 : r.length > 0 ? munmap(r.memory, r.length) : BAD_ADDRESS;
}

// ---- memory in pages: addresses that nobody may touch, and regions within them

const size_t PAGE = (size_t)2 << 20;
bool paged = true;

int total(size_t *bytes) {
    *bytes = memory;
    return 0;
}

int page(size_t *bytes) {
    *bytes = paged ? PAGE : 0;
    return 0;
}

int reserve(size_t bytes, void **out) {
    char *all = (char *)mmap(NULL, bytes + PAGE, PROT_NONE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED || bytes % PAGE) {
        return NO_MEMORY;
    }
    size_t before = (PAGE - (uintptr_t)all % PAGE) % PAGE;
    munmap(all + before + bytes, PAGE - before);
    if (before > 0) {
        munmap(all, before);
    }
    *out = all + before;
    return 0;
}

int release(void *base, size_t bytes) {
    return munmap(base, bytes) == 0 ? 0 : BAD_ADDRESS;
}

// New pages hold anything.
int map(void *at, size_t bytes) {
    if (bytes % PAGE || taken + bytes > memory) {
        return bytes % PAGE ? BAD_ADDRESS : NO_MEMORY;
    }
    taken += bytes;
    mprotect(at, bytes, PROT_READ | PROT_WRITE);
    madvise(at, bytes, MADV_HUGEPAGE); // opened and closed many times: fewer pages
    memset(at, 0xA5, bytes);
    pthread_mutex_lock(&lock);
    if (working == 0) {
        mprotect(at, bytes, PROT_NONE);
    }
    pthread_mutex_unlock(&lock);
    keep((char *)at, bytes, false);
    return 0;
}

int unmap(void *at, size_t bytes) {
    region r = forget(at);
    if (r.length != bytes) {
        return BAD_ADDRESS;
    }
    taken -= bytes;
    madvise(at, bytes, MADV_DONTNEED);
    return mprotect(at, bytes, PROT_NONE) == 0 ? 0 : BAD_ADDRESS;
}

// ---- memory of the host

// As CUDA, it pins no byte twice, and not nothing.
int pin(void *memory, size_t bytes) {
    bool twice = false;
    pthread_mutex_lock(&lock);
    for (region *r = regions; r; r = r->next) {
        twice = twice || (r->pinned && (char *)memory < r->memory + r->length &&
                          r->memory < (char *)memory + bytes);
    }
    pthread_mutex_unlock(&lock);
    if (twice || bytes == 0 || is_chosen(TEST_PIN)) {
        return twice || bytes == 0 ? BAD_ADDRESS : NO_MEMORY;
    }
    keep((char *)memory, bytes, true);
    return 0;
}

int unpin(void *memory) {
    return forget(memory).length > 0 ? 0 : BAD_ADDRESS;
}

// ---- streams

struct task {
    void (*work)(void *);
    void *closure;
    void (*drop)(void *);
};

struct stream {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    task tasks[CAPACITY];
    int64_t started, finished, awaited;
    int64_t due; // others count on tasks up to this one: it begins after a while
    bool stop;
};

void do_task(const task &t) {
    open_memory();
    t.work(t.closure);
    close_memory();
    t.drop(t.closure);
}

double seconds_now(clockid_t clock) {
    timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

// Until something has changed; what is due for a while counts as awaited. Under the
// lock.
void rest(stream *s) {
    const double patience = 0.02; // seconds
    if (s->due <= s->awaited) {
        pthread_cond_wait(&s->changed, &s->lock);
        return;
    }
    double until = seconds_now(CLOCK_REALTIME) + patience;
    timespec at = {(time_t)until, (long)((until - (double)(time_t)until) * 1e9)};
    if (pthread_cond_timedwait(&s->changed, &s->lock, &at) == ETIMEDOUT) {
        s->awaited = s->due > s->awaited ? s->due : s->awaited;
    }
}

void *run_stream(void *given) {
    stream *s = (stream *)given;
    pthread_mutex_lock(&s->lock);
    while (!s->stop || s->finished < s->started) {
        bool ready = s->finished < s->started &&
                     (s->stop || tr__pace_begins(s->finished + 1, s->awaited));
        if (!ready) {
            rest(s);
            continue;
        }
        task t = s->tasks[s->finished % CAPACITY];
        pthread_mutex_unlock(&s->lock);
        do_task(t);
        pthread_mutex_lock(&s->lock);
        s->finished++;
        pthread_cond_broadcast(&s->changed);
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

// Until so many tasks are done. Under the lock.
void await(stream *s, int64_t ticket) {
    if (ticket > s->awaited) {
        s->awaited = ticket;
        pthread_cond_broadcast(&s->changed);
    }
    while (s->finished < ticket) {
        pthread_cond_wait(&s->changed, &s->lock);
    }
}

int64_t add_task(stream *s, const task &t) {
    pthread_mutex_lock(&s->lock);
    if (s->started - s->finished == CAPACITY) {
        await(s, s->finished + 1);
    }
    s->tasks[s->started % CAPACITY] = t;
    int64_t ticket = ++s->started;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    return ticket;
}

int stream_create(void **out) {
    stream *s = new stream();
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    *out = s;
    return pthread_create(&s->thread, NULL, run_stream, s);
}

int stream_wait(void *given) {
    stream *s = (stream *)given;
    if (s) {
        pthread_mutex_lock(&s->lock);
        await(s, s->started);
        pthread_mutex_unlock(&s->lock);
    }
    return broken;
}

int stream_destroy(void *given) {
    stream *s = (stream *)given;
    pthread_mutex_lock(&s->lock);
    s->stop = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->thread, NULL);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    delete s;
    return 0;
}

// Puts work into a stream; without one it is done at once.
template <class F> void put_work(void *given, F work) {
    struct made {
        F work;
    };
    task t = {[](void *closure) { ((made *)closure)->work(); }, new made{work},
              [](void *closure) { delete (made *)closure; }};
    if (given) {
        add_task((stream *)given, t);
    } else {
        do_task(t);
    }
}

// A call of those that tests let go wrong.
template <class F> int put_call(test_device_call call, void *given, F work) {
    bool chosen = is_chosen(call);
    if (chosen && refuses) {
        return BAD_LAUNCH;
    }
    put_work(given, [=] {
        if (chosen) {
            broken = FAILED;
        } else if (!broken) {
            work();
        }
    });
    return broken;
}

int copy(void *to, const void *from, size_t bytes, void *given) {
    moved += given ? 0 : (int64_t)bytes;
    return put_call(TEST_COPY, given, [=] { memcpy(to, from, bytes); });
}

int clear(void *to, size_t bytes, void *given) {
    put_work(given, [=] { memset(to, 0, bytes); });
    return broken;
}

double element(const void *x, tr_dtype real, int64_t i) {
    return real == TR_F32    ? ((const float *)x)[i]
           : real == TR_BF16 ? tr__bf16_to_f32(((const uint16_t *)x)[i])
                             : tr__f16_to_f32(((const uint16_t *)x)[i]);
}

void set_element(void *x, tr_dtype real, int64_t i, double value) {
    if (real == TR_F32) {
        ((float *)x)[i] = (float)value;
    } else {
        ((uint16_t *)x)[i] = real == TR_BF16 ? tr__bf16_of_f32((float)value)
                                             : tr__f16_of_f32((float)value);
    }
}

// Of the codes of 8 bits.
double *matrix_of_codes(const void *x, tr_fp8 format, float scale, int64_t row,
                        int64_t rows, int64_t columns) {
    double *copy = (double *)malloc((size_t)(rows * columns) * sizeof *copy);
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < columns; j++) {
            uint8_t code = ((const uint8_t *)x)[i * row + j];
            copy[i * columns + j] = (double)tr__fp8_to_f32(format, code) * scale;
        }
    }
    return copy;
}

// A copy [rows, columns] of a matrix, or of the transpose of what is there.
double *matrix(const void *x, tr_dtype real, int64_t row, int64_t rows, int64_t columns,
               bool transposed) {
    double *copy = (double *)malloc((size_t)(rows * columns) * sizeof *copy);
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < columns; j++) {
            copy[i * columns + j] =
                element(x, real, transposed ? j * row + i : i * row + j);
        }
    }
    return copy;
}

// A library leaves anything in its workspace: ends of it stand for the whole.
void spoil(const tr_cuda_product &p) {
    const int64_t part = 4096 < p.scratch_bytes ? 4096 : p.scratch_bytes;
    if (part > 0) {
        memset(p.scratch, 0xA5, (size_t)part);
        memset((char *)p.scratch + p.scratch_bytes - part, 0xA5, (size_t)part);
    }
}

// a: [m, k], b: [n, k]
void sum_factor(const tr_cuda_product &p, const double *a, const double *b) {
    const double *of = p.sums_b ? b : a;
    for (int64_t i = 0; p.sums && i < (p.sums_b ? p.n : p.m); i++) {
        double sum = 0;
        for (int64_t k = 0; k < p.k; k++) {
            sum += of[i * p.k + k];
        }
        set_element(p.sums, p.c_real, i, sum);
    }
}

// Hopper's tensor cores add 32 products of 8 bits at once, each shifted to the largest
// one's exponent, of which they keep 14 bits (DeepSeek-V3, arXiv 2412.19437, 3.5.2).
// The sums go to f32 from there or, summed fast, stay and are shifted with the next
// ones.
float sum_eight_bits(const double *a, const double *b, int64_t count, bool fast) {
    enum { AT_ONCE = 32, BITS = 14 };
    float sum = 0;
    for (int64_t k = 0; k < count; k += AT_ONCE) {
        double terms[AT_ONCE + 1] = {fast ? sum : 0}, most = fabs(terms[0]), all = 0;
        for (int64_t i = 0; i < AT_ONCE && k + i < count; i++) {
            terms[i + 1] = a[k + i] * b[k + i];
            most = fmax(most, fabs(terms[i + 1]));
        }
        bool known = most > 0 && std::isfinite(most);
        double unit = ldexp(1, (known ? ilogb(most) : 0) + 1 - BITS);
        for (double term : terms) {
            all += std::isfinite(term) ? floor(term / unit) * unit : term;
        }
        sum = fast ? (float)all : sum + (float)all;
    }
    return sum;
}

void multiply_here(const tr_cuda_product &p) {
    spoil(p);
    double *a = p.fp8 ? matrix_of_codes(p.a, p.a_format, *p.a_scale, p.a_row, p.m, p.k)
                      : matrix(p.a, p.real, p.a_row, p.m, p.k, p.a_transposed);
    double *b = p.fp8 ? matrix_of_codes(p.b, p.b_format, *p.b_scale, p.b_row, p.n, p.k)
                      : matrix(p.b, p.real, p.b_row, p.n, p.k, !p.b_transposed);
    for (int64_t i = 0; i < p.m; i++) {
        for (int64_t j = 0; j < p.n; j++) {
            double sum = 0;
            for (int64_t k = 0; k < p.k && !p.fp8; k++) {
                sum += a[i * p.k + k] * b[j * p.k + k];
            }
            if (p.fp8) {
                sum = sum_eight_bits(&a[i * p.k], &b[j * p.k], p.k, p.fast);
            }
            int64_t at = i * p.c_row + j;
            sum += p.beta != 0 ? p.beta * element(p.c, p.c_real, at) : 0;
            sum += p.bias ? element(p.bias, p.c_real, j) : 0;
            set_element(p.c, p.c_real, at, sum);
        }
    }
    sum_factor(p, a, b);
    free(a);
    free(b);
}

// What cuBLASLt asks of its workspace, and of products of 8 bits on sm_89 and sm_90
// (its documentation of cublasLtMatmul).
bool takes(const tr_cuda_product &p) {
    if (p.scratch_bytes > 0 && (uintptr_t)p.scratch % 256 != 0) {
        return false;
    }
    auto whole = [](const void *x, int64_t row_bytes) {
        return (uintptr_t)x % 16 == 0 && row_bytes % 16 == 0;
    };
    int64_t c_bytes = p.n * (int64_t)tr_dtype_bytes(p.c_real);
    return !p.fp8 ||
           (p.b_transposed && !p.a_transposed && p.k % 16 == 0 && whole(p.a, p.a_row) &&
            whole(p.b, p.b_row) && whole(p.c, c_bytes) && whole(p.a_scale, 0) &&
            whole(p.b_scale, 0) &&
            !(p.a_format == TR_FP8_E5M2 && p.b_format == TR_FP8_E5M2));
}

std::atomic<int> crooked, odd, fast;

bool is_straight(const void *x, int64_t row, tr_dtype real) {
    return (uintptr_t)x % 16 == 0 && row * (int64_t)tr_dtype_bytes(real) % 16 == 0;
}

int multiply(const tr_cuda_product *product, void *given) {
    tr_cuda_product p = *product;
    crooked +=
        !p.fp8 && p.real != TR_F32 &&
        !(is_straight(p.a, p.a_row, p.real) && is_straight(p.b, p.b_row, p.real) &&
          is_straight(p.c, p.c_row, p.c_real));
    auto is_whole = [](int64_t extent, tr_dtype real) {
        return extent * (int64_t)tr_dtype_bytes(real) % 16 == 0;
    };
    odd += !p.fp8 && p.real != TR_F32 &&
           !(is_whole(p.m, p.real) && is_whole(p.n, p.real) && is_whole(p.k, p.real));
    if (!takes(p)) {
        return BAD_LAUNCH;
    }
    fast += p.fast;
    // The library may have sums beside one type of products, and not beside another.
    bool lacks_sums = p.sums && p.real == TR_F16;
    if ((p.fp8 && p.bias && p.c_real == TR_F32) || lacks_sums) {
        return TR_CUDA_BARE;
    }
    put_work(given, [=] { multiply_here(p); });
    return broken;
}

// ---- events: the tasks of a stream so far

struct event {
    stream *of;
    int64_t ticket;
    double when; // it was passed, seconds
};

int event_create(void **out) {
    *out = new event();
    return 0;
}

int event_destroy(void *given) {
    delete (event *)given;
    return 0;
}

int event_record(void *given, void *in) {
    event *e = (event *)given;
    stream *s = (stream *)in;
    e->of = s;
    put_work(in, [=] { e->when = seconds_now(CLOCK_MONOTONIC); });
    e->ticket = s->started;
    return broken;
}

int event_wait(void *given) {
    event *e = (event *)given;
    if (e->of) {
        pthread_mutex_lock(&e->of->lock);
        await(e->of, e->ticket);
        pthread_mutex_unlock(&e->of->lock);
    }
    return broken;
}

// Who looks, waits: only a stream that nobody waits for is late.
int event_look(void *given, bool *passed) {
    event *e = (event *)given;
    *passed = true;
    if (e->of) {
        pthread_mutex_lock(&e->of->lock);
        if (e->ticket > e->of->awaited) {
            e->of->awaited = e->ticket;
            pthread_cond_broadcast(&e->of->changed);
        }
        *passed = e->of->finished >= e->ticket;
        pthread_mutex_unlock(&e->of->lock);
    }
    return broken;
}

int event_follow(void *given, void *in) {
    event e = *(event *)given; // as it is now
    put_work(in, [=] {
        event mine = e;
        event_wait(&mine);
    });
    return broken;
}

int event_seconds(void *from, void *to, double *seconds) {
    *seconds = ((event *)to)->when - ((event *)from)->when;
    return 0;
}

// ---- the device

int devices = 1, opened = -1;

const char *missing() {
    return devices > 0 ? NULL : "the tests have taken it away";
}

int count_devices(int *count) {
    *count = devices;
    return 0;
}

int properties(int number, tr_cuda_properties *out) {
    memset(out, 0, sizeof *out);
    snprintf(out->name, sizeof out->name, "device %d for tests", number);
    out->major = 9;
    out->multiprocessors = 2;
    out->memory = memory;
    out->uuid[0] = (uint8_t)(number + 1);
    return 0;
}

const char *error_text(int error) {
    static const char *const texts[] = {"no error",       "no such address",
                                        "out of memory",  "no such launch",
                                        "no such kernel", "unspecified launch failure"};
    return error >= 0 && error <= FAILED ? texts[error] : "an unknown error";
}

int open_device(int number) {
    opened = number;
    return 0;
}

// ---- kernels: those that are linked, whatever the image of a module has

const shim::kernel *kernels;

int load(const void *, void **module) {
    *module = &kernels;
    return 0;
}

int function(void *, const char *name, void **out) {
    const shim::kernel *k = kernels;
    while (k && strcmp(k->name, name) != 0) {
        k = k->next;
    }
    *out = (void *)k;
    return k ? 0 : NO_KERNEL;
}

dim3 size_of(const int64_t *size) {
    return dim3((unsigned)size[0], (unsigned)size[1], (unsigned)size[2]);
}

int launch(void *what, const tr_cuda_grid *grid, const void *args, size_t bytes,
           void *given) {
    const shim::kernel *k = (const shim::kernel *)what;
    enum { MOST = 4096 }; // as CUDA
    struct parameter {
        alignas(16) char bytes[MOST];
    } p;
    if (!k || bytes != k->bytes || bytes > MOST) {
        return BAD_LAUNCH;
    }
    memcpy(p.bytes, args, bytes);
    shim::shape shape = {size_of(grid->blocks), size_of(grid->threads),
                         (size_t)grid->shared};
    return put_call(TEST_LAUNCH, given, [=] {
        static pthread_mutex_t one = PTHREAD_MUTEX_INITIALIZER; // kernel of all streams
        pthread_mutex_lock(&one);
        shim::run(shape, k->meets, k->body, (void *)p.bytes);
        pthread_mutex_unlock(&one);
    });
}

// ---- attention by a library that the test brings

const tr_cuda_attention_library *attention;

int attention_version(const char **why) {
    *why = "the tests bring no cuDNN";
    return attention ? attention->version(why) : 0;
}

tr_status attention_ready(const tr_cuda_attend_shape *shape, tr_error *err) {
    return attention->ready(shape, err);
}

// It is put into the stream when that comes to it: then memory is open.
int attend(const tr_cuda_attend *given, void *in) {
    tr_cuda_attend a = *given;
    return put_call(TEST_LAUNCH, in, [=] {
        int error = attention->attend(&a, in);
        if (error != 0) {
            broken = error;
        }
    });
}
} // namespace

void test_device_set_attention(const tr_cuda_attention_library *library) {
    attention = library;
}

void test_device_fail(test_device_call call, int64_t n, bool refused) {
    refuses = refused;
    calls_left[call] = n;
}

void test_device_set_count(int count) {
    devices = count;
}

void test_device_set_memory(size_t bytes) {
    memory = bytes;
}

void test_device_set_paged(bool now) {
    paged = now;
}

size_t test_device_taken(void) {
    return taken;
}

int64_t test_device_moved(void) {
    return moved;
}

int test_device_opened(void) {
    return opened;
}

bool test_device_reaches(const void *given, size_t bytes) {
    const char *from = (const char *)given;
    bool all = false;
    pthread_mutex_lock(&lock);
    for (region *r = regions; r; r = r->next) {
        all = all ||
              (r->pinned && r->memory <= from && from + bytes <= r->memory + r->length);
    }
    pthread_mutex_unlock(&lock);
    return all;
}

int test_device_crooked(void) {
    return crooked;
}

int test_device_odd(void) {
    return odd;
}

int test_device_fast(void) {
    return fast;
}

// As if work was under way for good.
void test_device_open(void) {
    open_memory();
}

int test_device_wait(void *given) {
    return stream_wait(given);
}

void test_device_mend(void) {
    broken = 0;
    for (std::atomic<int64_t> &left : calls_left) {
        left = 0;
    }
}

void test_put_exchange(void *in, std::function<void()> work) {
    stream *s = (stream *)in;
    put_work(in, [=] {
        if (!broken) {
            work();
        }
    });
    pthread_mutex_lock(&s->lock);
    s->due = s->started;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}

bool test_is_chosen(test_device_call call, bool *refused) {
    *refused = refuses;
    return is_chosen(call);
}

shim::kernel::kernel(const char *name_, bool meets_, size_t bytes_,
                     void (*body_)(void *))
    : name(name_), meets(meets_), bytes(bytes_), body(body_), next(kernels) {
    kernels = this;
}

extern "C" const tr_cuda_driver *tr__cuda_driver(void) {
    static const tr_cuda_driver driver = {missing,
                                          count_devices,
                                          properties,
                                          error_text,
                                          open_device,
                                          load,
                                          function,
                                          launch,
                                          take,
                                          give_back,
                                          total,
                                          page,
                                          reserve,
                                          release,
                                          map,
                                          unmap,
                                          pin,
                                          unpin,
                                          stream_create,
                                          stream_destroy,
                                          stream_wait,
                                          copy,
                                          clear,
                                          multiply,
                                          {attention_version, attention_ready, attend},
                                          test_peers_missing,
                                          test_peers_invite,
                                          test_peers_join,
                                          test_peers_state,
                                          test_peers_exchange,
                                          test_peers_leave,
                                          event_create,
                                          event_destroy,
                                          event_record,
                                          event_wait,
                                          event_look,
                                          event_follow,
                                          event_seconds,
                                          NULL};
    return &driver;
}

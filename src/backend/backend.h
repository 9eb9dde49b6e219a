// Backends: what runs kernels, each behind one table of functions. All that is above
// this folder finds a backend by its number (tr_target.backend) and knows no other of
// its files.
#ifndef TR_BACKEND_BACKEND_H
#define TR_BACKEND_BACKEND_H

#include "backend/attention.h"
#include "backend/peers.h"
#include "backend/queue.h"
#include "base/arena.h"

#include <tranche/extend/op.h>

struct tr_optimizer; // ops/optimizers/optimizer.h

// What a device has in use beside a plan: its context, kernels and libraries.
#define TR_DEVICE_BESIDE ((int64_t)1 << 30)
// An arena of a device takes whole pages of it, of at most so many bytes.
#define TR_DEVICE_PAGE ((int64_t)2 << 20)

// One of a backend's devices in this machine.
typedef struct tr_device {
    char name[128]; // as its maker calls it
    int64_t memory; // bytes
    uint64_t id;    // no other device, of whatever machine, has it
} tr_device;

typedef struct tr_backend {
    const char *name; // as files call it
    // It works beside the thread that issues steps, and the host does not reach its
    // memory (tr_plan_request.discrete).
    bool discrete;
    // Device `number` (from 0). TR_USAGE says why it is not there, or why this build
    // has no kernels for it. NULL: there is one device, the machine itself.
    tr_status (*device)(int number, tr_device *out, tr_error *err);
    // Makes that device ready to run, before memory is taken and the first step is
    // launched. Errors are those of `device`. NULL: it is always ready.
    tr_status (*open)(int number, tr_error *err);
    // Its memory. NULL: the host's.
    const tr_memory_source *memory;
    // Memory of the host that it reaches. NULL: all of it.
    const tr_memory_source *host_memory;
    // Its queues, where it is discrete.
    const tr_queue_table *queues;
    // Exchanges among its devices. NULL: they go by way of the host.
    const tr_peer_table *peers;
    // Bytes of its memory that the libraries which kernels call want to work in, on a
    // device of that level: a plan has room for them (queues->lend). NULL: none.
    int64_t (*scratch)(int level);
    // Launches a kernel of the host, at once, on operands that may be in its memory.
    // NULL: the host reaches its own memory alone.
    void (*launch)(const tr_kernel *kernel, const tr_op_desc *desc, void *state,
                   const tr_launch *launch);
    // Where copies, messages and files reach an address in its memory; others stay what
    // they are. NULL: at that address.
    void *(*reach)(void *address);
    // Spoils bytes that mean nothing yet, in the order of the queue (NULL: at once): of
    // the device that tests use. NULL: they are left as they are.
    void (*poison)(tr_device_queue *queue, void *address, size_t bytes);
    // The best kernel for the description, as its target allows; NULL: none supports
    // it. A row of the op's folder says which kernels there are (CONTRIBUTING.md).
    const tr_kernel *(*kernel)(const tr_op_desc *desc);
    // Can it update by the optimizer? NULL: by all.
    bool (*updates)(const struct tr_optimizer *optimizer);
    // What device `number` is: the best level that runs there, and all workers.
    tr_target (*here)(int number);
    // The version of the library that attention may be taken from
    // (tr_target.attention), as it is installed; 0: there is none, and *why says so.
    // NULL: of none.
    int (*attention)(const char **why);
    // "avx512"; NULL: there is no such level.
    const char *(*level_name)(int level);
    // From `begin` to `end` the calling thread launches kernels, by so many workers.
    // Returns what the end is to be given.
    int (*begin)(int workers);
    void (*end)(int before);
    // Flops a second of matrix products in f32: as measured just now, in about 50 ms (0
    // where it cannot be), and as a machine of that level usually has.
    double (*measure_rate)(int workers);
    double (*usual_rate)(int level, int workers);
    // By which algorithm a library has computed the last product since the last call,
    // for people; "": there was none. dst: [size]. NULL: none computes any.
    void (*say_product)(char *dst, size_t size);
} tr_backend;

// Where arenas of the device get their memory, and those of the host beside it.
const tr_memory_source *tr__backend_memory(const tr_backend *backend);
const tr_memory_source *tr__backend_host_memory(const tr_backend *backend);
// Is there a device of its own with that number, one that this build can use? *out:
// which. false: also where the machine itself is the device.
bool tr__backend_has(const tr_backend *backend, int number, tr_device *out);
// How many of them there are.
int tr__backend_devices(const tr_backend *backend);
// What launch and reach of the backend do, or the same without them.
void tr__backend_launch(const tr_backend *backend, const tr_kernel *kernel,
                        const tr_op_desc *desc, void *state, const tr_launch *launch);
void *tr__backend_reach(const tr_backend *backend, void *address);
// Is its memory where only copies in its queues reach it?
bool tr__backend_is_apart(const tr_backend *backend);

// That of a number.
const tr_backend *tr__backend(tr_backend_id id);
// All names, by number, then NULL.
extern const char *const tr__backend_names[TR_BACKEND_COUNT + 1];
// "cuda:1"; where there is but one device, its backend's name.
void tr__device_print(tr_backend_id id, int number, char *dst, size_t size);
// What text ("cpu", "cuda", "cuda:1") asks for; `key` is where it stands. TR_USAGE: it
// is none of these, or names a number where there is one device.
tr_status tr__device_parse(const char *key, const char *text, tr_backend_id *id,
                           int *number, tr_error *err);
// The number of a name that is one of them.
tr_backend_id tr__backend_find(const char *name);

// The kernel for the description, by its target's backend; NULL: none supports it.
const tr_kernel *tr__kernel_find(const tr_op_desc *desc);
// How the target's kernels are called: the level's name, "reference" for -1.
const char *tr__target_name(const tr_target *target);

#endif

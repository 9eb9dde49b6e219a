// What Tranche asks of CUDA, as one table: NVIDIA's driver and cuBLASLt (driver.c), or,
// in tests, a device that is made of the host's memory and threads.
//
// Functions return 0 or CUDA's error; errors of work in a stream may come from any
// later call, and stay. Streams and events are CUDA's.
#ifndef TR_BACKEND_CUDA_DRIVER_H
#define TR_BACKEND_CUDA_DRIVER_H

#include "backend/cuda/attend.h"
#include "backend/cuda/grid.h"
#include "base/fp8.h"
#include "comm/type.h"

#include <tranche/types.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct tr_cuda_properties {
    char name[128];
    int major, minor; // compute capability: 9, 0
    int multiprocessors;
    size_t memory; // bytes
    uint8_t
        uuid[16]; // of the device, or of the part of it that is given to the process
} tr_cuda_properties;

// c [m, n] = op(a) [m, k] op(b) [k, n] + beta c, summed in f32, all by rows; op
// transposes where it is asked to. Rows are so many elements apart.
typedef struct tr_cuda_product {
    int64_t m, n, k;
    const void *a, *b;
    void *c;
    tr_dtype real;   // of a and b: f32, bf16 or f16
    tr_dtype c_real; // that, or f32
    int64_t a_row, b_row, c_row;
    bool a_transposed, b_transposed;
    float beta;       // 0: what is in c is not read
    const void *bias; // [n], of c's type, which is added to each row; NULL: nothing is
    // Of c's type, beside no bias: gets the sums over k of op(a), [m], or, with
    // `sums_b`, of op(b), [n], which are written and not added to. NULL: nobody wants
    // them.
    void *sums;
    bool sums_b;
    // Memory of the device that the product may use meanwhile, 256-byte aligned; or
    // none.
    void *scratch;
    int64_t scratch_bytes;
    // a [m, k] and b [n, k], transposed, are codes of 8 bits of these formats, not both
    // E5M2, in place of `real`; the product is multiplied by both scales, which are on
    // the device, at multiples of TR_CUDA_SCALE_ALIGNMENT bytes. All rows are multiples
    // of 16 bytes.
    bool fp8;
    tr_fp8 a_format, b_format;
    const float *a_scale, *b_scale;
    // Of such a product: sums stay in tensor cores, which keep fewer bits of them.
    bool fast;
} tr_cuda_product;

// One part of an exchange among ranks.
typedef enum tr_cuda_exchange_kind {
    TR_CUDA_BROADCAST, // the root's elements go to all members
    TR_CUDA_REDUCE,    // the sum of all members' goes to the root
    TR_CUDA_SEND,      // this member's go to the root, which receives from this one
    TR_CUDA_RECEIVE,
} tr_cuda_exchange_kind;

typedef struct tr_cuda_exchange {
    tr_cuda_exchange_kind kind;
    tr_comm_type type;
    int root;         // a member
    const void *from; // NULL: this member gives nothing
    void *to;         // NULL: it gets nothing
    size_t count;     // elements
} tr_cuda_exchange;

enum {
    TR_CUDA_SCALE_ALIGNMENT = 16,
    TR_CUDA_OUT_OF_MEMORY = 2, // CUDA's error of that name
    // Nothing has been done: cuBLASLt adds no bias to such a product, or makes no sums
    // beside it.
    TR_CUDA_BARE = -1,
};

typedef struct tr_cuda_driver {
    // NULL: there is a device; else why there is none, in words.
    const char *(*missing)(void);
    int (*count)(int *out); // of devices; their numbers count from 0
    int (*properties)(int number, tr_cuda_properties *out);
    const char *(*error_text)(int error);
    // From then on, all calls are for that device. The ones above need no such call.
    int (*open)(int number);

    // Kernels: a module from its image, one of its kernels by name, and a launch of
    // that with its only parameter, a structure of so many bytes.
    int (*load)(const void *image, void **module);
    int (*function)(void *module, const char *name, void **function);
    int (*launch)(void *function, const tr_cuda_grid *grid, const void *args,
                  size_t bytes, void *stream);

    int (*take)(size_t bytes, void **out); // memory of the device
    int (*give_back)(void *memory);
    int (*memory)(size_t *bytes); // all that the device has
    // Memory of the device in pages, at addresses that are reserved before. *bytes: of
    // a page; 0: the driver cannot.
    int (*page)(size_t *bytes);
    // Addresses alone, of whole pages; given up when nothing is mapped there.
    int (*reserve)(size_t bytes, void **out);
    int (*release)(void *base, size_t bytes);
    // Maps new pages there; takes away all that one call has mapped.
    int (*map)(void *at, size_t bytes);
    int (*unmap)(void *at, size_t bytes);
    // The host's memory, for the device to reach at the same address.
    int (*pin)(void *memory, size_t bytes);
    int (*unpin)(void *memory);

    int (*stream_create)(void **out);
    int (*stream_destroy)(void *stream);
    int (*stream_wait)(void *stream); // until all is done
    int (*copy)(void *to, const void *from, size_t bytes, void *stream);
    int (*clear)(void *to, size_t bytes, void *stream);
    int (*multiply)(const tr_cuda_product *product, void *stream);

    // Attention by a library.
    tr_cuda_attention_library attention;

    // Members of a group of ranks, each with a device of its own, by NCCL. NULL: it is
    // here; else why not, in words. The others are called only where it is.
    const char *(*peers_missing)(void);
    int (*peers_invite)(void *invitation); // [128], for all members from member 0
    int (*peers_join)(const void *invitation, int members, int member, void **peers);
    // *busy: it still works on what was asked of it last, and may not be asked
    // anything. An error: also what went wrong since.
    int (*peers_state)(void *peers, bool *busy);
    int (*peers_exchange)(const tr_cuda_exchange *parts, int count, void *peers,
                          void *stream);
    int (*peers_leave)(void *peers, bool broken); // broken: streams are given up

    int (*event_create)(void **out);
    int (*event_destroy)(void *event);
    int (*event_record)(void *event, void *stream);
    int (*event_wait)(void *event);
    int (*event_look)(void *event, bool *passed);   // does not wait
    int (*event_follow)(void *event, void *stream); // the stream waits, nobody else
    int (*event_seconds)(void *from, void *to, double *seconds); // both are over
    // How products since the last call are computed, the last one's algorithm, for
    // people; "": there was none. dst: [size]. NULL: it cannot tell.
    void (*say_product)(char *dst, size_t size);
} tr_cuda_driver;

const tr_cuda_driver *tr__cuda_driver(void);

#endif

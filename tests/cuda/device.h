// What tests ask of the device that stands in for NVIDIA's (driver.cpp).
#ifndef TEST_CUDA_DEVICE_H
#define TEST_CUDA_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum test_device_call {
    TEST_LAUNCH,
    TEST_COPY,
    TEST_PIN, // always refused
    TEST_EXCHANGE
} test_device_call;

// Lets the n-th such call from now on (from 1) go wrong. `refused`: the call is an
// error and does nothing. Else the work fails when the stream does it; from then on
// every call is an error, as CUDA has it.
void test_device_fail(test_device_call call, int64_t n, bool refused);
// How many devices there are (1 at first), and which one is open; -1: none.
void test_device_set_count(int count);
int test_device_opened(void);
void test_device_set_memory(size_t bytes); // of each; 16 GiB at first
// Does it give memory in pages? At first it does. The bytes of all pages that are
// mapped, and those that were copied in no stream.
void test_device_set_paged(bool paged);
size_t test_device_taken(void);
int64_t test_device_moved(void);
// Does the device reach all these bytes of the host's memory?
bool test_device_reaches(const void *memory, size_t bytes);
// Do the devices of several ranks exchange by themselves? At first they do not. And how
// often they have done so.
void test_device_set_peers(bool there);
int64_t test_device_exchanges(void);
// How many products of 16 bits had an operand of which some row does not begin at a
// multiple of 16 bytes: fast tensor cores are for those that do.
int test_device_crooked(void);
// And how many had an extent that is no multiple of 16 bytes, which cuBLAS asks for,
// too (its documentation, "Tensor Core Usage").
int test_device_odd(void);
// And how many were to sum fast (tr_cuda_product.fast).
int test_device_fast(void);
// Attention is this library's; NULL, as at first: there is none.
struct tr_cuda_attention_library;
void test_device_set_attention(const struct tr_cuda_attention_library *library);
// From now on the host may touch all that it takes, and has taken: for a program that
// computes there in the device's place, such as PyTorch. It has to wait for streams.
void test_device_open(void);
int test_device_wait(void *stream);
// Nothing fails any more.
void test_device_mend(void);

#ifdef __cplusplus
}
#endif
#endif

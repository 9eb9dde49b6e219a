// Devices of several processes on one machine that exchange by memory that they share,
// in place of NCCL.
#ifndef TEST_CUDA_PEERS_H
#define TEST_CUDA_PEERS_H

#include "cuda/device.h"

#include <functional>

extern "C" {
#include "backend/cuda/driver.h"
}

// tr_cuda_driver's functions of these names.
const char *test_peers_missing(void);
int test_peers_invite(void *invitation);
int test_peers_join(const void *invitation, int members, int member, void **peers);
int test_peers_state(void *peers, bool *busy);
int test_peers_exchange(const tr_cuda_exchange *parts, int count, void *peers,
                        void *stream);
int test_peers_leave(void *peers, bool broken);

// Of the device (driver.cpp): an exchange into a stream; whether a call is the one that
// fails.
void test_put_exchange(void *stream, std::function<void()> work);
// (*refused: when it is put in).
bool test_is_chosen(test_device_call call, bool *refused);

#endif

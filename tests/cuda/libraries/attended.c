// Before `main`, gives the device for tests attention by cuDNN, whose stand-in is
// linked.
#include "backend/cuda/driver_cudnn.h"
#include "cuda/device.h"

static const tr_cuda_attention_library library = {
    .version = tr__cudnn_version, .ready = tr__cudnn_ready, .attend = tr__cudnn_attend};

__attribute__((constructor)) static void bring(void) {
    test_device_set_attention(&library);
}

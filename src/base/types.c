#include <tranche/types.h>

#include "base/checked.h"

#include <string.h>

static const struct {
    size_t bytes;
    const char *name;
} dtype_table[] = {
#define TR_DTYPE_ROW(name, bytes, st) {bytes, st},
    TR_DTYPE_LIST(TR_DTYPE_ROW)
#undef TR_DTYPE_ROW
};

size_t tr_dtype_bytes(tr_dtype dtype) {
    return (unsigned)dtype < TR_DTYPE_COUNT ? dtype_table[dtype].bytes : 0;
}

const char *tr_dtype_name(tr_dtype dtype) {
    return (unsigned)dtype < TR_DTYPE_COUNT ? dtype_table[dtype].name : "";
}

tr_dtype tr_dtype_find(const char *name) {
    for (int i = 1; name && i < TR_DTYPE_COUNT; i++) {
        if (strcmp(dtype_table[i].name, name) == 0) {
            return (tr_dtype)i;
        }
    }
    return TR_NONE;
}

int64_t tr_shape_count(tr_shape shape) {
    int64_t count = 1;
    for (int i = 0; i < shape.rank; i++) {
        if (shape.dim[i] < 0 || !tr__mul_i64(count, shape.dim[i], &count)) {
            return -1;
        }
    }
    return count;
}

int64_t tr_tensor_bytes(tr_tensor_desc desc) {
    int64_t bytes = 0;
    if (desc.dtype == TR_NONE) {
        return 0;
    }
    int64_t count = tr_shape_count(desc.shape);
    if (count < 0 || !tr__mul_i64(count, (int64_t)tr_dtype_bytes(desc.dtype), &bytes)) {
        return -1;
    }
    return bytes;
}

bool tr_shape_equal(tr_shape a, tr_shape b) {
    if (a.rank != b.rank) {
        return false;
    }
    for (int i = 0; i < a.rank; i++) {
        if (a.dim[i] != b.dim[i]) {
            return false;
        }
    }
    return true;
}

#include "base/crc32c.h"

tr_crc32c tr__crc32c_begin(void) {
    tr_crc32c crc;
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t rest = i;
        for (int bit = 0; bit < 8; bit++) {
            rest = rest & 1 ? rest >> 1 ^ UINT32_C(0x82f63b78) : rest >> 1;
        }
        crc.table[i] = rest;
    }
    return crc;
}

uint32_t tr__crc32c(const tr_crc32c *crc, const void *data, size_t bytes) {
    const unsigned char *at = data;
    uint32_t sum = UINT32_MAX;
    for (size_t i = 0; i < bytes; i++) {
        sum = sum >> 8 ^ crc->table[(sum ^ at[i]) & 0xff];
    }
    return ~sum;
}

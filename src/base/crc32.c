#include "base/crc32.h"

tr_crc32 tr__crc32_begin(uint32_t polynomial) {
    tr_crc32 crc;
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t rest = i;
        for (int bit = 0; bit < 8; bit++) {
            rest = rest & 1 ? rest >> 1 ^ polynomial : rest >> 1;
        }
        crc.table[i] = rest;
    }
    return crc;
}

uint32_t tr__crc32(const tr_crc32 *crc, uint32_t sum, const void *data, size_t bytes) {
    const unsigned char *at = data;
    sum = ~sum;
    for (size_t i = 0; i < bytes; i++) {
        sum = sum >> 8 ^ crc->table[(sum ^ at[i]) & 0xff];
    }
    return ~sum;
}

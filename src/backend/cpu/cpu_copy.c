#include "backend/cpu/copy.h"
#include "backend/cpu/isa.h"

#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

extern const tr_copy_kernel TR_ISA_NAME(tr__copy_cpu);

enum { LINE = 64 };

// One line of the cache; `to` is aligned to it.
#if defined(__AVX512F__)
static inline void stream_line(const char *from, char *to) {
    _mm512_stream_si512((__m512i *)(void *)to, _mm512_loadu_si512(from));
}
#elif defined(__AVX2__)
static inline void stream_line(const char *from, char *to) {
    const __m256i_u *source = (const __m256i_u *)(const void *)from;
    __m256i *target = (__m256i *)(void *)to;
    __m256i low = _mm256_loadu_si256(source), high = _mm256_loadu_si256(source + 1);
    _mm256_stream_si256(target, low);
    _mm256_stream_si256(target + 1, high);
}
#elif defined(__SSE2__)
static inline void stream_line(const char *from, char *to) {
    const __m128i_u *source = (const __m128i_u *)(const void *)from;
    __m128i *target = (__m128i *)(void *)to;
    __m128i line[4];
    for (int i = 0; i < 4; i++) {
        line[i] = _mm_loadu_si128(source + i);
    }
    for (int i = 0; i < 4; i++) {
        _mm_stream_si128(target + i, line[i]);
    }
}
#else
static inline void stream_line(const char *from, char *to) {
    memcpy(to, from, LINE);
}
#endif

static void copy(const void *from, int64_t bytes, void *to) {
    const char *source = from;
    char *target = to;
    int64_t head = (LINE - (int64_t)((uintptr_t)target % LINE)) % LINE;
    head = head < bytes ? head : bytes;
    memcpy(target, source, (size_t)head);
    int64_t at = head;
    for (; at + LINE <= bytes; at += LINE) {
        stream_line(source + at, target + at);
    }
    memcpy(target + at, source + at, (size_t)(bytes - at));
#if defined(__SSE2__)
    _mm_sfence(); // before anybody is told that it is there
#endif
}

const tr_copy_kernel TR_ISA_NAME(tr__copy_cpu) = {copy};

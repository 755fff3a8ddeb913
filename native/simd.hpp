// Runtime dispatch to wider vectors: a function marked RANKWISE_CLONES is compiled once for the
// baseline and once for each listed instruction set, and the loader picks the widest one the
// machine has. The variants hold no fused multiply-add (-ffp-contract=off), so a function that
// fixes its own order of summation returns the same bits in all of them.
#pragma once

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__gnu_linux__) && \
    !defined(RANKWISE_NO_CLONES)
#define RANKWISE_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define RANKWISE_CLONES
#endif

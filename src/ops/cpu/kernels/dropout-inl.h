// Dropout's random bits (core/numeric/philox.h) as vectors.
// Sixteen neighbouring elements of a row lie in sixteen Philox blocks, so that one vector (or two)
// of blocks makes 128 elements.
#if defined(FINETUNE_CPU_DROPOUT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FINETUNE_CPU_DROPOUT_INL_H_
#undef FINETUNE_CPU_DROPOUT_INL_H_
#else
#define FINETUNE_CPU_DROPOUT_INL_H_
#endif

#include "core/numeric/philox.h"
#include "ops/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace finetune::HWY_NAMESPACE {

constexpr int64_t kDropoutGroup = 128;

// The Philox state of kLanes/2 blocks. A word is in the low half of a 64-bit lane, as the 32x32-bit
// product needs it; the high half is ignored.
struct PhiloxLanes {
  using D = hn::ScalableTag<uint64_t>;
  using V = hn::Vec<D>;
  V c[4];

  HWY_INLINE void rounds(PhiloxKey key) {
    const D d;
    const hn::Repartition<uint32_t, D> half;
    const auto low_product = [&](V x, uint32_t factor) HWY_ATTR {
      return hn::MulEven(hn::BitCast(half, x), hn::Set(half, factor));
    };
    for (int round = 0; round < 10; ++round) {
      const V a = low_product(c[0], 0xD2511F53u);
      const V b = low_product(c[2], 0xCD9E8D57u);
      c[0] = hn::Xor(hn::Xor(hn::ShiftRight<32>(b), c[1]), hn::Set(d, key.low));
      c[1] = b;
      c[2] = hn::Xor(hn::Xor(hn::ShiftRight<32>(a), c[3]), hn::Set(d, key.high));
      c[3] = a;
      key.low += 0x9E3779B9u;
      key.high += 0xBB67AE85u;
    }
  }
};

// factors[e] = 0 or dropout.scale for elements [128*group, 128*group + 128) of the row.
HWY_INLINE void dropout_group(const Dropout& dropout, uint32_t row, uint32_t sample, uint32_t group,
                              float* HWY_RESTRICT factors) {
  const PhiloxLanes::D d;
  const Floats df;
  const hn::RebindToSigned<Floats> di;
  const auto last_dropped = hn::Set(di, int32_t(dropout.threshold) - 1);
  const auto scale = hn::Set(df, dropout.scale);
  for (int64_t part = 0; part < 16; part += kLanes) {
    PhiloxLanes even, odd;  // blocks part, part + 2, ... and part + 1, part + 3, ...
    const auto index = hn::Iota(d, 0);
    even.c[0] = hn::Add(hn::Add(index, index), hn::Set(d, 16 * uint64_t{group} + uint64_t(part)));
    odd.c[0] = hn::Add(even.c[0], hn::Set(d, 1));
    even.c[1] = odd.c[1] = hn::Set(d, row);
    even.c[2] = odd.c[2] = hn::Set(d, sample);
    even.c[3] = odd.c[3] = hn::Set(d, dropout.step);
    even.rounds(dropout.key);
    odd.rounds(dropout.key);
    for (int word = 0; word < 4; ++word) {
      const auto low = hn::And(even.c[word], hn::Set(d, 0xFFFFFFFFu));
      const auto both = hn::BitCast(di, hn::Or(low, hn::ShiftLeft<32>(odd.c[word])));
      const auto first = hn::And(both, hn::Set(di, 0xFFFF));
      const auto second = hn::And(hn::ShiftRight<16>(both), hn::Set(di, 0xFFFF));
      const auto factor = [&](auto bits) HWY_ATTR {
        return hn::IfThenElseZero(hn::RebindMask(df, hn::Gt(bits, last_dropped)), scale);
      };
      hn::StoreU(factor(first), df, factors + 32 * word + part);
      hn::StoreU(factor(second), df, factors + 32 * word + 16 + part);
    }
  }
}

// Factors of elements [begin, begin + count) of the row. Returns their address in `buffer`, which
// holds count + 256 floats.
HWY_INLINE const float* dropout_range(const Dropout& dropout, uint32_t row, uint32_t sample,
                                      int64_t begin, int64_t count, float* buffer) {
  const int64_t first = begin / kDropoutGroup;
  for (int64_t group = first; group * kDropoutGroup < begin + count; ++group) {
    dropout_group(dropout, row, sample, uint32_t(group), buffer + (group - first) * kDropoutGroup);
  }
  return buffer + (begin - first * kDropoutGroup);
}

}  // namespace finetune::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // FINETUNE_CPU_DROPOUT_INL_H_

// Activation functions and their derivatives as vectors.
#if defined(FINETUNE_CPU_ACTIVATION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FINETUNE_CPU_ACTIVATION_INL_H_
#undef FINETUNE_CPU_ACTIVATION_INL_H_
#else
#define FINETUNE_CPU_ACTIVATION_INL_H_
#endif

#include "ops/backend.h"
#include "ops/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace finetune::HWY_NAMESPACE {

constexpr float kTanhScale = 0.79788456080286536f;  // sqrt(2 / pi)
constexpr float kTanhCubic = 0.044715f;
constexpr float kBellScale = 0.39894228040143268f;  // 1 / sqrt(2 pi)

// 0.5 * (1 + tanh(u)) is sigmoid(2u), which stays precise when tanh is near -1.
template <class D, class V>
HWY_INLINE V tanh_gate(D d, V x) {
  const V slope = hn::MulAdd(hn::Mul(x, x), hn::Set(d, 2 * kTanhScale * kTanhCubic),
                             hn::Set(d, 2 * kTanhScale));
  return sigmoid(d, hn::Mul(x, slope));
}

template <Activation kKind, class D, class V>
HWY_INLINE V value(D d, V x) {
  if constexpr (kKind == Activation::gelu) return hn::Mul(x, normal(d, x).below);
  if constexpr (kKind == Activation::gelu_tanh) return hn::Mul(x, tanh_gate(d, x));
  if constexpr (kKind == Activation::relu) return hn::Max(hn::Zero(d), x);
  if constexpr (kKind == Activation::silu) return hn::Mul(x, sigmoid(d, x));
  if constexpr (kKind == Activation::tanh) return tanh_of(d, x);
}

template <Activation kKind, class D, class V>
HWY_INLINE V derivative(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  if constexpr (kKind == Activation::gelu) {
    const auto n = normal(d, x);
    return hn::MulAdd(hn::Mul(x, hn::Set(d, kBellScale)), n.bell, n.below);
  }
  if constexpr (kKind == Activation::gelu_tanh) {
    const V gate = tanh_gate(d, x);
    const V slope = hn::MulAdd(hn::Mul(x, x), hn::Set(d, 6 * kTanhScale * kTanhCubic),
                               hn::Set(d, 2 * kTanhScale));
    return hn::MulAdd(hn::Mul(hn::Mul(x, slope), gate), hn::Sub(one, gate), gate);
  }
  if constexpr (kKind == Activation::relu) {
    return hn::IfThenElseZero(hn::Gt(x, hn::Zero(d)), one);
  }
  if constexpr (kKind == Activation::silu) {
    const V s = sigmoid(d, x);
    return hn::MulAdd(hn::Mul(x, s), hn::Sub(one, s), s);
  }
  if constexpr (kKind == Activation::tanh) {
    return tanh_slope(d, x);
  }
}

template <template <Activation, class> class Rows, Activation kKind, class Call>
void run_typed(const Call& call, int64_t begin, int64_t end) {
  call.x.dtype == DType::bf16 ? Rows<kKind, bfloat16>::run(call, begin, end)
                              : Rows<kKind, float>::run(call, begin, end);
}

// Calls Rows<call.f, T>::run(call, begin, end), with T the type of call.x.
template <template <Activation, class> class Rows, class Call>
void run_rows(const Call& call, int64_t begin, int64_t end) {
  switch (call.f) {
    case Activation::gelu:
      return run_typed<Rows, Activation::gelu>(call, begin, end);
    case Activation::gelu_tanh:
      return run_typed<Rows, Activation::gelu_tanh>(call, begin, end);
    case Activation::relu:
      return run_typed<Rows, Activation::relu>(call, begin, end);
    case Activation::silu:
      return run_typed<Rows, Activation::silu>(call, begin, end);
    case Activation::tanh:
      return run_typed<Rows, Activation::tanh>(call, begin, end);
  }
}

}  // namespace finetune::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // FINETUNE_CPU_ACTIVATION_INL_H_

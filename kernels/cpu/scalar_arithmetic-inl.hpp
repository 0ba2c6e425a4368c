// The arithmetic type of the scalar target: one float, with a true `fma`. For processors without a SIMD target that has
// one, and to check the others. Included inside the target's namespace: no guard, no includes.

using F32 = float;
using U32 = std::uint32_t;
inline constexpr std::size_t kLanes = 1;

using element::bfloat16_from_float_bits;
using element::constant;
using element::float_bits_from_bfloat16;
using element::float_of;
using element::fma;
using element::if_at_most;
using element::max;
using element::sqrt;

inline std::uint32_t max(std::uint32_t a, std::uint32_t b) { return a > b ? a : b; }
inline float fold(float value) { return value; }
inline float splat(float value) { return value; }
inline std::uint32_t bits_of(float value) { return element::bits_of_float(value); }
inline bool any_nan(float value) { return value != value; }
inline float largest(float value) { return value; }
inline std::uint32_t largest(std::uint32_t value) { return value; }

inline float load_vector(const float* from) { return *from; }
inline float load_vector(const Float16* from) { return element::float_from_float16(from->bits); }
inline float load_vector(const BFloat16* from) {
  return element::float_of_bits(float_bits_from_bfloat16(std::uint32_t{from->bits}));
}
inline float load_vector(const double* from) { return static_cast<float>(*from); }

template <Store>
void store_vector(float value, float* to) {
  *to = value;
}
template <Store>
void store_vector(float value, Float16* to) {
  to->bits = static_cast<std::uint16_t>(element::float16_from_float_bits(bits_of(value)));
}
template <Store>
void store_vector(float value, BFloat16* to) {
  to->bits = static_cast<std::uint16_t>(bfloat16_from_float_bits(bits_of(value)));
}

template <class Out>
float rounded_to(float value) {
  Out stored;
  store_vector<Store::kCached>(value, &stored);
  return load_vector(&stored);
}

using F64Lanes = double;
inline double zero_lanes() { return 0.0; }
inline double fold(double a) { return a; }
inline double load_lanes(const double* from) { return *from; }
inline void store_lanes(double a, double* to) { *to = a; }
inline double add_squares(float x, double sum) { return fma(double{x}, double{x}, sum); }

inline void prefetch(const void*) {}
inline void finish_streaming() {}

#pragma once
// The state of a loss scaler: 8 bytes that live where the passes run.
#include <cstdint>

namespace gradfuse {

struct LossScale {
  float scale = 65536.0f;
  std::int32_t growth_tracker = 0;  ///< Applied steps since the scale last changed.
};

}  // namespace gradfuse

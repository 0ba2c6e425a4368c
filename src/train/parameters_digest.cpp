#include <gradfuse/train/parameters_digest.hpp>

#include <fmt/format.h>
#include <xxhash.h>

#include <memory>
#include <new>

namespace gradfuse::train {

std::string parameters_digest(const ParameterSet& params) {
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(), &XXH3_freeState);
  if (state == nullptr) throw std::bad_alloc();
  XXH3_64bits_reset(state.get());
  for (const Parameter& parameter : params.parameters()) {
    XXH3_64bits_update(state.get(), parameter.param.data, parameter.param.num_bytes());
  }
  return fmt::format("{:016x}", XXH3_64bits_digest(state.get()));
}

}  // namespace gradfuse::train

#include <gradfuse/train/parameters_digest.hpp>

#include <fmt/format.h>
#include <xxhash.h>

#include <cstddef>
#include <memory>
#include <new>
#include <vector>

namespace gradfuse::train {

std::string parameters_digest(const ParameterSet& params) {
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(), &XXH3_freeState);
  if (state == nullptr) throw std::bad_alloc();
  XXH3_64bits_reset(state.get());
  std::vector<std::byte> bytes;
  for (const Parameter& parameter : params.parameters()) {
    bytes.resize(parameter.param.num_bytes());
    copy_to_host(*params.backend(), parameter.param, bytes.data());
    XXH3_64bits_update(state.get(), bytes.data(), bytes.size());
  }
  return fmt::format("{:016x}", XXH3_64bits_digest(state.get()));
}

}  // namespace gradfuse::train

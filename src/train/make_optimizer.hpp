#pragma once
// The optimizer that options of one or the other kind stand for.
#include <gradfuse/optimizer.hpp>
#include <gradfuse/unfused_chain.hpp>

#include <memory>

namespace gradfuse::train {

/// `params` must outlive it and stay where it is.
std::unique_ptr<Optimizer> make_optimizer(const ParameterSet& params, const UnfusedChain::Options& options);

}  // namespace gradfuse::train

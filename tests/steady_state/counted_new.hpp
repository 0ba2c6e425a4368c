#pragma once
#include <atomic>
#include <cstddef>

extern std::atomic<std::size_t> num_allocations;

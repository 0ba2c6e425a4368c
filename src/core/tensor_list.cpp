#include <fmt/format.h>

#include <gradfuse/error.hpp>
#include <gradfuse/passes.hpp>

#include "src/backend/backend.hpp"
#include "src/core/address_ranges.hpp"
#include "src/core/check_view.hpp"

namespace gradfuse {

ConstTensorList::ConstTensorList(std::vector<ConstTensorView> views, std::shared_ptr<const Backend> backend)
    : backend_(std::move(backend)), views_(std::move(views)) {
  if (backend_ == nullptr) throw Error("the backend is null; make one with cpu_backend()");
  std::vector<std::size_t> numels;
  for (std::size_t tensor = 0; tensor < views_.size(); ++tensor) {
    check_view(views_[tensor], *backend_, fmt::format("tensor {} of the list", tensor));
    numels.push_back(views_[tensor].numel);
  }
  table_ = backend_->make_work_table(numels);
}

TensorList::TensorList(std::vector<TensorView> views, std::shared_ptr<const Backend> backend)
    : ConstTensorList({views.begin(), views.end()}, std::move(backend)), writable_(std::move(views)) {
  AddressRanges memory;
  for (std::size_t tensor = 0; tensor < writable_.size(); ++tensor) {
    const TensorView& view = writable_[tensor];
    if (const auto other = memory.overlapping(view.data, view.num_bytes())) {
      throw Error(
          fmt::format("tensors {} and {} of the list share memory; a pass would write it twice", *other, tensor));
    }
    memory.insert(view.data, view.num_bytes(), tensor);
  }
}

}  // namespace gradfuse

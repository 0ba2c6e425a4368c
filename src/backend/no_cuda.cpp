// In place of the CUDA backend where it is not built.
#include <gradfuse/backend.hpp>
#include <gradfuse/error.hpp>

namespace gradfuse {

std::string why_no_cuda() { return "gradfuse was built without the CUDA backend"; }

std::shared_ptr<const Backend> cuda_backend(const CudaOptions&) { throw Error("no CUDA: " + why_no_cuda()); }

}  // namespace gradfuse

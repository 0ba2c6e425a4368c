// Walking a run of elements vector by vector: whole vectors, and at the ends a part of one, through a small buffer, so
// that an odd length or address never sends a whole chunk to scalar code. Included per target: no guard, no includes.

struct Whole {};
struct Part {
  std::size_t count;  // less than kLanes
};

GF_ELEMENT std::size_t count(Whole) { return kLanes; }
GF_ELEMENT std::size_t count(Part part) { return part.count; }
/// 0 where a vector is one element, which g++ does not see: it warns of copies past the buffer (13, fortified).
template <class T>
GF_ELEMENT std::size_t num_bytes(Part part) {
  return kLanes == 1 ? 0 : part.count * sizeof(T);
}

template <class T>
GF_ELEMENT F32 load(const T* from, Whole) {
  return load_vector(from);
}
template <class T>
GF_ELEMENT F32 load(const T* from, Part part) {
  T padded[kLanes] = {};
  std::memcpy(padded, from, num_bytes<T>(part));
  return load_vector(padded);
}
template <Store kStore = Store::kCached, class T>
GF_ELEMENT void store(F32 value, T* to, Whole) {
  store_vector<kStore>(value, to);
}
template <Store kStore = Store::kCached, class T>
GF_ELEMENT void store(F32 value, T* to, Part part) {
  T padded[kLanes];
  store_vector<Store::kCached>(value, padded);
  std::memcpy(to, padded, num_bytes<T>(part));
}

/// Calls `body(i, lanes)` for the elements from `begin`, `lanes` a `Whole` or a `Part`.
template <class Body>
GF_ELEMENT void for_each_vector(std::size_t begin, std::size_t numel, Body body) {
  std::size_t i = begin;
  for (; i + kLanes <= numel; i += kLanes) body(i, Whole{});
  if (i < numel) body(i, Part{numel - i});
}

/// The same, with a `Part` first so that `out` is aligned to the vector that a streaming store of it writes.
template <Store kStore, class T, class Body>
GF_ELEMENT void for_each_stored_vector(T* out, std::size_t numel, Body body) {
  std::size_t head = 0;
  if constexpr (kStore == Store::kStreaming) {
    constexpr std::size_t kBytes = kLanes * sizeof(T);
    const std::size_t past = reinterpret_cast<std::uintptr_t>(out) % kBytes;
    head = past == 0 ? 0 : (kBytes - past) / sizeof(T);
    if (head > numel) head = numel;
    if (head > 0) body(0, Part{head});
  }
  for_each_vector(head, numel, body);
  if constexpr (kStore == Store::kStreaming) finish_streaming();
}

/// Hints what the loop reaches in 4 KiB: the hardware's prefetchers stop at each page. Every 32 bytes, so that each
/// line is hinted twice: once was slower on Zen 4 (stats 4.3 ms against 3.3 on 31M elements), as if some hints were
/// dropped.
template <class T>
GF_ELEMENT void prefetch_ahead(const T* at) {
  for (std::size_t i = 0; i < kLanes * sizeof(T); i += 32) {
    prefetch(reinterpret_cast<const char*>(at) + 4096 + i);
  }
}

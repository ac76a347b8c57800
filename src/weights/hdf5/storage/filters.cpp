// Undoes deflate, shuffle and the Fletcher checksum.
#include "weights/hdf5/storage/filters.h"

#include <zlib.h>

#include <algorithm>
#include <new>

#include "weights/hdf5/checksums.h"

namespace finetune::hdf5 {
namespace {

constexpr const char* kFilters = "list of filters";
constexpr size_t kChecksumBytes = 4;

std::string inflated(const std::string& stored, uint64_t most) {
  std::string out(size_t(most), '\0');
  uLongf size = out.size();
  const int result = ::uncompress(reinterpret_cast<Bytef*>(out.data()), &size,
                                  reinterpret_cast<const Bytef*>(stored.data()), stored.size());
  if (result == Z_MEM_ERROR) throw std::bad_alloc();
  if (result != Z_OK) throw fault("its compressed data are damaged");
  out.resize(size);
  return out;
}

// Undoes shuffle: stored are all first bytes of the elements, then all second ones, ...; leftover
// bytes stay at the end.
std::string unshuffled(const std::string& stored, size_t element_size) {
  const size_t count = stored.size() / element_size;
  std::string out = stored;
  for (size_t byte = 0; byte < element_size; ++byte) {
    for (size_t i = 0; i < count; ++i) out[i * element_size + byte] = stored[byte * count + i];
  }
  return out;
}

void check_sum(std::string& stored) {
  if (stored.size() < kChecksumBytes) throw fault("its data are cut short");
  const size_t size = stored.size() - kChecksumBytes;
  Cursor end(std::string_view(stored).substr(size), {}, "checksum");
  if (end.u32() != fletcher32({stored.data(), size})) {
    throw fault("its data do not match their checksum: the file is damaged");
  }
  stored.resize(size);
}

}  // namespace

std::vector<Filter> parse_filters(std::string_view message, Widths widths) {
  constexpr uint16_t kFirstOwn = 256;  // filters from here on are not HDF5's own and have names
  Cursor at(message, widths, kFilters);
  const uint8_t version = at.u8(), count = at.u8();
  if (version != 1 && version != 2) throw fault("its ", kFilters, " is of version ", version);
  if (version == 1) at.skip(6);
  std::vector<Filter> filters;
  for (int i = 0; i < count; ++i) {
    const uint16_t id = at.u16();
    const bool named = version == 1 || id >= kFirstOwn;
    const uint64_t name_size = named ? at.u16() : 0;
    at.skip(2);  // optional flag
    const uint64_t values = at.u16();
    at.skip(name_size + 4 * values + (version == 1 && values % 2 == 1 ? 4 : 0));
    if (id < uint16_t(Filter::deflate) || id > uint16_t(Filter::fletcher32)) {
      throw fault("its values went through filter ", id,
                  ", which is not read: only gzip, shuffle and fletcher32 are");
    }
    if (std::find(filters.begin(), filters.end(), Filter(id)) != filters.end()) {
      throw fault("its ", kFilters, " has one twice");
    }
    filters.push_back(Filter(id));
  }
  return filters;
}

std::string unfiltered(std::string stored, const std::vector<Filter>& filters, uint32_t skipped,
                       uint64_t size, uint32_t element_size) {
  for (size_t i = filters.size(); i-- > 0;) {
    if (skipped >> i & 1) continue;
    switch (filters[i]) {
      case Filter::deflate:
        stored = inflated(stored, size + kChecksumBytes);  // a checksum may have been applied first
        break;
      case Filter::shuffle:
        stored = unshuffled(stored, element_size);
        break;
      case Filter::fletcher32:
        check_sum(stored);
        break;
    }
  }
  if (stored.size() != size) {
    throw fault("a chunk of it has ", stored.size(), " bytes, not ", size);
  }
  return stored;
}

}  // namespace finetune::hdf5

// Reads a dataset's description from the messages of its header, and its values.
#include "weights/hdf5/dataset.h"

#include <algorithm>

#include "core/error.h"
#include "weights/hdf5/numbers.h"
#include "weights/stored_tensor.h"

namespace finetune::hdf5 {
namespace {

Fault too_little(const Dataset& dataset) {
  return fault("its shape is ", shape_text(dataset.shape), ", but it has only ", dataset.stored,
               " bytes of data");
}

void find_chunks(Bytes& bytes, const Space& space, Dataset& dataset) {
  if (dataset.layout.element_size != dataset.type.size) {
    throw fault("has chunks of elements of ", dataset.layout.element_size, " bytes, not ",
                dataset.type.size);
  }
  dataset.chunks = read_chunks(bytes, dataset.layout, space);
  for (const Chunk& chunk : dataset.chunks) {
    dataset.stored += chunk.size;
    if (dataset.stored > bytes.size()) throw fault("has chunks that share their data");
  }
}

void find_values(Bytes& bytes, Dataset& dataset) {
  const Layout& layout = dataset.layout;
  if (layout.kind == Layout::Kind::compact) {
    dataset.stored = layout.compact.size();
  } else if (layout.address != kUndefined) {
    dataset.stored = layout.size == kUndefined ? dataset.bytes : layout.size;
  }
  if (dataset.stored != dataset.bytes) throw too_little(dataset);
  if (layout.kind == Layout::Kind::contiguous && dataset.stored > 0) {
    dataset.position = bytes.position(layout.address, dataset.stored, "data");
  }
}

// Converts piece by piece, without a copy of all values.
void convert_stored(const Bytes& bytes, const Dataset& dataset, float* out) {
  constexpr uint64_t kPiece = 1 << 18;  // elements
  const uint64_t size = dataset.type.size, count = dataset.bytes / size;
  std::string piece(size_t(std::min(kPiece, count) * size), '\0');
  for (uint64_t first = 0; first < count; first += kPiece) {
    const uint64_t elements = std::min(kPiece, count - first);
    read_stored(bytes, dataset, first * size, elements * size, piece.data());
    to_floats(dataset.type, piece.data(), elements, out + first);
  }
}

// Copies the part of a chunk inside the dataset, one run of the last dimension at a time.
void place_chunk(const Dataset& dataset, std::vector<int64_t> corner, const std::string& values,
                 float* out) {
  const std::vector<int64_t>&shape = dataset.shape, &sides = dataset.layout.chunk_shape;
  const size_t rank = shape.size(), last = rank - 1;
  std::vector<int64_t> inside(rank), at(rank, 0);
  for (size_t d = 0; d < rank; ++d) inside[d] = std::min(sides[d], shape[d] - corner[d]);
  for (bool more = true; more;) {
    int64_t from = 0, to = 0;
    for (size_t d = 0; d < rank; ++d) {
      from = from * sides[d] + at[d];
      to = to * shape[d] + corner[d] + at[d];
    }
    to_floats(dataset.type, values.data() + from * int64_t(dataset.type.size),
              uint64_t(inside[last]), out + to);
    more = false;
    for (size_t d = last; d-- > 0 && !more;) {
      more = ++at[d] < inside[d];
      if (!more) at[d] = 0;
    }
  }
}

void convert_chunks(const Bytes& bytes, const Dataset& dataset, float* out) {
  const Layout& layout = dataset.layout;
  const std::vector<int64_t> counts = chunk_counts(dataset.shape, layout.chunk_shape);
  const uint64_t chunk_bytes = bytes_of(layout.chunk_shape, layout.element_size);
  std::vector<int64_t> corner(counts.size());
  for (size_t i = 0; i < dataset.chunks.size(); ++i) {
    const Chunk& chunk = dataset.chunks[i];
    std::string values(size_t(chunk.size), '\0');
    bytes.read(chunk.position, chunk.size, values.data());
    values = unfiltered(std::move(values), layout.filters, chunk.skipped, chunk_bytes,
                        dataset.type.size);
    int64_t rest = int64_t(i);
    for (size_t d = counts.size(); d-- > 0;) {
      corner[d] = rest % counts[d] * layout.chunk_shape[d];
      rest /= counts[d];
    }
    place_chunk(dataset, corner, values, out);
  }
}

}  // namespace

Dataset read_dataset(Bytes& bytes, const std::vector<Message>& header) {
  const Widths widths = bytes.widths();
  const Message* type = find_message(header, MessageType::datatype);
  const Message* space = find_message(header, MessageType::dataspace);
  Dataset dataset;
  dataset.layout = read_layout(header, widths);
  if (!type || !space) throw fault("is not a dataset");
  dataset.type = parse_type(type->body, widths);
  const Space elements = parse_space(space->body, widths);
  if (elements.is_null) throw fault("has no values");
  dataset.shape = elements.shape;
  dataset.bytes = bytes_of(dataset.shape, dataset.type.size);
  if (dataset.bytes == kUndefined) {
    throw fault("its shape ", shape_text(dataset.shape), " is larger than any file");
  }
  if (dataset.layout.kind == Layout::Kind::chunked) {
    find_chunks(bytes, elements, dataset);
  } else {
    find_values(bytes, dataset);
  }
  return dataset;
}

void read_stored(const Bytes& bytes, const Dataset& dataset, uint64_t offset, uint64_t size,
                 void* out) {
  FINETUNE_CHECK(offset <= dataset.bytes && size <= dataset.bytes - offset);
  if (dataset.layout.kind == Layout::Kind::compact) {
    dataset.layout.compact.copy(static_cast<char*>(out), size_t(size), size_t(offset));
  } else if (dataset.layout.kind == Layout::Kind::contiguous) {
    bytes.read(dataset.position + offset, size, out);
  } else {
    throw fault("is stored in chunks");
  }
}

void read_floats(const Bytes& bytes, const Dataset& dataset, float* out) {
  if (dataset.bytes == 0) return;
  if (dataset.layout.kind == Layout::Kind::chunked) {
    convert_chunks(bytes, dataset, out);
  } else if (is_plain_float(dataset.type)) {
    read_stored(bytes, dataset, 0, dataset.bytes, out);
  } else {
    convert_stored(bytes, dataset, out);
  }
}

}  // namespace finetune::hdf5

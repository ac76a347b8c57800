// Uploads and queued downloads keep the order of the device's work.
#include <doctest/doctest.h>

#include <algorithm>
#include <vector>

#include "op_case.h"
#include "shared.h"

namespace finetune::test {
namespace {

// A missing GPU is a skip.
template <typename Body>
void for_each_backend(Device device, Body&& body) {
  bool any = false;
  for (const BackendFactory& factory : backends_under_test()) {
    if (factory.device != device) continue;
    const std::unique_ptr<Backend> backend = factory.make();
    if (!backend) continue;
    INFO("backend ", factory.name, ": ", backend->description());
    body(*backend);
    any = true;
  }
  if (!any) skip("no CUDA device");
}

// The largest copies, as many as allowed, collected in between and after all places were reused.
void check_posted(Backend& backend) {
  const auto memory = backend.allocate(kMostQueuedBytes);
  auto post = [&](int64_t number) {
    const std::vector<char> bytes(kMostQueuedBytes, char(number));
    backend.upload(memory.get(), bytes.data(), bytes.size());
    backend.start_download(memory.get(), bytes.size());
  };
  auto collect = [&] {
    std::vector<char> bytes(kMostQueuedBytes);
    backend.finish_download(bytes.data(), bytes.size());
    CHECK(std::count(bytes.begin(), bytes.end(), bytes[0]) == int64_t(bytes.size()));
    return int64_t(bytes[0]);
  };
  int64_t next = 0;
  for (int64_t oldest = 0; oldest < 2 * kMostQueued + 3; ++oldest) {
    while (next < oldest + kMostQueued) post(next++);
    CHECK_THROWS(post(next));
    CHECK(collect() == oldest);
  }
  for (int64_t left = 1; left < kMostQueued; ++left) collect();
  CHECK_THROWS(collect());
}

// Each is added to a sum before the next one arrives, so a late or early copy is visible.
void check_uploads(Backend& backend, int64_t count, int64_t uploads) {
  const size_t bytes = size_t(count) * sizeof(float);
  const auto input = backend.allocate(bytes), sum = backend.allocate(bytes);
  auto view = [&](const auto& memory) { return vector(static_cast<float*>(memory.get()), count); };
  std::vector<float> host(static_cast<size_t>(count));
  for (int64_t number = 1; number <= uploads; ++number) {
    for (int64_t i = 0; i < count; ++i) host[size_t(i)] = float(number * (i % 100));
    backend.upload(input.get(), host.data(), bytes);
    std::fill(host.begin(), host.end(), -1.0f);
    backend.add(view(input), view(sum));
  }
  backend.download(host.data(), sum.get(), bytes);
  int64_t wrong = 0;
  const int64_t total = uploads * (uploads + 1) / 2;
  for (int64_t i = 0; i < count; ++i) wrong += host[size_t(i)] != float(total * (i % 100));
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("copies that the CPU's host collects later") {
  for_each_backend(Device::cpu, check_posted);
  check_posted(*make_reference_backend());
}

TEST_CASE("copies that the GPU's host collects later") {
  for_each_backend(Device::gpu, check_posted);
}

TEST_CASE("the GPU takes uploads in the order of its work, and the host goes on") {
  for_each_backend(Device::gpu, [](Backend& backend) {
    check_uploads(backend, 70001, 150);  // several pieces
    check_uploads(backend, 4200001, 2);  // straight into place, more pieces than are in flight
  });
}

}  // namespace finetune::test

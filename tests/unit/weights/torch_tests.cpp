// pytorch_model.bin: pickles and zip archives put together by hand.
#include <doctest/doctest.h>

#include <functional>

#include "../contains.h"
#include "unit/weights/torch_maker.h"
#include "unit/weights/weights_test.h"
#include "weights/torch/pickle.h"

using namespace finetune;
using namespace finetune::test;

namespace {

// The message of a refused pickle; empty if it runs.
std::string pickle_refusal(const std::string& bytes) {
  return error_line(ExitCode::model, [&] { Unpickler("p", bytes).run(); });
}

std::string model_refusal(const std::string& pickle, const std::string& data = kFour,
                          ZipOptions options = {}) {
  TemporaryDirectory directory;
  write_bytes(directory / "pytorch_model.bin",
              zip_of({{"m/data.pkl", pickle}, {"m/data/0", data}}, options));
  return refusal(directory / "pytorch_model.bin");
}

}  // namespace

TEST_CASE("a zip archive, with and without zip64, gives views of its storages") {
  for (bool zip64 : {false, true}) {
    CAPTURE(zip64);
    TemporaryDirectory directory;
    std::string pickle = state_dict("w", tensor(storage("FloatStorage", "0", 4), 0,
                                                integer(2) + integer(2), integer(1) + integer(2)));
    write_bytes(directory / "pytorch_model.bin",
                zip_of({{"m/data.pkl", pickle}, {"m/data/0", kFour}}, {.zip64 = zip64}));
    auto source = open_weights(directory.path());
    REQUIRE(source->find("w") != nullptr);
    CHECK(values_of(*source, *source->find("w")) == std::vector<float>{1, 3, 2, 4});
  }
}

TEST_CASE("half, bfloat and nested state dicts") {
  TemporaryDirectory directory;
  std::string inner =
      "}(" + text("h") + tensor(storage("HalfStorage", "0", 8), 1, integer(1), integer(1)) +
      text("b") + tensor(storage("BFloat16Storage", "1", 1), 0, integer(1), integer(1)) + "u";
  std::string pickle =
      "\x80\x02}(" + text("epoch") + integer(3) + text("state_dict") + inner + "u.";
  write_bytes(directory / "x.bin",
              zip_of({{"m/data.pkl", pickle},
                      {"m/data/0", std::string("\0\0\0\x3c", 4) + kFour.substr(4)},
                      {"m/data/1", "\x40\x40"}}));
  auto source = open_weights(directory / "x.bin");
  CHECK(values_of(*source, *source->find("h")) == std::vector<float>{1});
  CHECK(values_of(*source, *source->find("b")) == std::vector<float>{3});
}

TEST_CASE("tensors that do not fit their storage are refused") {
  auto of = [](int offset, const std::string& size, const std::string& stride) {
    return model_refusal(
        state_dict("w", tensor(storage("FloatStorage", "0", 4), offset, size, stride)));
  };
  const std::string two = integer(2), one = integer(1);
  CHECK(of(0, two + two, two + one) == "");
  CHECK(of(2, two, one) == "");
  CHECK(contains(of(1, two + two, two + one), "does not fit"));
  CHECK(contains(of(0, two + two, integer(3) + one), "does not fit"));
  CHECK(contains(of(5, integer(0), one), "does not fit"));
  CHECK(contains(of(0, integer(100000), integer(0)), "does not fit"));
  CHECK(contains(of(-1, two, one), "damaged"));
  CHECK(contains(of(0, integer(-2), one), "damaged"));
  CHECK(contains(of(0, two, integer(-1)), "damaged"));
  CHECK(contains(of(0, two, one + one), "damaged"));
  const std::string large = integer(2000000000);
  CHECK(contains(of(0, large + large + large, large + large + one), "does not fit"));
  CHECK(
      contains(model_refusal(state_dict("w", tensor(storage("FloatStorage", "0", 4), 0, two, one)),
                             kFour.substr(0, 7)),
               "does not fit"));
  CHECK(
      contains(model_refusal(state_dict("w", tensor(storage("FloatStorage", "9", 4), 0, two, one))),
               "'9' is missing"));
}

TEST_CASE("archives that PyTorch does not write are refused") {
  std::string pickle =
      state_dict("w", tensor(storage("FloatStorage", "0", 4), 0, integer(4), integer(1)));
  CHECK(model_refusal(pickle) == "");
  CHECK(contains(model_refusal(pickle, kFour, {.method = 8}), "is compressed"));
  CHECK(contains(model_refusal(pickle, kFour, {.flags = 1}), "is encrypted"));
  TemporaryDirectory directory;
  auto refused = [&](const std::string& bytes) {
    write_bytes(directory / "a.bin", bytes);
    return refusal(directory / "a.bin");
  };
  CHECK(contains(refused(zip_of({{"readme", "x"}})), "without data.pkl"));
  CHECK(contains(refused(zip_of({{"m/data.pkl", pickle}, {"m/data.pkl", pickle}})), "two entries"));
  CHECK(contains(refused(zip_of({{"m/data.pkl", pickle}, {"m/byteorder", "big"}})), "big-endian"));
  CHECK(
      contains(refused(std::string(257, '\0') + "ustar" + std::string(300, '\0')), "tar archive"));
  CHECK(contains(refused("hello"), "is not a weight file"));
  CHECK(contains(refused("\x80\x02K\x01."), "not one that torch.save wrote"));
}

TEST_CASE("only the opcodes and globals of weights run") {
  const std::string begin = "\x80\x02";
  CHECK(pickle_refusal(begin + "N.") == "");
  CHECK(contains(pickle_refusal(begin + global("os", "system") + text("true") + "\x85R."),
                 "'os.system', which weights do not need"));
  for (const char* module :
       {"builtins", "sys", "posix", "nt", "subprocess", "torch.serialization"}) {
    CHECK(contains(pickle_refusal(begin + global(module, "eval") + "."), "nothing was executed"));
  }
  for (int opcode = 0; opcode < 256; ++opcode) {
    bool allowed = std::string_view(
                       "\x80\x81\x85\x86\x87\x88\x89\x8a\x8f"
                       "cRb(t)]}aesuNJKMGXUhjqrQ.")
                       .find(char(opcode)) != std::string_view::npos;
    std::string message = pickle_refusal(begin + char(opcode));
    CAPTURE(opcode);
    CHECK(!message.empty());
    CHECK(contains(message, "does not occur") == !allowed);
  }
}

TEST_CASE("pickles out of order are refused") {
  const std::string begin = "\x80\x02";
  for (const std::string& body :
       std::initializer_list<std::string>{"",
                                          "\x80",
                                          ".",
                                          "t",
                                          "\x87",
                                          "R",
                                          "b",
                                          "a",
                                          "e",
                                          "s",
                                          "u",
                                          "h\x01",
                                          "Q",
                                          "(.",
                                          "NN.",
                                          "Na.",
                                          "}Ns.",
                                          "}(Nu.",
                                          "](",
                                          "X\xff\xff\xff\xffz",
                                          "J\x01",
                                          "G\x01",
                                          "\x8a\x09z",
                                          "cnoline",
                                          "}(a.",
                                          "(R",
                                          global("torch", "FloatStorage") + ")R.",
                                          "NNb.",
                                          global("torch._utils", "_rebuild_tensor_v2") + ")R.",
                                          global("collections", "OrderedDict") + "N\x85R.",
                                          "(NNNNNtQ.",
                                          "\x80\x04."}) {
    CAPTURE(body);
    CHECK(!pickle_refusal(begin + body).empty());
  }
}

TEST_CASE("numbers") {
  auto value = [](const std::string& body) {
    std::string bytes = "\x80\x02" + body + ".";
    return Unpickler("p", bytes).run().integer;
  };
  CHECK(value("K\xff") == 255);
  CHECK(value("M\xff\xff") == 65535);
  CHECK(value(integer(-7)) == -7);
  CHECK(value(std::string("\x8a\x00", 2)) == 0);
  CHECK(value("\x8a\x01\xff") == -1);
  CHECK(value(std::string("\x8a\x03\x00\x00\x01", 5)) == 65536);
  CHECK(value("\x8a\x08" + little(int64_t{-5000000000})) == -5000000000);
}

TEST_CASE("memory stays bounded") {
  CHECK(contains(pickle_refusal("\x80\x02" + std::string(5'000'000, '(')), "more operations"));
  CHECK(contains(pickle_refusal("\x80\x02" + std::string(5'000'000, '}')), "more operations"));
  // A list that contains itself, and one nested a million deep.
  std::string cyclic =
      "\x80\x02]q\x01h\x01"
      "a.";
  CHECK(pickle_refusal(cyclic) == "");
  std::string deep = "\x80\x02" + std::string(1'000'000, ']') + std::string(999'999, 'a') + ".";
  CHECK(pickle_refusal(deep) == "");
}

namespace {

std::string claims_refusal(const WeightSource& source, const std::vector<std::string>& names) {
  std::vector<const WeightInfo*> wanted;
  for (const std::string& name : names) wanted.push_back(source.find(name));
  return error_line(ExitCode::model, [&] { source.require_own_bytes(wanted); });
}

}  // namespace

TEST_CASE("tensors that are read have bytes of their own") {
  TemporaryDirectory directory;
  const std::string four = storage("FloatStorage", "0", 4), two = integer(2), one = integer(1);
  std::string pickle = "\x80\x02}(";
  auto add = [&](const std::string& name, int offset, int size, int stride) {
    pickle += text(name) + tensor(four, offset, integer(size), integer(stride));
  };
  add("all", 0, 4, 1);
  add("again", 0, 4, 1);
  add("low", 0, 2, 1);
  add("high", 2, 2, 1);
  add("middle", 1, 2, 1);
  add("even", 0, 2, 2);
  add("odd", 1, 2, 2);
  add("none", 0, 0, 1);
  add("cls.predictions.decoder.weight", 0, 4, 1);  // tied, and never read
  write_bytes(directory / "x.bin", zip_of({{"m/data.pkl", pickle + "u."}, {"m/data/0", kFour}}));
  auto source = open_weights(directory / "x.bin");
  for (const std::vector<std::string>& names : std::initializer_list<std::vector<std::string>>{
           {}, {"all"}, {"low", "high"}, {"high", "none", "low"}, {"even", "odd"}}) {
    CHECK(claims_refusal(*source, names) == "");
  }
  std::string message = claims_refusal(*source, {"all", "again"});
  CHECK(contains(message, "the 2 tensors that the model needs take 32 bytes, but only 16 bytes"));
  CHECK(contains(message, (directory / "x.bin").string()));
  CHECK(contains(claims_refusal(*source, {"low", "middle"}), "take 16 bytes, but only 12"));
  CHECK(contains(claims_refusal(*source, {"low", "high", "middle"}), "take 24 bytes, but only 16"));
  CHECK(contains(claims_refusal(*source, {"low", "low"}), "take 16 bytes, but only 8"));
}

TEST_CASE("a pickle's memory is bounded by its operations") {
  // A tuple of 100,000 in the memo, and copies of it: seven bytes for each copy of 800 kB.
  std::string begin = "\x80\x02(" + std::string(100'000, 'N') + "tq\x01";
  std::string copies;
  for (int i = 0; i < 20'000; ++i) copies += global("torch", "Size") + "h\x01\x85R";
  CHECK(contains(pickle_refusal(begin + copies + "."), "a torch.Size of 100000 dimensions"));
  const std::string rebuild = global("torch._utils", "_rebuild_tensor_v2") + "q\x02";
  begin = "\x80\x02]((" + storage("FloatStorage", "0", 4) + integer(0) + "))" +
          std::string(100'000, 'N') + "tq\x01" + rebuild + "e";
  for (int i = 0; i < 20'000; ++i) begin += "h\x02h\x01Ra";
  CHECK(pickle_refusal(begin + ".") == "");  // 16 GB if all arguments were kept
}

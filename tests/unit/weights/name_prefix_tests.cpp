// Prefixes that wrappers add to the names of tensors.
#include <doctest/doctest.h>

#include "../contains.h"
#include "weights/name_prefix.h"

using namespace finetune;
using finetune::test::contains;

namespace {

using Names = std::vector<std::string>;

std::string removed(const Names& names) {
  const NamePrefix found = find_name_prefix(names, {.base_prefix = "bert."});
  CHECK(found.advice.empty());
  return found.removed;
}

std::string advice(const Names& names) {
  const NamePrefix found = find_name_prefix(names, {.base_prefix = "bert."});
  CHECK(found.removed.empty());
  return found.advice;
}

const std::string kWords = "embeddings.word_embeddings.weight";

}  // namespace

TEST_CASE("a wrapper's prefix is found by the word embedding") {
  CHECK(removed({"bert." + kWords, "classifier.weight"}).empty());
  CHECK(removed({kWords, "encoder.layer.0.output.dense.bias"}).empty());
  CHECK(removed({"encoder." + kWords, "encoder.encoder.layer.0.output.dense.bias"}) == "encoder.");
  for (const char* prefix : {"module.", "_orig_mod.", "model.", "encoder.", "net.", "0.auto_model.",
                             "model._orig_mod.", "module.module.", "bert."}) {
    CAPTURE(prefix);
    CHECK(removed({"loss.weight", prefix + ("bert." + kWords)}) == prefix);
  }
  CHECK(removed({"student.bert." + kWords, "loss.weight"}) == "student.");
  // Any other name, if without it all names fit.
  CHECK(removed({"mymodel.bert." + kWords, "mymodel.classifier.weight"}) == "mymodel.");
  CHECK(removed({"a.b.c." + kWords, "a.b.c.encoder.layer.0.output.dense.bias"}) == "a.b.c.");
  // A second copy, such as averaged weights, is not the model.
  CHECK(removed({"bert." + kWords, "ema.bert." + kWords}).empty());
}

TEST_CASE("names that do not fit are told, with a way") {
  CHECK(contains(advice({"mymodel.bert." + kWords, "fc.weight"}),
                 "begin with 'mymodel.', where 'bert."));
  CHECK(contains(advice({"mymodel.bert." + kWords, "fc.weight"}), "removeprefix"));
  CHECK(contains(advice({"roberta." + kWords}), "begin with 'roberta.'"));
  CHECK(contains(advice({"a." + kWords, "model." + kWords}),
                 "2 models, whose names begin with 'a.', 'model.'"));
  CHECK(contains(advice({"x", "y"}), "no tensor is a word embedding"));
  CHECK(contains(advice({"x", "y"}), "it holds 'x', 'y'"));
  CHECK(contains(advice({"my" + kWords}), "it holds 'myembeddings."));
}

TEST_CASE("modules inside names are left out") {
  CHECK(without_inner_wrappers("_fsdp_wrapped_module.bert.encoder.layer.0._fsdp_wrapped_module."
                               "_checkpoint_wrapped_module.output.dense.bias") ==
        "bert.encoder.layer.0.output.dense.bias");
  CHECK(without_inner_wrappers("bert." + kWords) == "bert." + kWords);
}

TEST_CASE("of a part of a model module and _orig_mod are left out") {
  CHECK(find_name_prefix({"module.a", "module.b"}, {.base_prefix = "bert."}).removed == "module.");
  CHECK(find_name_prefix({"_orig_mod.a", "b"}, {}).removed == "_orig_mod.");
  CHECK(find_name_prefix({}, {}).removed.empty());
  CHECK(find_name_prefix({"model." + kWords}, {}).removed.empty());
}

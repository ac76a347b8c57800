// Keeps opened pipes, the last task and checksums of files for the next run.
#include "train/run/shared_inputs.h"

#include "train/options/config_file.h"
#include "train/options/option_values.h"

namespace finetune {
std::string SharedInputs::key(const TrainOptions& options) {
  std::string key;
  const std::vector<ConfigItem> items = config_items(options);
  const bool draws = options.eval_fraction != 0 || options.task == name_of(TaskKind::mlm);
  for (const TrainOption& option : train_options()) {
    const OptionInfo& info = option.info;
    const bool is_read = info.group == "Data" || info.group == "Model" || info.group == "Task" ||
                         info.name == "no-ngram-baseline";
    const bool is_drawn = info.name == "seed" && draws;
    if (!is_read && !is_drawn) continue;
    for (const ConfigItem& item : items) {
      if (item.name == info.name) key += write_config({item}, "");
    }
  }
  return is_quick(options) ? key + "a new head" : key;
}

DataFiles SharedInputs::open(const TrainOptions& options, const std::function<void()>& check_stop) {
  TrainOptions files = options;
  auto without_pipes = [&](std::vector<std::string>& paths) {
    std::erase_if(paths, [&](const std::string& path) { return pipes_.contains(path); });
  };
  without_pipes(files.train);
  without_pipes(files.eval);
  const DataFiles opened = open_data(files, check_stop);
  for (const InputFile& file : opened.all()) {
    if (file.copy) pipes_.emplace(file.name.string(), file);
  }
  auto in_order = [&](const std::vector<std::string>& paths) {
    std::vector<InputFile> out;
    for (const std::string& path : paths) {
      const auto pipe = pipes_.find(path);
      out.push_back(pipe == pipes_.end() ? InputFile(path) : pipe->second);
    }
    return out;
  };
  return {in_order(options.train), in_order(options.eval)};
}

std::shared_ptr<Task> SharedInputs::read(const TrainOptions& options, const DataFiles& data,
                                         const ModelFiles& model, const WeightSource& source,
                                         const std::vector<std::string>& label_order) {
  const std::string key = SharedInputs::key(options);
  const bool known = task_ && key == key_;
  // The order that the data has anyway is the same as no given order.
  const bool same_order = known && (label_order == label_order_ ||
                                    (label_order_.empty() && label_order == task_->labels()));
  if (!same_order) {
    task_.reset();  // before the next task is read: data may be large
    task_ = read_task(options, data, model, source, label_order);
    key_ = key;
    label_order_ = label_order;
  } else {
    require_options_of(task_->kind(), options);
    task_->take_loss_options(task_options(options));
  }
  return task_;
}

std::shared_ptr<Fingerprint> SharedInputs::sum(const std::vector<InputFile>& files, ExitCode code) {
  std::string key;
  for (const InputFile& file : files) key += file.content.string() + "\n";
  std::shared_ptr<Fingerprint>& sum = sums_[key];
  if (!sum) sum = std::make_shared<Fingerprint>(files, code);
  return sum;
}

void SharedInputs::wait_for_sums() {
  for (const auto& [files, sum] : sums_) sum->result();
}

}  // namespace finetune

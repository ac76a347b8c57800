#!/usr/bin/env python3
"""Makes tests/golden/family/nomic_bert with torch and transformers 5.24 or later.

    PEER_PYTHON scripts/generate/make_nomic_golden.py [--check electra]

The vocabulary, texts and windows are those of ELECTRA's golden files. transformers has no class for answers, so that
model is NomicBertModel with a linear layer; its config.json has the keys of the published models. --check makes
nothing: it compares the steps of another architecture's golden model with those in its trajectories.
"""
import csv
import json
import shutil
import sys
from pathlib import Path

import torch
import transformers
from safetensors.torch import load_file, save_file

FAMILY = Path(__file__).resolve().parents[2] / "tests/golden/family"
TARGET, SOURCE = FAMILY / "nomic_bert", FAMILY / "electra"
SIZES = {"vocab_size": 405, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
         "intermediate_size": 48, "max_position_embeddings": 128, "initializer_range": 0.12}
PUBLISHED = {"activation_function": "swiglu", "architectures": ["NomicBertModel"], "attn_pdrop": 0.0, "embd_pdrop": 0.0,
             "initializer_range": 0.12, "layer_norm_epsilon": 1e-12, "mlp_fc1_bias": False, "mlp_fc2_bias": False,
             "model_type": "nomic_bert", "n_embd": 32, "n_head": 4, "n_inner": 48, "n_layer": 2, "n_positions": 128,
             "parallel_block": False, "prenorm": False, "qkv_proj_bias": False, "resid_pdrop": 0.0,
             "rotary_emb_base": 1000, "rotary_emb_fraction": 1.0, "rotary_emb_interleaved": False,
             "rotary_emb_scale_base": None, "rotary_scaling_factor": None, "type_vocab_size": 2,
             "use_rms_norm": False, "vocab_size": 405}
NO_DECAY = ["bias", "layernorm", "rmsnorm", r"(?:^|\.)norm(?:$|\.)", r"_norm(?:$|\.)"]
NOTE = "float64 arithmetic, stored as float32; dropout 0; rows at padded positions are meaningless"


class Answers(torch.nn.Module):
    """NomicBertModel with a linear layer for starts and ends of answers."""

    def __init__(self, config):
        super().__init__()
        self.nomic_bert = transformers.NomicBertModel(config)
        self.qa_outputs = torch.nn.Linear(config.hidden_size, 2)
        torch.nn.init.normal_(self.qa_outputs.weight, 0, config.initializer_range)

    def forward(self, **inputs):
        return span_output(self.nomic_bert(**inputs).last_hidden_state, self.qa_outputs)


def span_output(states, layer):
    start, end = layer(states).split(1, -1)
    return transformers.modeling_outputs.QuestionAnsweringModelOutput(
        start_logits=start.squeeze(-1), end_logits=end.squeeze(-1), hidden_states=(states,))


def stored_names(name):
    """Converts a parameter's name to the name in the model's files. The caller joins the parts of Wqkv."""
    for old, new in (("embeddings.LayerNorm", "emb_ln"), (".layers.", ".encoder.layers."),
                     ("self_attn.o_proj", "attn.out_proj"), ("up_proj", "fc11"), ("gate_proj", "fc12"),
                     ("down_proj", "fc2"), ("post_attention_layernorm", "norm1"), ("post_mlp_layernorm", "norm2")):
        name = name.replace(old, new)
    return name


def as_stored(tensors):
    out = {}
    for name, tensor in tensors.items():
        if "q_proj" in name:
            parts = [tensors[name.replace("q_proj", part)] for part in ("q_proj", "k_proj", "v_proj")]
            out[stored_names(name).replace("self_attn.q_proj", "attn.Wqkv")] = torch.cat(parts)
        elif "k_proj" not in name and "v_proj" not in name:
            out[stored_names(name)] = tensor.contiguous()
    return out


def perturbed(model):
    for name, parameter in model.named_parameters():
        if parameter.dim() == 1:
            torch.nn.init.normal_(parameter.data, 1.0 if "norm" in name.lower() and name.endswith("weight") else 0.0, 0.1)
    return model


def span_loss(logits, positions, mask):
    logits = logits.masked_fill(mask == 0, float("-inf"))
    return torch.nn.functional.cross_entropy(logits, positions)


def forward(model, name, wanted):
    """Stores a forward pass, and the gradients of the parameters for which wanted(name) is true."""
    given = load_file(SOURCE / f"forward-{name}.safetensors")
    inputs = {key[3:]: value.long() for key, value in given.items() if key.startswith("in.")}
    keys = {key: inputs[key] for key in ("input_ids", "attention_mask", "token_type_ids") if key in inputs}
    model = model.double()
    out = {f"in.{key}": value.int() for key, value in inputs.items()}
    if name == "qa":
        result = model(**keys)
        loss = sum(span_loss(result[f"{end}_logits"], inputs[f"{end}_positions"], keys["attention_mask"])
                   for end in ("start", "end")) / 2
        out.update(start_logits=result.start_logits, end_logits=result.end_logits, encoder=result.hidden_states[0])
    else:
        result = model(**keys, labels=inputs["labels"], output_hidden_states=True)
        loss = result.loss
        chosen = inputs["labels"] >= 0
        out["logits"] = result.logits[chosen] if name == "mlm" else result.logits
        if name == "mlm":
            out["encoder"] = result.hidden_states[-1]
        else:
            out.update({f"hidden.{i}": state for i, state in enumerate(result.hidden_states)})
    loss.backward()
    gradients = as_stored({key: p.grad for key, p in model.named_parameters() if p.grad is not None})
    out.update({f"grad.{key}": value for key, value in gradients.items() if wanted(key)}, loss=loss.reshape(1))
    metadata = load_metadata(SOURCE / f"forward-{name}.safetensors")
    save_file({key: value.detach().float().contiguous() if value.is_floating_point() else value
               for key, value in out.items()}, TARGET / f"forward-{name}.safetensors", metadata | {"note": NOTE})
    model.float().zero_grad()


def load_metadata(path):
    from safetensors import safe_open
    with safe_open(path, "pt") as file:
        return file.metadata()


def rows(tokenizer, labels):
    with open(FAMILY / "trajectory-classification-train.csv", newline="", encoding="utf-8") as file:
        table = list(csv.DictReader(file))
    for begin in range(0, len(table), 8):
        part = table[begin:begin + 8]
        encoded = tokenizer([row["text"] for row in part], truncation=True, max_length=40, padding=True,
                            return_tensors="pt")
        yield encoded, torch.tensor([labels[row["category"]] for row in part])


def windows(tokenizer, path):
    """Yields (ids, types, start, end) of each window of 96 tokens, which overlaps the one before by 32 tokens."""
    cls, sep = tokenizer.cls_token_id, tokenizer.sep_token_id
    for paragraph in json.loads(path.read_text())["data"][0]["paragraphs"]:
        context = tokenizer(paragraph["context"], add_special_tokens=False, return_offsets_mapping=True)
        ids, offsets = context["input_ids"], context["offset_mapping"]
        for question in paragraph["qas"]:
            asked = tokenizer(question["question"], add_special_tokens=False)["input_ids"]
            answer = question["answers"][0]
            begin, end = answer["answer_start"], answer["answer_start"] + len(answer["text"])
            room, at = 96 - len(asked) - 3, 0
            while True:
                held = range(at, min(at + room, len(ids)))
                first = [i for i in held if offsets[i][0] <= begin]
                last = [i for i in held if offsets[i][1] >= end]
                inside = offsets[held[0]][0] <= begin and offsets[held[-1]][1] >= end
                shift = len(asked) + 2 - at
                yield ([cls, *asked, sep, *(ids[i] for i in held), sep], [0] * (len(asked) + 2) + [1] * (len(held) + 1),
                       first[-1] + shift if inside else 0, last[0] + shift if inside else 0)
                if held[-1] + 1 == len(ids):
                    break
                at += room - 32


def spans(tokenizer, path):
    every = list(windows(tokenizer, path))
    for begin in range(0, len(every), 4):
        part = every[begin:begin + 4]
        size = max(len(ids) for ids, *_ in part)
        def filled(lists):
            return torch.tensor([x + [0] * (size - len(x)) for x in lists])
        inputs = {"input_ids": filled([ids for ids, *_ in part]), "token_type_ids": filled([types for _, types, *_ in part]),
                  "attention_mask": filled([[1] * len(ids) for ids, *_ in part])}
        yield inputs, torch.tensor([[start, end] for *_, start, end in part])


def steps(model, batches, task, common):
    """Trains with Trainer's arithmetic. Returns the steps, and the parameters without weight decay."""
    keep = set(transformers.trainer_pt_utils.get_parameter_names(model, [torch.nn.LayerNorm], NO_DECAY))
    named = list(model.named_parameters())
    optimizer = torch.optim.AdamW([{"params": [p for n, p in named if n in keep], "weight_decay": common["weight_decay"]},
                                   {"params": [p for n, p in named if n not in keep], "weight_decay": 0.0}],
                                  lr=common["lr"])
    scheduler = transformers.get_scheduler("linear", optimizer, num_warmup_steps=2, num_training_steps=20)
    taken = []
    for number, (inputs, labels) in zip(range(1, 21), batches, strict=True):
        if task == "qa":
            result = model(**inputs)
            loss = sum(span_loss(result[f"{end}_logits"], labels[:, i], inputs["attention_mask"])
                       for i, end in enumerate(("start", "end"))) / 2
        else:
            loss = model(**inputs, labels=labels).loss
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), common["max_grad_norm"])
        taken.append({"step": number, "loss": loss.item(), "lr": scheduler.get_last_lr()[0], "grad_norm": norm.item()})
        optimizer.step()
        scheduler.step()
        optimizer.zero_grad()
    return taken, sorted({stored_names(n) for n, _ in named if n not in keep})


def trajectory(model, folder, task):
    """Returns ELECTRA's trajectory with steps of this model. `folder`: the folder of this model's architecture."""
    known = json.loads((SOURCE / f"trajectory-{task}.json").read_text())
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_file=str(SOURCE / "classification/tokenizer.json"), pad_token="[PAD]", cls_token="[CLS]",
        sep_token="[SEP]", model_input_names=["input_ids", "token_type_ids", "attention_mask"])
    batches = (rows(tokenizer, json.loads((SOURCE / "classification/config.json").read_text())["label2id"])
               if task == "classification" else spans(tokenizer, SOURCE / "trajectory-qa-train.json"))
    known["steps"], known["no_decay"] = steps(model.train(), batches, task, known)
    return {**known, **{key: known[key].replace(SOURCE.name, folder) for key in ("model", "train")}}


def check(name):
    for task, of_class in (("classification", transformers.AutoModelForSequenceClassification),
                           ("qa", transformers.AutoModelForQuestionAnswering)):
        model = of_class.from_pretrained(FAMILY / name / task)
        made = trajectory(model, name, task)
        known = json.loads((FAMILY / name / f"trajectory-{task}.json").read_text())
        print(task, max(abs(a["loss"] / b["loss"] - 1) for a, b in zip(made["steps"], known["steps"])),
              max(abs(a["grad_norm"] / b["grad_norm"] - 1) for a, b in zip(made["steps"], known["steps"])))


def save(model, folder, config=None):
    folder.mkdir(parents=True)
    if config:
        save_file(as_stored(model.state_dict()), folder / "model.safetensors", {"format": "pt"})
        (folder / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")
    else:
        model.save_pretrained(folder)
    for name in ("tokenizer.json", "tokenizer_config.json", "vocab.txt"):
        if (SOURCE / folder.name / name).exists():
            shutil.copyfile(SOURCE / folder.name / name, folder / name)
            (folder / name).write_text((folder / name).read_text().replace("ElectraTokenizer", "BertTokenizer"))


def main():
    transformers.logging.disable_progress_bar()
    if sys.argv[1:2] == ["--check"]:
        return check(sys.argv[2])
    shutil.rmtree(TARGET, ignore_errors=True)
    labels = json.loads((SOURCE / "classification/config.json").read_text())["id2label"]
    torch.manual_seed(91)
    of_rows = perturbed(transformers.NomicBertForSequenceClassification(transformers.NomicBertConfig(
        **SIZES, id2label=labels, label2id={name: int(i) for i, name in labels.items()})))
    of_answers = perturbed(Answers(transformers.NomicBertConfig(**SIZES)))
    of_words = perturbed(transformers.NomicBertForMaskedLM(transformers.NomicBertConfig(**SIZES)))
    save(of_rows, TARGET / "classification")
    save(of_answers, TARGET / "qa", PUBLISHED)
    save(of_words, TARGET / "mlm")
    shutil.copyfile(SOURCE / "trajectory-qa-train.json", TARGET / "trajectory-qa-train.json")
    forward(of_rows, "classification", lambda name: True)
    forward(of_answers, "qa", lambda name: "word_embeddings" not in name)
    forward(of_words, "mlm", lambda name: name.startswith("cls.") or "word_embeddings" in name)
    for model, task in ((of_rows, "classification"), (of_answers, "qa")):
        result = trajectory(model, TARGET.name, task)
        (TARGET / f"trajectory-{task}.json").write_text(json.dumps(result, indent=1, sort_keys=True) + "\n")


main()

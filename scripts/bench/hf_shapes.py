"""Model directories with random weights: an architecture, its shape, and a real vocabulary."""
import os
from pathlib import Path

SHAPES = {"minilm": (6, 384, 12, 1536), "base": (12, 768, 12, 3072), "large": (24, 1024, 16, 4096)}

# For each architecture: the vocabulary's folder, and the settings in which its published base model differs.
WORDPIECE, BYTES = "bert-base-uncased", "roberta-base"
ROBERTA = {"max_position_embeddings": 514, "type_vocab_size": 1, "layer_norm_eps": 1e-5, "pad_token_id": 1,
           "bos_token_id": 0, "eos_token_id": 2}
ARCHITECTURES = {
    "bert": (WORDPIECE, {}),
    "distilbert": (WORDPIECE, {}),
    "roberta": (BYTES, {"vocab_size": 50265, **ROBERTA}),
    "xlm-roberta": (BYTES, {"vocab_size": 250002, **ROBERTA}),
    "camembert": (BYTES, {"vocab_size": 50265, **ROBERTA}),
    "electra": (WORDPIECE, {"embedding_size": 768}),
    "modernbert": (BYTES, {"classifier_pooling": "mean", "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2,
                           "cls_token_id": 0, "sep_token_id": 2}),
    "nomic_bert": (WORDPIECE, {"vocab_size": 30528, "max_position_embeddings": 2048}),
    "mpnet": (WORDPIECE, {"max_position_embeddings": 514}),
    "deberta-v2": (WORDPIECE, {
        "vocab_size": 128100, "type_vocab_size": 0, "relative_attention": True, "position_buckets": 256,
        "max_relative_positions": -1, "norm_rel_ebd": "layer_norm", "share_att_key": True,
        "pos_att_type": ["p2c", "c2p"], "position_biased_input": False, "layer_norm_eps": 1e-7}),
    "albert": (WORDPIECE, {"vocab_size": 30522, "embedding_size": 128, "inner_group_num": 1, "num_hidden_groups": 1}),
}
NARROW = {"electra": 128}  # embeddings of the small shape


def shape_of(architecture, shape):
    """Returns layers, width, heads and inner width: those of the published base model if it has its own shape."""
    layers, hidden, heads, inner = SHAPES[shape]
    if architecture == "modernbert":
        layers, inner = {"minilm": (6, 576), "base": (22, 1152)}.get(shape, (28, 2624))
    if architecture == "distilbert":
        layers //= 2
    return layers, hidden, heads, inner


def config_of(architecture, shape):
    from transformers import AutoConfig
    layers, hidden, heads, inner = shape_of(architecture, shape)
    named = {"num_hidden_layers": layers, "hidden_size": hidden, "num_attention_heads": heads,
             "intermediate_size": inner}
    if architecture == "distilbert":
        named = {"n_layers": layers, "dim": hidden, "n_heads": heads, "hidden_dim": inner}
    changes = {**ARCHITECTURES[architecture][1]}
    if shape != "base" and architecture in NARROW:
        changes["embedding_size"] = NARROW[architecture]
    return AutoConfig.for_model(architecture, **named, **changes)


def write_encoder(architecture, shape, vocabularies, output):
    """Writes a random model. Its vocabulary may be another architecture's: only the number of tokens matters."""
    import torch
    from transformers import AutoModel, PreTrainedTokenizerFast
    torch.manual_seed(1)
    source = Path(vocabularies) / ARCHITECTURES[architecture][0]
    AutoModel.from_config(config_of(architecture, shape)).save_pretrained(output)
    PreTrainedTokenizerFast(tokenizer_file=str(source / "tokenizer.json"), **special_tokens(source)).save_pretrained(output)


def special_tokens(source):
    if source.name == WORDPIECE:
        return {"cls_token": "[CLS]", "sep_token": "[SEP]", "pad_token": "[PAD]", "unk_token": "[UNK]", "mask_token": "[MASK]"}
    return {"cls_token": "<s>", "sep_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>", "mask_token": "<mask>",
            "bos_token": "<s>", "eos_token": "</s>"}


def write_shape(model, shape, output):
    """Writes a BERT with the tokenizer of `model`, and with its other settings if it has weights, else the defaults."""
    from transformers import AutoConfig, AutoTokenizer, BertConfig, BertModel
    tokenizer = AutoTokenizer.from_pretrained(model)
    if os.path.exists(os.path.join(model, "model.safetensors")):
        config = AutoConfig.from_pretrained(model)
    else:
        config = BertConfig(vocab_size=len(tokenizer))
    config.num_hidden_layers, config.hidden_size, config.num_attention_heads, config.intermediate_size = SHAPES[shape]
    BertModel(config).save_pretrained(output)
    tokenizer.save_pretrained(output)

"""Makes a tokenizer and a config from texts, without a pretrained model, for quality_encoders.py.

    pretrained.py TEXTS.csv ARCHITECTURE DIRECTORY
"""
import csv
import sys
from pathlib import Path

WORDS, LENGTH = 4096, 128
SPECIAL = {"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>", "mask_token": "<mask>"}
SHAPE = {"num_hidden_layers": 4, "hidden_size": 256, "num_attention_heads": 4}
IDS = {"vocab_size": WORDS, "bos_token_id": 0, "pad_token_id": 1, "eos_token_id": 2}
CONFIGS = {
    "roberta": {**SHAPE, **IDS, "intermediate_size": 1024, "max_position_embeddings": LENGTH + 2, "type_vocab_size": 1,
                "layer_norm_eps": 1e-5},
    "modernbert": {**SHAPE, **IDS, "intermediate_size": 384, "max_position_embeddings": LENGTH, "local_attention": 16,
                   "classifier_pooling": "mean", "cls_token_id": 0, "sep_token_id": 2},
}


def write_tokenizer(texts, directory):
    """Byte-level BPE with RoBERTa's special tokens."""
    from tokenizers import ByteLevelBPETokenizer, processors
    from transformers import PreTrainedTokenizerFast
    bpe = ByteLevelBPETokenizer()
    bpe.train_from_iterator(texts, vocab_size=WORDS, min_frequency=2, show_progress=False,
                            special_tokens=list(SPECIAL.values()))
    bpe.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    bpe.save(str(directory / "tokenizer.json"))
    PreTrainedTokenizerFast(tokenizer_file=str(directory / "tokenizer.json"), cls_token="<s>", sep_token="</s>",
                            model_max_length=LENGTH, **SPECIAL).save_pretrained(directory)


def main():
    from transformers import AutoConfig
    data, architecture, directory = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    directory.mkdir(parents=True)
    AutoConfig.for_model(architecture, **CONFIGS[architecture]).save_pretrained(directory)
    with open(data, encoding="utf-8", newline="") as file:
        write_tokenizer([row["text"] for row in csv.DictReader(file)], directory)


main()

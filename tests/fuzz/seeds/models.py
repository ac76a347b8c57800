"""Configurations and vocabularies of models."""
import base64
import hashlib
import json
import struct

CONFIG = {"model_type": "bert", "architectures": ["BertForSequenceClassification"], "vocab_size": 100, "hidden_size": 8,
          "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16, "max_position_embeddings": 16,
          "type_vocab_size": 2, "hidden_act": "gelu", "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.0,
          "classifier_dropout": None, "layer_norm_eps": 1e-12, "initializer_range": 0.02, "pad_token_id": 0,
          "id2label": {"0": "no", "1": "yes"}, "label2id": {"no": 0, "yes": 1}, "problem_type": "single_label_classification",
          "position_embedding_type": "absolute", "finetune": {
              "task": "classification", "text_column": ["text"], "text_pair_column": "", "label_column": "label",
              "max_length": 16, "multi_label": "|", "label_smoothing": 0.1, "class_weights": [1, 2.5],
              "ngram_mix": {"model": 0.6, "ngrams": 2.9, "sha256": "00"}}}
DISTILBERT = {"model_type": "distilbert", "vocab_size": 100, "dim": 8, "n_layers": 1, "n_heads": 2, "hidden_dim": 16,
              "max_position_embeddings": 16, "activation": "gelu", "dropout": 0.1, "attention_dropout": 0.1, "qa_dropout": 0.1,
              "seq_classif_dropout": 0.2, "pad_token_id": 0}
ROBERTA = {**CONFIG, "model_type": "roberta", "architectures": ["RobertaForSequenceClassification"], "type_vocab_size": 1,
           "pad_token_id": 1, "layer_norm_eps": 1e-5}
QA = {"task": "qa", "max_length": 16, "doc_stride": 4, "n_best": 5, "max_answer_length": 8, "null_threshold": -1.5,
      "squad_version": 2}
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "##b", "##c", "coffee", "12", ",", "\u00e9", "\u4e2d", "##ing"]


def added(content, id=None, **flags):
    token = {"content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {**({} if id is None else {"id": id}), **token, **flags}


def tokenizer_json():
    return {"version": "1.0", "truncation": None, "padding": None,
            "added_tokens": [added(piece, i) for i, piece in enumerate(PIECES[:5])] + [added("new word", 20, normalized=True)],
            "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None,
                           "lowercase": True},
            "pre_tokenizer": {"type": "BertPreTokenizer"},
            "post_processor": {"type": "TemplateProcessing",
                               "single": [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
                                          {"SpecialToken": {"id": "[SEP]", "type_id": 0}}]},
            "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                      "max_input_chars_per_word": 100, "vocab": {piece: i for i, piece in enumerate(PIECES)}}}


def tokenizer_config():
    return {"do_lower_case": True, "tokenize_chinese_chars": True, "strip_accents": None, "model_max_length": 512,
            "tokenizer_class": "BertTokenizer", "unk_token": "[UNK]", "cls_token": added("[CLS]"), "sep_token": "[SEP]",
            "pad_token": "[PAD]", "mask_token": added("[MASK]", lstrip=True), "additional_special_tokens": ["<x>"],
            "added_tokens_decoder": {"0": added("[PAD]"), "20": added("<x>", rstrip=True, single_word=True)}}


def byte_chars():
    """GPT-2's characters for the 256 bytes."""
    stay = [b for b in range(256) if 33 <= b <= 126 or 161 <= b and b != 173]
    others = iter(range(256, 512))
    return [chr(b if b in stay else next(others)) for b in range(256)]


def bpe_vocabulary():
    pieces = ["<s>", "<pad>", "</s>", "<unk>", *byte_chars(), "\u0120a", "co", "ff", "\u00c3\u00a9", "\u0120\u0120", "coff", "<mask>"]
    return {piece: i for i, piece in enumerate(pieces)}


BPE_MERGES = [("\u0120", "a"), ("c", "o"), ("f", "f"), ("\u00c3", "\u00a9"), ("\u0120", "\u0120"), ("co", "ff")]


def bpe_tokenizer_json(**parts):
    model = {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": "", "end_of_word_suffix": "",
             "fuse_unk": False, "byte_fallback": False, "ignore_merges": False, "vocab": bpe_vocabulary(), "merges": BPE_MERGES}
    return {"version": "1.0", "added_tokens": [added("<s>", 0, normalized=True), added("<mask>", 266, lstrip=True)],
            "normalizer": None, "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "use_regex": True},
            "post_processor": {"type": "RobertaProcessing", "sep": ["</s>", 2], "cls": ["<s>", 0], "trim_offsets": True,
                               "add_prefix_space": False}, "model": model, **parts}


def add_bpe(corpora):
    text = " a coffee <mask>  caf\u00e9 e\u0301 don't\t12 </s>"
    merges = "#version: 0.2\n" + "".join(f"{a} {b}\n" for a, b in BPE_MERGES)
    vocabulary = json.dumps(bpe_vocabulary())
    corpora.add("bpe", "alone", vocabulary, merges, "", text)
    config = {"add_prefix_space": True, "trim_offsets": False, "tokenizer_class": "RobertaTokenizer", "model_max_length": 512,
              "added_tokens_decoder": {"270": added("<x>", rstrip=True, single_word=True)}}
    corpora.add("bpe", "config", vocabulary, merges, json.dumps(config), text)
    template = {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}},
                                                         {"SpecialToken": {"id": "</s>"}}]}
    for name, parts in (("bpe", {}), ("bpe-nfc", {"normalizer": {"type": "NFC"}, "post_processor": template}),
                        ("bpe-prefix", {"pre_tokenizer": {"type": "ByteLevel"}})):
        corpora.add("tokenizer_json", name, json.dumps(bpe_tokenizer_json(**parts)), "", text)
    corpora.words(["bpe"], ["\n", "\r\n", "\n--8<--\n", "#version", "\u0120", '"<s>":', '"</s>":', '"add_prefix_space":', "true", "a b",
                            '"4194303"', "-1", "\u0301"])


# ---- sentencepiece's model, a protocol buffer ----

def varint(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def field(number, value):
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    content = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(content)) + content


def sentencepiece(kind, names, charsmap=None, **normalizer):
    unknown, control, normal = 2, 3, 1
    out = b""
    for i, name in enumerate(names):
        type_of = unknown if name == "<unk>" else control if name[0] in "<[" else normal
        out += field(1, field(1, name) + field(2, -float(i)) + (field(3, type_of) if type_of != normal else b""))
    out += field(2, field(3, kind) + field(4, len(names)))
    spec = field(1, "identity") + (field(2, charsmap) if charsmap else b"")
    for number in (3, 4, 5):
        spec += field(number, normalizer.get(f"flag{number}", 1))
    return out + field(3, spec)


def add_sentencepiece(corpora):
    space = "\u2581"
    albert = ["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]", space, space + "a", "b", "ab", "9", ",", "9,", "\u00e9"]
    plain = ["<unk>", "<s>", "</s>", "<pad>", space + "coffee", space, "c", "o", "f", "e", "<0x41>"]
    text = "ab 9, Caf\u00e9 <s> [SEP]  x"
    config = json.dumps({"do_lower_case": False, "remove_space": True, "keep_accents": False, "cls_token": "[CLS]",
                         "added_tokens_decoder": {"40": added("<extra>")}})
    unigram, bpe, word, char = 1, 2, 3, 4
    corpora.add("sentencepiece", "unigram", text, "", sentencepiece(unigram, albert))
    corpora.add("sentencepiece", "unigram-config", text, config, sentencepiece(unigram, albert))
    corpora.add("sentencepiece", "bpe", text, "", sentencepiece(bpe, plain))
    corpora.add("sentencepiece", "word", text, "", sentencepiece(word, plain))
    corpora.add("sentencepiece", "char", text, "", sentencepiece(char, plain))
    units = [0] * 256  # a map of "a" to "b": the unit of "a" has a leaf at 0x60, which says where "b" is
    units[0x61], units[0x60] = 1 << 10 | 1 << 8 | 0x61, 1 << 31 | 2
    charsmap = struct.pack("<257I", 1024, *units) + b"x\0b\0"
    corpora.add("sentencepiece", "charsmap", text, "", sentencepiece(unigram, plain, charsmap))
    shifted = ["<unk>", "<s>", "</s>", space + "coffee", space, "c", "o", "f", "e", "b"]
    for name in ("XLMRobertaTokenizer", "CamembertTokenizer"):
        corpora.add("sentencepiece", name, text + " <mask>\u2581e\u0301", json.dumps({"tokenizer_class": name}),
                    sentencepiece(unigram, shifted, charsmap))
    add_unigram(corpora, charsmap)
    corpora.words(["sentencepiece"], ["XLMRobertaTokenizer", "CamembertTokenizer", space, "<unk>", "<s>", "</s>", "[CLS]", "[SEP]", "<0x41>", b"\x18\x02", b"\x18\x03",
                                      b"\x18\x06", b"\x0a\x0e\x0a\x05", b"\x15\0\0\0\0", "\n--8<--\n"])


def add_unigram(corpora, charsmap):
    """tokenizer.json of a Unigram model, in both published forms."""
    space = "\u2581"
    pieces = ["<s>", "<pad>", "</s>", "<unk>", space, space + "a", "b", "ab", space + "coffee", "\u00e9", "<mask>"]
    token, text = (lambda name: {"SpecialToken": {"id": name, "type_id": 0}}), {"Sequence": {"id": "A", "type_id": 0}}
    single = [token("<s>"), text, token("</s>")]
    whole = {"version": "1.0", "added_tokens": [added("<s>", 0), added("<mask>", 10, lstrip=True, normalized=True)],
             "post_processor": {"type": "TemplateProcessing", "single": single, "pair": [*single, token("</s>"), text, token("</s>")]},
             "model": {"type": "Unigram", "unk_id": 3, "byte_fallback": False, "vocab": [[piece, -float(i)] for i, piece in enumerate(pieces)]}}
    mapped = {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(charsmap).decode()}
    strip = {"type": "Strip", "strip_left": False, "strip_right": True}
    replace = {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": space}
    metaspace = {"type": "Metaspace", "replacement": space}
    forms = {"new": ({"type": "Sequence", "normalizers": [mapped, strip, replace]}, {**metaspace, "prepend_scheme": "always", "split": True}),
             "old": (mapped, {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, {**metaspace, "add_prefix_space": True}]}),
             "first": (None, {**metaspace, "prepend_scheme": "first"})}
    for name, (normalizer, pre_tokenizer) in forms.items():
        corpora.add("tokenizer_json", f"unigram-{name}", json.dumps({**whole, "normalizer": normalizer, "pre_tokenizer": pre_tokenizer}), "",
                    " a  coffee<mask> b\u00a0e\u0301\r\n </s>\u2581 \u0600a\u0301")
    corpora.words(["tokenizer_json"], ['"Unigram"', '"Precompiled"', '"Metaspace"', '"WhitespaceSplit"', '"prepend_scheme":', '"unk_id":', " {2,}"])


def ngram_file(outputs, ngrams, texts=9):
    """ngrams: [(hash, texts that have it, {output: half's bits})]"""
    weights = [pair for _, _, own in ngrams for pair in sorted(own.items())]
    content = b"ftngrams" + struct.pack("<IIQQQ", 1, outputs, texts, len(ngrams), len(weights))
    content += struct.pack(f"<{outputs}f", *[-1.0 + i for i in range(outputs)])
    content += b"".join(struct.pack("<Q", hash_) for hash_, _, _ in ngrams)
    content += b"".join(struct.pack("<I", count) for _, count, _ in ngrams)
    content += b"".join(struct.pack("<H", len(own)) for _, _, own in ngrams)
    content += b"".join(struct.pack("<H", output) for output, _ in weights) + b"".join(struct.pack("<H", bits) for _, bits in weights)
    return content + hashlib.sha256(content).hexdigest().encode()


def add_ngram_files(corpora):
    corpora.add("ngram_file", "empty", ngram_file(1, []))
    corpora.add("ngram_file", "two", ngram_file(2, [(5, 1, {0: 0x3C00, 1: 0xBC00}), (1 << 63, 9, {})]))
    corpora.add("ngram_file", "many", ngram_file(4, [(i * 0x9E3779B97F4A7C15 % (1 << 64) >> 1, 1 + i % 9, {i % 4: 0x3000 + i})
                                                    for i in sorted(range(200), key=lambda i: i * 0x9E3779B97F4A7C15 % (1 << 64) >> 1)]))
    corpora.words(["ngram_file"], [b"ftngrams", b"\x00\x7c", b"\x00\x3c", b"\xff" * 8, bytes(8), b"\x01\0\0\0"])


def add(corpora, _):
    add_ngram_files(corpora)
    google = {key: value for key, value in CONFIG.items() if key not in ("model_type", "finetune", "id2label", "label2id")}
    large = json.dumps({**CONFIG, "id2label": {str(i): f"label {i}" for i in range(30)}})
    for name, text in (("classification", json.dumps(CONFIG)), ("qa", json.dumps({**CONFIG, "finetune": QA})),
                       ("google", json.dumps(google, indent=2)), ("labels", large), ("empty", "{}"),
                       ("distilbert", json.dumps(DISTILBERT)), ("roberta", json.dumps(ROBERTA)),
                       ("xlm-roberta", json.dumps({**ROBERTA, "model_type": "xlm-roberta"})),
                       ("long", json.dumps({**google, "big": 10 ** 30}))):
        corpora.add("config_json", name, text)
    corpora.words(["config_json"], [f'"{key}":' for key in [*CONFIG, *DISTILBERT, *CONFIG["finetune"], *QA]] +
                  ['"bert"', '"distilbert"', '"roberta"', '"xlm-roberta"', '"camembert"', '"gelu_new"', '"relu"', "null", "true", "1e400", "9223372036854775807", "0",
                   "-1", "{", "}", "[", "]"])
    text = "a coffee new word [SEP] <x> \u4e2d\u6587 RE\u0301SUM\u00c9"
    corpora.add("tokenizer_json", "whole", json.dumps(tokenizer_json()), json.dumps(tokenizer_config()), text)
    corpora.add("tokenizer_json", "alone", json.dumps(tokenizer_json()), "", text)
    bert = {**tokenizer_json(), "normalizer": None, "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 3],
                                                                       "cls": ["[CLS]", 2]}}
    corpora.add("tokenizer_json", "bert-processing", json.dumps(bert), "", text)
    vocabulary = "\n".join(PIECES) + "\n"
    corpora.add("vocab", "alone", vocabulary, "", "", "", text)
    corpora.add("vocab", "crlf", vocabulary.replace("\n", "\r\n"), "", "", "", text)
    corpora.add("vocab", "config", vocabulary, json.dumps(tokenizer_config()), "", "", text)
    special = {"cls_token": "[CLS]", "mask_token": added("[MASK]", lstrip=True), "additional_special_tokens": [added("<y>")]}
    corpora.add("vocab", "companions", vocabulary, json.dumps({"do_lower_case": False}), json.dumps(special),
                json.dumps({"<y>": 15, "<z>": 16}), text)
    keys = [*tokenizer_json(), *tokenizer_json()["model"], *tokenizer_json()["normalizer"], *tokenizer_config(), *added("")]
    corpora.words(["tokenizer_json", "vocab"], [f'"{key}":' for key in keys] + PIECES +
                  ["\n", "\r\n", "\n--8<--\n", '"BertProcessing"', '"4194304"', '"-1"', "true", "false", "null", " ", "\u00a0"])
    add_sentencepiece(corpora)
    add_bpe(corpora)

"""Makes a BERT of any shape with zero weights, to test memory and time."""
import json
import shutil


def blank_model(directory, source, hidden=384, layers=6, vocabulary=30522):
    """Uses the tokenizer of `source`; the default shape is MiniLM-L6's."""
    config = json.loads((source / "config.json").read_text())
    config.update(hidden_size=hidden, num_hidden_layers=layers, num_attention_heads=hidden // 32,
                  intermediate_size=4 * hidden, vocab_size=vocabulary)
    shapes = {"embeddings.word_embeddings.weight": [vocabulary, hidden],
              "embeddings.position_embeddings.weight": [config["max_position_embeddings"], hidden],
              "embeddings.token_type_embeddings.weight": [2, hidden]}
    norms = ["embeddings"]
    for layer in (f"encoder.layer.{i}" for i in range(layers)):
        for name, rows, cols in (("attention.self.query", 1, 1), ("attention.self.key", 1, 1),
                                 ("attention.self.value", 1, 1), ("attention.output.dense", 1, 1),
                                 ("intermediate.dense", 4, 1), ("output.dense", 1, 4)):
            shapes[f"{layer}.{name}.weight"] = [rows * hidden, cols * hidden]
            shapes[f"{layer}.{name}.bias"] = [rows * hidden]
        norms += [f"{layer}.attention.output", f"{layer}.output"]
    for name in norms:
        shapes[f"{name}.LayerNorm.weight"] = shapes[f"{name}.LayerNorm.bias"] = [hidden]
    header, size = {}, 0
    for name, shape in shapes.items():
        begin, size = size, size + 4 * shape[0] * (shape[1] if len(shape) > 1 else 1)
        header["bert." + name] = {"dtype": "F32", "shape": shape, "data_offsets": [begin, size]}
    text = json.dumps(header).encode()
    directory.mkdir()
    for file in source.iterdir():
        if file.name not in ("config.json", "model.safetensors"):
            shutil.copy(file, directory)
    (directory / "config.json").write_text(json.dumps(config))
    with open(directory / "model.safetensors", "wb") as out:
        out.write(len(text).to_bytes(8, "little") + text)
        out.truncate(8 + len(text) + size)
    return directory

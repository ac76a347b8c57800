"""Makes a BERT of any shape with zero weights, to test memory and time."""
import json

from fixtures import copied


def encoder_shapes(config):
    """Of BERT's tensors but its pooler's and a head's."""
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    shapes = {"embeddings.word_embeddings.weight": (config["vocab_size"], hidden),
              "embeddings.position_embeddings.weight": (config["max_position_embeddings"], hidden),
              "embeddings.token_type_embeddings.weight": (config["type_vocab_size"], hidden)}
    norms = ["embeddings"]
    for layer in (f"encoder.layer.{i}" for i in range(config["num_hidden_layers"])):
        for name, rows, cols in (("attention.self.query", hidden, hidden), ("attention.self.key", hidden, hidden),
                                 ("attention.self.value", hidden, hidden), ("attention.output.dense", hidden, hidden),
                                 ("intermediate.dense", inner, hidden), ("output.dense", hidden, inner)):
            shapes[f"{layer}.{name}.weight"] = (rows, cols)
            shapes[f"{layer}.{name}.bias"] = (rows,)
        norms += [f"{layer}.attention.output", f"{layer}.output"]
    for name in norms:
        shapes[f"{name}.LayerNorm.weight"] = shapes[f"{name}.LayerNorm.bias"] = (hidden,)
    return {"bert." + name: shape for name, shape in shapes.items()}


def blank_model(directory, source, hidden=384, layers=6, vocabulary=30522):
    """Uses the tokenizer of `source`; the default shape is MiniLM-L6's."""
    sizes = {"hidden_size": hidden, "num_hidden_layers": layers, "num_attention_heads": hidden // 32,
             "intermediate_size": 4 * hidden, "vocab_size": vocabulary}
    copied(source, directory, ["model.safetensors"], **sizes)
    header, size = {}, 0
    for name, shape in encoder_shapes(json.loads((directory / "config.json").read_text())).items():
        begin, size = size, size + 4 * shape[0] * (shape[1] if len(shape) > 1 else 1)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [begin, size]}
    text = json.dumps(header).encode()
    with open(directory / "model.safetensors", "wb") as out:
        out.write(len(text).to_bytes(8, "little") + text)
        out.truncate(8 + len(text) + size)
    return directory

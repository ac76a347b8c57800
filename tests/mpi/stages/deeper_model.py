"""A copy of a model with more encoder layers, each one of the source's, no two of them equal."""
import array
import json

from fixtures import Tensor, copied, read_safetensors, write_safetensors


def deeper_model(directory, source, layers=4, **changes):
    """`changes`: of the config."""
    there = json.loads((source / "config.json").read_text())["num_hidden_layers"]
    tensors = {}
    for name, tensor in read_safetensors(source / "model.safetensors").items():
        before, dot, rest = name.partition(".layer.")
        number, _, rest = rest.partition(".")
        if not dot:
            tensors[name] = tensor
            continue
        for layer in range(int(number), layers, there):
            floats = array.array("f", tensor.data)
            if layer >= there and rest.endswith("dense.weight"):
                floats = array.array("f", (-value if i % (layer + 2) == 0 else value for i, value in enumerate(floats)))
            tensors[f"{before}.layer.{layer}.{rest}"] = Tensor(tensor.shape, floats.tobytes(), tensor.kind)
    copied(source, directory, ["model.safetensors"], **changes, num_hidden_layers=layers)
    write_safetensors(directory / "model.safetensors", tensors)
    return directory

"""A copy of a model with more encoder layers, each one of the source's, no two of them equal."""
import array
import json
import shutil


def deeper_model(directory, source, layers=4, **changes):
    """`changes`: of the config."""
    config = json.loads((source / "config.json").read_text())
    there = config["num_hidden_layers"]
    config.update(changes, num_hidden_layers=layers)
    content = (source / "model.safetensors").read_bytes()
    size = int.from_bytes(content[:8], "little")
    header, data = json.loads(content[8:8 + size]), content[8 + size:]
    out, parts, end = {}, [], 0

    def put(name, entry, values):
        nonlocal end
        out[name] = {"dtype": entry["dtype"], "shape": entry["shape"], "data_offsets": [end, end + len(values)]}
        parts.append(values)
        end += len(values)

    for name, entry in header.items():
        if name == "__metadata__":
            out[name] = entry
            continue
        begin, stop = entry["data_offsets"]
        values = data[begin:stop]
        before, dot, rest = name.partition(".layer.")
        number, _, rest = rest.partition(".")
        if not dot:
            put(name, entry, values)
            continue
        for layer in range(int(number), layers, there):
            floats = array.array("f", values)
            if layer >= there and rest.endswith("dense.weight"):
                floats = array.array("f", (-value if i % (layer + 2) == 0 else value for i, value in enumerate(floats)))
            put(f"{before}.layer.{layer}.{rest}", entry, floats.tobytes())
    text = json.dumps(out).encode()
    directory.mkdir(parents=True)
    for file in source.iterdir():
        if file.name not in ("config.json", "model.safetensors"):
            shutil.copy(file, directory)
    (directory / "config.json").write_text(json.dumps(config))
    (directory / "model.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + b"".join(parts))
    return directory

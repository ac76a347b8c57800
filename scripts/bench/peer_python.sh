# Sets PEER_PYTHON, an interpreter with Hugging Face's packages, unless it is set already.
# To be sourced, with $project set. Makes a virtual environment in build/peer once, and uses its interpreter.
if [ -z "${PEER_PYTHON:-}" ]; then
  venv=$project/build/peer
  if [ ! -e "$venv/transformers-5.24.0" ]; then
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet torch transformers==5.24.0 tokenizers==0.23.3 accelerate >&2
    touch "$venv/transformers-5.24.0"
  fi
  PEER_PYTHON=$venv/bin/python
fi

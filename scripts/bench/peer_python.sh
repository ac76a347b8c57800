# PEER_PYTHON, an interpreter with Hugging Face's packages: the given one, else that of build/peer.
# For scripts that source it, with $project: the virtual environment is made here once.
if [ -z "${PEER_PYTHON:-}" ]; then
  venv=$project/build/peer
  if [ ! -e "$venv/complete" ]; then
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet torch transformers==4.57.1 tokenizers==0.22.2 accelerate >&2
    touch "$venv/complete"
  fi
  PEER_PYTHON=$venv/bin/python
fi

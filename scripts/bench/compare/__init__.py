"""The parts of compare_hf.py: each measures one thing and writes one section."""

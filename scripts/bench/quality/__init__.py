"""Parts of quality.py: the data, the systems, the scores, what is kept, the document."""

"""Parts of quality.py: the data, the systems, the scores, the stored results, the document."""

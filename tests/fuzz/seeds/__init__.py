"""Inputs that fuzzing begins with, by kind of file."""

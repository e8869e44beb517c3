"""Faces for other frameworks: they wire, and decide nothing."""

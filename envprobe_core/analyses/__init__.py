"""Analyses that are more than a comparison: each module computes what a page of the book shows."""

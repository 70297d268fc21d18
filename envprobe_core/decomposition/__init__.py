"""Where a gain comes from: paired factorial runs split by Shapley values (section *decomposition*, ours)."""

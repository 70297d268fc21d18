"""The protocol audit: what each switch does to each headline figure (section *protocol-audit*, ours)."""

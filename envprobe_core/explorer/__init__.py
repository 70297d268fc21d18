"""The explorer's engine side: what one setting of budget and threshold measures, and the grid of them all."""

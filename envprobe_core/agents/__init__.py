"""The simulated agent: its loop, what it makes of each world, and the profiles that say how it errs."""

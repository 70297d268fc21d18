"""A language model as the agent."""

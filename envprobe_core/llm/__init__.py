"""A language model as the agent: prompts, answers, the client with its store, and a scripted server."""

"""Agents: what reads observations, keeps the belief table and proposes actions."""

"""Looks at the state without changing a decision: audits, overfilled nodes, inspection."""

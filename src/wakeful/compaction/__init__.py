"""Keep a conversation inside the window: rounds, plans, digests, and the checks that nothing is lost or broken."""

"""What the model sees on a turn: strata, budgets, fenced memory, tool routing and pre-flight rules."""

"""Tend memory between turns: named phases over a window of recent nodes, one lease a scope, one report."""

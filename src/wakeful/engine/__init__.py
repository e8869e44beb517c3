"""The hall: verbs over flows, the two drivers, the agent and its shells."""

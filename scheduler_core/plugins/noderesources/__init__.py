"""Plugins that look at resource requests: NodeResourcesFit and NodeResourcesBalancedAllocation."""

"""The searches: the length model, pruning, the rules of ending, the loop over positions."""

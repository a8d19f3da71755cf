"""What can be chosen, verified before a model is loaded. No torch in here."""

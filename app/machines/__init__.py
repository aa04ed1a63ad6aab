"""Several machines: one Hearth lets others help. Nothing here is imported or listens until it is switched on."""

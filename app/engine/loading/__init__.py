"""Read weights from a folder into torch: whole, checked, quantised, and what says that their numbers broke."""

"""Hearth's own kernels for graphics devices, used only where a machine was seen to compute them rightly and sooner than torch does."""

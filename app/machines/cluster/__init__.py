"""The machines process, which alone imports dask: its scheduler on the main machine, its worker on a helper."""

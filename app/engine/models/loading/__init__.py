"""Load weights from local files into torch: complete, checked, quantised if planned."""

"""Run requests with the models and yield events; keep jobs, their results and downloads."""

"""Turn facts and needs into a plan with a reason for each field: tables and pure functions, without torch."""

"""Pages that need no engine. A package, so that a fixture can last as long as its files run."""

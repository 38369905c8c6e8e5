"""Where units, edges, text, vectors and the ledger are kept and committed together."""

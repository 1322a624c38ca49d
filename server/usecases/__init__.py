"""One verb a file. Use cases own the transactions: what commits together can be read off here."""

"""The gateway's savings: real sessions replayed through it, against a provider that counts cached tokens."""

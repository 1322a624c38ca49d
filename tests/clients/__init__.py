"""Real agent CLIs against Esker and a scripted model: `make clients`."""

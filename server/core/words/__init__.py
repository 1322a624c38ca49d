"""Words of human languages: one file a language, and the module that reads them."""

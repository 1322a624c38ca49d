"""The page: what memory holds, in a browser. It is rendered on the server and works without scripts."""

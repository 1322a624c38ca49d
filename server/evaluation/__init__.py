"""`esker eval`: what the figures of one pool mean, and the page that shows them."""

"""Complete example plugins; docs/plugins.md explains them."""

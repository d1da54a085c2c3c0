"""What the service answers by HTTP: the API, callbacks, Spark sessions and the page."""

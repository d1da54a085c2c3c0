"""What queries of the same shape really had, kept between runs: bounded, decaying, no literals."""

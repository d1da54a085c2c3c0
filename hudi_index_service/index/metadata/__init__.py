"""What is stored below ``.hoodie/.index`` beside the index bytes: definitions, reading switches,
manifests, summaries, segments, build records."""

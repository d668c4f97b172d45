"""What carries every stage: contract, executor, store, images, calls, weights, errors."""

"""Several machines on one: Ray's nodes as processes, trainings as stubs. `make test-ray`."""

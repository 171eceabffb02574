"""Settings of all tests."""

from hypothesis import settings

# The same examples in every run: what passes here passes elsewhere, and what fails can be looked at again.
# How long an example takes is no property of the code: it depends on what else the machine does.
settings.register_profile("steady", derandomize=True, deadline=None)
settings.load_profile("steady")

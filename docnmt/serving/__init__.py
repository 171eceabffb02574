"""`docnmt serve`: a page and an API compatible with LibreTranslate.

Start with server (from port to stop), web (what surrounds the application), api and page (what can be requested),
requests (in which form) and uploads; then pool, queue and worker (the model processes); explain, metrics.
"""
